"""The random ops of a graph, in order."""

from typing import Any, Dict, Iterable, List, Set, Tuple

from .built_graph import BuiltGraph
from .creations import Creations
from .graph_ops import is_in_loop, ops_behind
from .random_ops import is_random_op
from .variables import static_shape


def describe_draws(built: BuiltGraph, creations: Creations) -> None:
  """Fills in the random ops in the order in which they were made."""
  library: Dict[str, Any] = {}
  if getattr(built.graph, '_functions', True):  # none: the graph need not be written out
    library = {f.signature.name: f for f in built.graph.as_graph_def().library.function}
  called: Set[str] = set()
  for position, op in enumerate(built.graph.get_operations()):
    source = built.sources.of_op(op) if is_random_op(op.type) or library else -1
    if is_random_op(op.type):
      built.random_draws.append(
        {
          'op_type': op.type,
          'shape': list(static_shape(op.outputs[0].shape)),
          'variable': creations.made_by(position),
          'source': None if source < 0 else source,
          'in_loop': is_in_loop(op),
          'op_name': op.name,
          'feeds_outputs': False,
        }
      )
    if library:
      for name, in_loop in _functions_called(op.node_def.attr.items(), op.type, library):
        _describe_draws_inside(built, name, in_loop, library, called, source)
  if built.draws_in_computation:
    tensor = built.graph.get_tensor_by_name
    behind = ops_behind(tensor(name) for _, name in built.outputs if name is not None)
    for draw in built.random_draws:
      draw['feeds_outputs'] = draw['op_name'] in behind and not draw['in_loop']


def _functions_called(
  attributes: Iterable[Tuple[str, Any]], op_type: str, library: Dict[str, Any]
) -> List[Tuple[str, bool]]:
  found = [(op_type, False)]
  found += [(value.func.name, key == 'body') for key, value in attributes]
  return [(name, in_loop) for name, in_loop in found if name in library]


def _describe_draws_inside(
  built: BuiltGraph,
  function: str,
  in_loop: bool,
  library: Dict[str, Any],
  called: Set[str],
  source: int,
) -> None:
  if function in called:
    return
  called.add(function)
  for node in library[function].node_def:
    if is_random_op(node.op):
      built.random_draws.append(
        {
          'op_type': node.op,
          'shape': [None],
          'variable': None,
          'source': None if source < 0 else source,
          'in_loop': in_loop,
          'op_name': node.name,
          'feeds_outputs': False,
        }
      )
    for name, inner_loop in _functions_called(node.attr.items(), node.op, library):
      _describe_draws_inside(built, name, in_loop or inner_loop, library, called, source)


def draws_in_functions(graph: Any, run: Iterable[Any]) -> bool:
  """Returns whether a function that one of the ops calls draws random numbers."""
  known = getattr(graph, '_functions', None)
  if known is not None and not known:  # the graph need not be written out
    return False
  pending = [(op.type, op.node_def.attr.items()) for op in run]
  if known and not any(_functions_called(items, op_type, known) for op_type, items in pending):
    return False
  library = {f.signature.name: f for f in graph.as_graph_def().library.function}
  seen: Set[str] = set()
  while pending:
    op_type, attributes = pending.pop()
    for name, _ in _functions_called(attributes, op_type, library):
      if name not in seen:
        seen.add(name)
        nodes = library[name].node_def
        if any(is_random_op(node.op) for node in nodes):
          return True
        pending += [(node.op, node.attr.items()) for node in nodes]
  return False
