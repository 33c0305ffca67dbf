"""A graph in which the branches that a run takes stand in the place of its conditions.

What a branch writes is within a function, where nobody sees it. Which one is taken is known
once the values are: a step of gradient accumulation applies, or does not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.tensorflow_internals import graphs

# Of the names of what a branch holds. No scope of TensorFlow is called so.
_BRANCHES = {True: 'tf2verify_then', False: 'tf2verify_else'}
_CONDITIONS = ('If', 'StatelessIf')
# Conditions within branches are conditions once those are taken; more than that is a loop of ours.
_MOST_ROUNDS = 20


def with_taken_branches(
  graph_def: Any, evaluate: Callable[[Sequence[str]], Sequence[np.ndarray]]
) -> None:
  """Replaces each condition of a graph by the branch that is taken.

  Args:
    graph_def: the graph, which is changed.
    evaluate: returns the values of some of its tensors, by name.
  """
  for _ in range(_MOST_ROUNDS):
    conditions = [node for node in graph_def.node if node.op in _CONDITIONS]
    if not conditions:
      break
    values = evaluate([_tensor(node.input[0]) for node in conditions])
    library = {function.signature.name: function for function in graph_def.library.function}
    outputs: dict[str, list[str]] = {}
    for node, value in zip(conditions, values, strict=True):
      is_true = bool(np.asarray(value).any())
      branch = node.attr['then_branch' if is_true else 'else_branch'].func.name
      prefix = f'{node.name}/{_BRANCHES[is_true]}/'
      added, outputs[node.name] = _inlined(node, graphs.graph_of(library[branch]), prefix)
      graph_def.node.extend(added)
      _empty(node, [one.name for one in added])
    for node in graph_def.node:
      for number, name in enumerate(node.input):
        node.input[number] = _redirected(name, outputs)


def operation(graph: tf.Graph, name: str) -> tf.Operation | None:
  """Returns an operation of a graph, or of a branch that was put in its place; None without."""
  for is_true, word in _BRANCHES.items():
    condition, found, inner = name.partition(f'/{word}/')
    if found:
      known = operation(graph, condition)
      branch = None if known is None else graphs.branch_of(known, is_true)
      return None if branch is None else operation(branch, inner) or known
  try:
    return graph.get_operation_by_name(name)
  except KeyError:
    return None


def _inlined(node: Any, body: Any, prefix: str) -> tuple[list[Any], list[str]]:
  """Returns the operations of a branch, under names of their own, and the tensors it yields."""
  arguments = [name for name in node.input[1:] if not name.startswith('^')]
  waits = [name for name in node.input if name.startswith('^')]
  given: dict[str, str] = dict(zip((t.op.name for t in body.inputs), arguments, strict=True))

  def outer(name: str) -> str:
    op, _, number = name.partition(':')
    if op in given:
      return given[op]
    return prefix + op + (f':{number}' if number else '')

  added = []
  for known in body.as_graph_def().node:
    if known.name in given:
      continue
    copied = type(known)()
    copied.CopyFrom(known)
    copied.name = outer(known.name)
    del copied.input[:]
    for name in known.input:
      if not name.startswith('^'):
        copied.input.append(outer(name))
      elif name[1:] not in given:
        copied.input.append('^' + outer(name[1:]))
    copied.input.extend(wait for wait in waits if wait not in copied.input)
    added.append(copied)
  return added, [outer(tensor.name) for tensor in body.outputs]


def _empty(node: Any, waits_for: Sequence[str]) -> None:
  """Leaves of a condition the name, to wait for."""
  controls = [name for name in node.input if name.startswith('^')]
  node.op = 'NoOp'
  node.attr.clear()
  del node.input[:]
  node.input.extend([*controls, *(f'^{name}' for name in waits_for)])


def _redirected(name: str, outputs: Mapping[str, Sequence[str]]) -> str:
  op, _, number = name.partition(':')
  known = outputs.get(op)
  return name if known is None else known[int(number or 0)]


def _tensor(name: str) -> str:
  return name if ':' in name else f'{name}:0'
