"""Tensors that a line of the port could read with their axes in another order.

A matrix that is not transposed, two axes that are joined or taken apart in the other order
(heads and widths, blocks and channels), or each element repeated where tf1 repeats all in turn.
The numbers are those of tf1, in another order along an axis.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.patterns.numbers.known_values import is_number
from tf2verify.diagnosis.patterns.operations.reads import text_with_line
from tf2verify.diagnosis.proposals.code_lines import (
  Line,
  Proposal,
  each_time,
  runs_of_a_line,
  slots_of_readers,
)
from tf2verify.records.op_graph import (
  VARIABLE,
  Inserted,
  NodeChange,
  OpGraph,
  OpRecord,
  TensorKey,
)

_FLOAT = 'float32'
_MOST_AXES = 6
_MOST_JOINED = 3
_SEVERAL = 2
_OPAQUE = frozenset(('Shape', 'Transpose', 'Size', 'Rank', 'ShapeN'))
_Shape = tuple[int | None, ...]
_Readers = Sequence[Sequence[tuple[int, int]]]


def transposed_reads(line: Line, consumers: _Readers, of_variables: bool) -> Iterator[Proposal]:
  """Yields tensors that a line reads with two axes of one size exchanged.

  Args:
    line: of the port.
    consumers: for every operation, who reads it.
    of_variables: whether these are variables; other tensors elsewhere. These may be the result of
      what is wrong before them: distances from j to i for those from i to j.
  """
  graph = line.graph
  for alike in runs_of_a_line(line, consumers):
    op = graph.ops[alike[0]]
    for slot, key in enumerate(op.inputs) if op.op_type not in _OPAQUE else ():
      if _is_of_variable(graph, key) is not of_variables:
        continue
      keys = [graph.ops[n].inputs[slot] for n in alike]
      _, shape = graph.ops[key[0]].outputs[key[1]]
      for one, other in _square_axes(graph, key):
        order = list(range(len(shape or ())))
        order[one], order[other] = other, one
        put = Inserted(slot, 'Transpose', order=tuple(order))
        if all((one, other) in _square_axes(graph, known) for known in keys):
          changes = tuple(NodeChange(graph.ops[n].name, inserted=(put,)) for n in alike)
          read = text_with_line(graph, key)
          text = (
            f'{op.name} ({op.op_type}) reads {read} in the port; with the axes {one} and {other} '
            f'of {list(shape or ())} exchanged (transposed) it yields what tf1 does'
            f'{each_time(alike)}'
          )
          yield Proposal(changes, f'transposed ({one}, {other})', 'as it is', text, what=read)


def _square_axes(graph: OpGraph, key: TensorKey) -> list[tuple[int, int]]:
  """Returns pairs of axes of one size, of a tensor of numbers with 32 bits."""
  dtype, shape = graph.ops[key[0]].outputs[key[1]]
  if dtype != _FLOAT or shape is None or len(shape) > _MOST_AXES or is_number(graph, key):
    return []
  pairs = itertools.combinations(range(len(shape)), 2)
  return [(one, two) for one, two in pairs if shape[one] == shape[two] and (shape[one] or 0) > 1]


def _is_of_variable(graph: OpGraph, key: TensorKey) -> bool:
  """Returns whether a tensor is a variable, or one in another shape."""
  op = graph.ops[key[0]]
  while op.op_type in ('StridedSlice', 'ExpandDims', 'Reshape', 'Identity'):
    op = graph.ops[op.inputs[0][0]]
  return op.op_type == VARIABLE


@dataclasses.dataclass(frozen=True, eq=False)
class _Turn:
  """Axes in another order.

  Attributes:
    ends: the sizes of the axes before and behind these.
    apart: the sizes of these.
    order: in which order they are to be.
    joined: the size of all as one; None where they stay apart.
    text: what the port does, and what it would do.
  """

  ends: tuple[Sequence[int | None], Sequence[int | None]]
  apart: Sequence[int]
  order: Sequence[int]
  joined: int | None
  text: str

  def inserted(self, slot: int) -> Inserted:
    """Returns what an input is to pass through."""
    front, back = ([-1 if size is None else size for size in sizes] for sizes in self.ends)
    count = len(front) + len(self.apart)
    behind = range(count, count + len(back))
    order = (*range(len(front)), *(len(front) + n for n in self.order), *behind)
    joined = () if self.joined is None else (*front, self.joined, *back)
    return Inserted(
      slot, 'Transpose', order=order, apart=(*front, *self.apart, *back), joined=joined
    )


def joined_orders(line: Line, consumers: _Readers) -> Iterator[Proposal]:
  """Yields axes that a line joins, takes apart or repeats, in another order.

  Args:
    line: of the port.
    consumers: for every operation, who reads it.
  """
  graph = line.graph
  kinds = {'Reshape': _reshaped, 'Tile': _tiled}
  for alike in runs_of_a_line(line, consumers):
    op = graph.ops[alike[0]]
    if op.op_type not in kinds or len({_shapes(graph, graph.ops[n]) for n in alike}) > 1:
      continue
    for turn in kinds[op.op_type](graph, op):
      changes = [_behind(graph, consumers, n, turn) for n in alike]
      if sum(size is None for sizes in turn.ends for size in sizes) <= 1 and all(changes):
        every = tuple(change for one in changes for change in one)
        text = f'{op.name} ({op.op_type}) {turn.text} it yields what tf1 does{each_time(alike)}'
        yield Proposal(every, 'another order', 'this order', text, what='axes')


def _reshaped(graph: OpGraph, op: OpRecord) -> Iterator[_Turn]:
  """Yields other orders of the axes that a reshape joins to one, or takes one apart into."""
  before, after = (list(shape) for shape in _shapes(graph, op))
  front, back = _common(before, after), 0
  back = _common(before[front:][::-1], after[front:][::-1])
  one, other = (shape[front : len(shape) - back] for shape in (before, after))
  is_joined = len(other) == 1
  sizes = [size for size in (one if is_joined else other) if size is not None and size > 1]
  alone = other if is_joined else one
  is_known = len(sizes) == len(one if is_joined else other)
  if len(alone) != 1 or not is_known or not _SEVERAL <= len(sizes) <= _MOST_JOINED:
    return
  ends = after[:front], after[len(after) - back :]
  read = text_with_line(graph, op.inputs[0])
  times = _repeats(graph, op, front) if is_joined else 0
  for turned in itertools.permutations(range(len(sizes))):
    others = [sizes[n] for n in turned]
    if list(turned) == sorted(turned):
      continue
    if times:
      text = (
        f'repeats each element {times} times in a row in the port (tf.repeat); with all elements '
        'repeated in turn (tf.tile)'
      )
    elif is_joined:
      text = f'joins the axes {sizes} of {read} in the port; in the order {others}'
    else:
      text = f'takes an axis of {read} apart as {sizes} in the port; as {others}, then exchanged,'
    if is_joined:
      yield _Turn(ends, sizes, turned, math.prod(sizes), text)
    else:
      yield _Turn(ends, others, [turned.index(n) for n in range(len(sizes))], None, text)


def _tiled(graph: OpGraph, op: OpRecord) -> Iterator[_Turn]:
  """Yields each element repeated, for all elements repeated in turn."""
  before, after = _shapes(graph, op)
  axes = [axis for axis, size in enumerate(before) if size != after[axis]]
  if len(axes) != 1:
    return
  (axis,) = axes
  size, whole = before[axis], after[axis]
  if size is not None and whole is not None and size > 1:
    text = (
      f'repeats all elements {whole // size} times in turn in the port (tf.tile); with each '
      'element repeated in a row (tf.repeat)'
    )
    yield _Turn((after[:axis], after[axis + 1 :]), (whole // size, size), (1, 0), whole, text)


def _repeats(graph: OpGraph, op: OpRecord, axis: int) -> int:
  """Returns how often a reshape has each element of an axis in a row; 0 for another reshape."""
  tile = graph.ops[op.inputs[0][0]]
  before, after = _shapes(graph, tile) if tile.op_type == 'Tile' else ((), ())
  expected = [*after[: axis + 1], 1, *after[axis + 2 :]]
  return (after[axis + 1] or 0) if len(after) > axis + 1 and list(before) == expected else 0


def _behind(graph: OpGraph, consumers: _Readers, position: int, turn: _Turn) -> list[NodeChange]:
  """Returns what has all that reads an operation read it turned; nothing where that cannot be."""
  slots = slots_of_readers(graph, consumers, position)
  return [
    NodeChange(graph.ops[n].name, inserted=tuple(turn.inserted(slot) for slot in known))
    for n, known in slots.items()
  ]


def _shapes(graph: OpGraph, op: OpRecord) -> tuple[_Shape, _Shape]:
  """Returns what an operation reads first and yields; none for what is not of 32 bits."""
  read = graph.ops[op.inputs[0][0]].outputs[op.inputs[0][1]]
  if op.outputs[0][0] != _FLOAT or read[1] is None or op.outputs[0][1] is None:
    return (), ()
  return read[1], op.outputs[0][1]


def _common(one: Sequence[int | None], other: Sequence[int | None]) -> int:
  """Returns how many sizes are alike at the beginning."""
  pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
  return len(list(pairs))
