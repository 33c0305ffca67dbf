"""A graph in which the rounds that a run goes through stand in the place of its loops.

What a loop computes is within a function, of which a session shows the last round's results
alone. How many rounds there are is known once the values are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records import rounds
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.graphs.graph_defs import inlining
from tf2verify.sides.graphs.graph_defs.new_nodes import constant_node, new_node
from tf2verify.sides.graphs.graph_defs.purity import calls_pure_functions
from tf2verify.sides.graphs.graph_defs.sessions import imported
from tf2verify.sides.graphs.rewriting.apart_lists import with_lists_apart
from tf2verify.sides.graphs.rewriting.taken_branches import CONDITIONS, with_taken_branches
from tf2verify.tensorflow_internals import graphs

LOOPS = ('While', 'StatelessWhile')
# Loops within loops are unrolled after those.
_DEEPEST = 4
# More operations than these take longer to look into than anybody waits for.
_MOST_OPERATIONS = 6000
_ADDITIONS = ('Add', 'AddV2')


def is_apart(graph: tf.Graph) -> bool:
  """Returns whether a graph has neither loops nor conditions."""
  return not any(op.type in (*LOOPS, *CONDITIONS) for op in graph.get_operations())


def take_apart(
  graph_def: Any, evaluate: Callable[[Sequence[str]], Sequence[np.ndarray]], in_parts: bool
) -> None:
  """Replaces loops by the rounds, and conditions by the branches, that a run goes through.

  Lists of tensors that the rounds read and write are taken apart as well.

  Args:
    graph_def: the graph, which is changed.
    evaluate: returns the values of some of its tensors, by name.
    in_parts: whether outputs of a `Split` get operations of their own.
  """
  with_taken_branches(graph_def, evaluate, passes_on=True)
  with_unrolled_loops(graph_def, evaluate)
  with_taken_branches(graph_def, evaluate, passes_on=True)
  with_lists_apart(graph_def, evaluate)
  if in_parts:
    split_apart(graph_def)


def with_unrolled_loops(
  graph_def: Any, evaluate: Callable[[Sequence[str]], Sequence[np.ndarray]]
) -> None:
  """Replaces loops of a graph by the rounds that a run goes through.

  A loop stays as it is where it draws random numbers, whose order would be another one, changes
  state, is not counted as `tf.while_loop` counts, or would be too long.

  Args:
    graph_def: the graph, which is changed.
    evaluate: returns the values of some of its tensors, by name.
  """
  for _ in range(_DEEPEST):
    library = {function.signature.name: function for function in graph_def.library.function}
    loops = [(node, body) for node in graph_def.node if (body := _body(node, library)) is not None]
    if not loops:
      break
    counts = evaluate([f'{node.name}:0' for node, _ in loops])
    outputs: dict[str, list[str]] = {}
    left = _MOST_OPERATIONS
    for (node, body), count in zip(loops, counts, strict=True):
      left -= int(count) * len(body.get_operations())
      if left < 0:
        break
      added, outputs[node.name] = _unrolled(node, body, int(count))
      graph_def.node.extend(added)
      inlining.pass_on(node, outputs[node.name], [tensor.dtype for tensor in body.outputs])
    inlining.redirect(graph_def, outputs)
    if len(outputs) < len(loops):
      break


def split_apart(graph_def: Any) -> None:
  """Lets each output of a `Split` be yielded by an operation of its own.

  The gates of a cell lie in one tensor, in an order that is not the same in TF1 and Keras, or in
  none; pairs are made of operations.

  Args:
    graph_def: the graph, which is changed.
  """
  splits = [node for node in graph_def.node if node.op == 'Split']
  if not splits:
    return
  graph = imported(graph_def)
  outputs: dict[str, list[str]] = {}
  for node in splits:
    op = graph.get_operation_by_name(node.name)
    axis, shape = tf.get_static_value(op.inputs[0]), op.outputs[0].shape
    if axis is None or shape.rank is None or shape[int(axis)] is None:
      continue
    size = np.full(shape.rank, -1, np.int32)
    size[int(axis)] = shape[int(axis)]
    outputs[node.name] = []
    for number in range(len(op.outputs)):
      begin = np.zeros(shape.rank, np.int32)
      begin[int(axis)] = number * size[int(axis)]
      graph_def.node.extend(_slice(node, number, begin, size))
      outputs[node.name].append(rounds.part(node.name, number))
  inlining.redirect(graph_def, outputs)


def _slice(node: Any, number: int, begin: np.ndarray, size: np.ndarray) -> list[Any]:
  """Returns the operations that yield one output of a `Split`."""
  name = rounds.part(node.name, number)
  made = [constant_node(f'{name}/begin', begin), constant_node(f'{name}/size', size)]
  reads = [inlining.data_inputs(node)[1], *(constant.name for constant in made)]
  reads += inlining.control_inputs(node)
  return [*made, new_node(name, 'Slice', reads, T=node.attr['T'].type, Index=tf.int32)]


def _body(node: Any, library: Mapping[str, Any]) -> Any:
  """Returns the graph of the body of a loop that can be unrolled; None for anything else."""
  if node.op not in LOOPS or not calls_pure_functions(node, library):
    return None
  function = library[node.attr['body'].func.name]
  if _draws(function, library):
    return None
  body = graphs.graph_of(function, library)
  return body if _is_counted(body) else None


def _draws(function: Any, library: Mapping[str, Any]) -> bool:
  """Returns whether a function draws random numbers, or one that it calls does."""
  for node in function.node_def:
    called = (value.func.name for value in node.attr.values() if value.HasField('func'))
    if is_random_op(node.op) or any(
      _draws(library[name], library) for name in called if name in library
    ):
      return True
  return False


def _is_counted(body: Any) -> bool:
  """Returns whether the first result of a body is its first argument and 1.

  So `tf.while_loop` counts the rounds of every loop.
  """
  if not body.outputs:
    return False
  op = body.outputs[0].op
  while op.type == 'Identity':
    op = op.inputs[0].op
  if op.type not in _ADDITIONS or op.inputs[0] is not body.inputs[0]:
    return False
  added = tf.get_static_value(op.inputs[1])
  return added is not None and added.shape == () and added == 1


def _unrolled(node: Any, body: Any, count: int) -> tuple[list[Any], list[str]]:
  """Returns the operations of all rounds, and what the loop yields."""
  state, waits = inlining.data_inputs(node), inlining.control_inputs(node)
  added: list[Any] = []
  for number in range(count):
    prefix = rounds.prefix(node.name, number)
    one, state = inlining.inlined(node.name, state, waits, body, prefix)
    added += one
  return added, state
