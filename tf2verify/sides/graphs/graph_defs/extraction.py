"""Parts of a GraphDef: what some of its operations need."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.reference.graph_ops import op_name_of, reached
from tf2verify.tensorflow_internals.graphs import op_definition

v1 = tf.compat.v1

_GIVEN = 'Placeholder'


def behind(graph_def: Any, wanted: Sequence[str]) -> Any:
  """Returns the part of a graph that some operations read and wait for, with those.

  Args:
    graph_def: the graph.
    wanted: names of the operations.
  """
  nodes = {node.name: node for node in graph_def.node}
  kept = set(reached(wanted, lambda name: map(op_name_of, nodes[name].input)))
  part = v1.GraphDef(versions=graph_def.versions)
  part.node.extend(node for node in graph_def.node if node.name in kept)
  part.library.CopyFrom(called(part.node, graph_def.library))
  return part


def called(nodes: Iterable[Any], library: Any) -> Any:
  """Returns the part of a library that operations call, directly or through others.

  Args:
    nodes: NodeDefs.
    library: a FunctionDefLibrary.
  """
  found = v1.GraphDef().library
  gradients = {known.function_name: known for known in library.gradient}
  for function in called_functions(nodes, library):
    found.function.add().CopyFrom(function)
    name = function.signature.name
    if name in gradients:
      found.gradient.add().CopyFrom(gradients[name])
  return found


def called_functions(nodes: Iterable[Any], library: Any) -> Iterator[Any]:
  """Yields the functions that operations call, directly or through others, and their gradients.

  The type of an operation may itself be the name of a function.

  Args:
    nodes: NodeDefs.
    library: a FunctionDefLibrary.
  """
  if not library.function:
    return
  functions = {function.signature.name: function for function in library.function}
  gradients = {known.function_name: known.gradient_func for known in library.gradient}
  pending = [name for node in nodes for name in (node.op, *_names(node))]
  seen: set[str] = set()
  while pending:
    name = pending.pop()
    if name in seen or name not in functions:
      continue
    seen.add(name)
    yield functions[name]
    pending += [inner for node in functions[name].node_def for inner in (node.op, *_names(node))]
    if name in gradients:
      pending.append(gradients[name])


def _names(node: Any) -> Iterable[str]:
  """Returns the names of the functions that an operation calls."""
  for value in node.attr.values():
    kind = value.WhichOneof('value')
    if kind == 'func':
      yield value.func.name
      yield from _names(value.func)
    elif kind == 'list':
      for function in value.list.func:
        yield function.name
        yield from _names(function)


def is_of_constants(graph_def: Any, name: str) -> bool:
  """Returns whether an operation is computed from constants alone: from nothing that may change.

  Args:
    graph_def: the graph.
    name: of the operation.
  """
  nodes = {node.name: node for node in graph_def.node}

  def read(one: str) -> list[str]:
    return [op_name_of(tensor) for tensor in nodes[one].input if not tensor.startswith('^')]

  definitions = [(nodes[n].op, op_definition(nodes[n].op)) for n in reached([name], read)]
  return not any(op == _GIVEN or known is None or known.is_stateful for op, known in definitions)
