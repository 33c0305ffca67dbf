"""With what an operation is used: the slice of a step goes with the outputs of that step."""

from collections.abc import Sequence

import numpy as np

from tf2verify.records.op_graph import OpGraph, OpRecord, TensorKey
from tf2verify.relation.operations.nearest_pairs import nearest

_Partners = Sequence[int | None]
_Consumers = Sequence[Sequence[tuple[int, int]]]
# Operations without a partner between an operation and what it is used with.
_FAR = 4


def used_alike(
  graphs: tuple[OpGraph, OpGraph],
  consumers: tuple[_Consumers, _Consumers],
  partners: tuple[_Partners, _Partners],
  tf1: int,
  candidates: list[int],
) -> list[int]:
  """Returns those of some tf2 operations that are used with most of what one of tf1 is used with.

  Args:
    graphs: those of tf1 and of the port.
    consumers: of the operations of each of them.
    partners: their partners.
    tf1: position of an operation of tf1.
    candidates: positions of operations of the port.

  Returns:
    All candidates where that tells none of them from another.
  """
  own = {partners[0][one] for one in _companions(graphs[0], consumers[0], partners[0], tf1)}
  shares = []
  for candidate in candidates:
    its = _companions(graphs[1], consumers[1], partners[1], candidate)
    shares.append(len(own & its) / max(len(own | its), 1))
  return [one for one, share in zip(candidates, shares, strict=True) if share == max(shares)]


def is_negated(
  graphs: tuple[OpGraph, OpGraph],
  consumers: tuple[_Consumers, _Consumers],
  tf1: int,
  tf2: int,
) -> bool:
  """Returns whether one side adds a product, and the other one subtracts that of the opposite.

  Such products are no partners: `a + -1e30 * b` is `a - 1e30 * b`.
  """
  one, other = graphs[0].ops[tf1], graphs[1].ops[tf2]
  if one.op_type != 'Mul' or other.op_type != 'Mul':
    return False
  factors = [_constant(graph, op) for graph, op in zip(graphs, (one, other), strict=True)]
  if factors[0] is None or factors[1] is None or not np.array_equal(factors[0], -factors[1]):
    return False
  read = [
    {(graph.ops[n].op_type, slot) for n, slot in readers[position]}
    for graph, readers, position in zip(graphs, consumers, (tf1, tf2), strict=True)
  ]
  subtracted = [kinds == {('Sub', 1)} for kinds in read]
  return subtracted[0] != subtracted[1]


def _constant(graph: OpGraph, op: OpRecord) -> np.ndarray | None:
  known = (graph.ops[n].constant for n, _ in op.inputs)
  return next((value for value in known if value is not None), None)


def _companions(
  graph: OpGraph, consumers: _Consumers, partners: _Partners, position: int
) -> set[int]:
  """Returns the operations with a partner from which its readers compute as well.

  Of the nearest such readers: in the end a sum reads all steps.
  """
  found: set[int] = set()
  own = nearest(graph, position, partners)
  seen = {position}
  front = [position]
  for _ in range(_FAR):
    readers = {reader for one in front for reader, _ in consumers[one]} - seen
    for reader in readers:
      others: list[TensorKey] = [key for key in graph.ops[reader].inputs if key[0] not in seen]
      for producer, _ in others:
        known = partners[producer] is not None
        found |= ({producer} if known else nearest(graph, producer, partners)) - own
    if found:
      break
    seen |= readers
    front = [reader for reader in readers if partners[reader] is None]
  return found
