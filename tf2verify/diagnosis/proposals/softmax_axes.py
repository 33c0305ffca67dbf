"""Softmax along another axis: TensorFlow has it along the last one, between two transposes."""

import itertools
from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.patterns.numbers.known_values import known_value
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal
from tf2verify.records.op_graph import TARGET, Inserted, NodeChange, OpGraph
from tf2verify.relation.operations.op_pairs import is_backward

ALONG_THE_LAST = ('Softmax', 'LogSoftmax')
_FLOAT = 'float32'
_Readers = Sequence[Sequence[tuple[int, int]]]


def softmax_axes(line: Line, consumers: _Readers) -> Iterator[Proposal]:
  """Yields a softmax of a line along each other axis: all that the line has, and each alone.

  Args:
    line: of the port.
    consumers: for every operation, who reads it.
  """
  graph = line.graph
  found = [n for n in line.positions if _rank(graph, n) and not is_backward(graph.ops[n])]
  for alike in [found, *([n] for n in found if len(found) > 1)]:
    ranks = {_rank(graph, n) for n in alike}
    if len(ranks) != 1:
      continue
    (rank,) = ranks
    for axis in range(rank - 2, -1, -1):
      order = list(range(rank))
      order[axis], order[-1] = order[-1], order[axis]
      changes = [_turned(graph, n, consumers, tuple(order)) for n in alike]
      axes = _axes(graph, alike[0], rank)
      if all(changes) and axes is not None:
        op = graph.ops[alike[0]]
        own, other = str(axes[-1]), str(axes[axis])
        text = (
          f'{op.name} ({op.op_type}) goes along axis {own} of {rank} in the port; along axis '
          f'{other} it yields what tf1 does'
        )
        yield Proposal(tuple(itertools.chain(*changes)), other, own, text, what='axis')


def _rank(graph: OpGraph, position: int) -> int:
  """Returns the rank of what a softmax yields; 0 for other operations, or where it is not known."""
  op = graph.ops[position]
  if op.op_type not in ALONG_THE_LAST:
    return 0
  dtype, shape = op.outputs[0]
  return len(shape) if dtype == _FLOAT and shape is not None else 0


def _axes(graph: OpGraph, position: int, rank: int) -> Sequence[int] | None:
  """Returns which axes of the user's tensor the softmax reads, in its order, if that is known."""
  before = graph.ops[graph.ops[position].inputs[0][0]]
  if before.op_type != 'Transpose':
    return range(rank)
  order = known_value(graph, before.inputs[1][0])
  return None if order is None or order.size != rank else order.ravel().astype(int).tolist()


def _turned(
  graph: OpGraph, position: int, consumers: _Readers, order: tuple[int, ...]
) -> list[NodeChange]:
  """Returns what has a softmax between two transposes; nothing where that cannot be."""
  slots: dict[int, list[int]] = {}
  for reader, slot in consumers[position]:
    if graph.ops[reader].op_type == TARGET:
      return []
    if not is_backward(graph.ops[reader]):  # gradients are formed anew
      slots.setdefault(reader, []).append(slot)
  both = [(position, [0]), *slots.items()]
  return [
    NodeChange(
      graph.ops[n].name, inserted=tuple(Inserted(k, 'Transpose', order=order) for k in known)
    )
    for n, known in both
    if slots
  ]
