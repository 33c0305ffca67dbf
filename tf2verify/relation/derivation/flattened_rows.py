"""In which order the elements of a tensor that is flattened meet the rows of a kernel.

TF1 flattens images channels first, say, and the port channels last: the rows of the kernel of the
layer behind it lie in another order, and so does every vector of that length.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.numerics.relayout import without_ones
from tf2verify.records.op_graph import OpRecord
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.operations.variable_uses import MAIN_OPS, VariableUses

Shape = tuple[int, ...]
_Factors = list[tuple[int, int]]

# Operations that only move elements; others keep them where they are if the shape is the same.
_RESHAPING = ('Reshape', 'Squeeze', 'ExpandDims')
# Names of the axes of one example of what a convolution yields, by their number.
_NAMES = {2: 'tc', 3: 'hwc', 4: 'dhwc'}
_OTHER_NAMES = 'abcdef'
_COLUMNS = 'o'
# More axes are not tried in all orders, and larger tensors are not looked at.
_MOST_AXES = 4
_MOST_ELEMENTS = 2**24


@dataclasses.dataclass(frozen=True, eq=False)
class _Flattened:
  """One example of a tensor, and how it lies in what it is flattened to."""

  dims: Shape  # of the tensor, channels last if that is known; no axes of one element
  is_image: bool  # whether it is known which of its axes are the channels
  order: np.ndarray  # where each element of the flattened tensor is in it, channels last
  rows: Shape  # the axes of the variable that meet these elements
  columns: int | None  # the size of the variable's other axis, if it has one
  is_flipped: bool  # whether that axis is the first one


def row_entries(uses: Sequence[VariableUses], name: str, other: str) -> list[MapEntry]:
  """Returns entries of two variables whose elements meet those of a tensor in another order.

  Nothing where both sides flatten in one order, as far as the graphs tell. Where the tensors before
  have axes of the same sizes in another order, all orders are listed that these sizes allow.

  Args:
    uses: of tf1, and of the port.
    name: a variable of tf1.
    other: that of the port.
  """
  one, two = _flattened(uses[0], name), _flattened(uses[1], other)
  if one is None or two is None or one.columns != two.columns or one.order.size != two.order.size:
    return []
  letters = _letters(one, two)
  found = []
  for places in _correspondences(one.dims, two.dims):
    factors = _factors(one.order, one.dims), _factors(places[two.order], one.dims)
    if not factors[0] or not factors[1] or factors[0] == factors[1]:
      continue
    if sorted(factors[0]) != sorted(factors[1]):
      continue
    named = _named(factors[0], one.dims, letters)
    patterns = [_pattern(f, own, named) for f, own in zip(factors, (one, two), strict=True)]
    if None not in patterns:
      sizes = tuple((named[factor], factor[1]) for factor in factors[0])
      found.append(MapEntry((name,), (other,), f'{patterns[0]} -> {patterns[1]}', sizes))
  return found


def order_of_rows(entry: MapEntry) -> tuple[str, ...]:
  """Returns the order of the rows of both sides' variables, of an entry of `row_entries`."""
  one, _, other = (
    ' '.join(axis for axis in side.split() if axis != _COLUMNS)
    for side in entry.layout.partition('->')
  )
  return tuple(rows if '(' in rows else f'({rows})' for rows in (one, other))


def _letters(one: _Flattened, other: _Flattened) -> str:
  is_image = one.is_image or other.is_image
  return _NAMES.get(len(one.dims), _OTHER_NAMES) if is_image else _OTHER_NAMES


def _correspondences(dims: Shape, others: Shape) -> Iterator[np.ndarray]:
  """Yields where each element of the port's tensor may be in that of tf1; likely orders first."""
  places = np.arange(math.prod(dims))
  if dims == others:
    yield places
    return
  if len(dims) > _MOST_AXES or sorted(dims) != sorted(others):
    return
  for order in sorted(itertools.permutations(range(len(dims))), key=_inversions):
    if tuple(dims[axis] for axis in order) == others:
      yield places.reshape(dims).transpose(order).ravel()


def _inversions(order: Sequence[int]) -> int:
  return sum(one > other for one, other in itertools.combinations(order, 2))


def _factors(order: np.ndarray, dims: Shape) -> _Factors:
  """Returns the step and the size of every axis that an order consists of, the first one first.

  No axis of the result spans several of `dims`. Nothing if the order is none of axes.
  """
  left, found = order, []
  while left.size > 1:
    step = int(left[1] - left[0])
    ends = [math.prod(dims[axis:]) for axis in range(len(dims))]  # of each axis, in elements
    end = min((end for end in ends if end > step), default=0)
    if step <= 0 or not end:
      return []
    longest = left[: end // step]
    same = np.flatnonzero(longest - left[0] != step * np.arange(longest.size))
    size = int(same[0]) if same.size else longest.size
    if size < 2 or left.size % size:
      return []
    found.append((step, size))
    left = left[::size]
  found.reverse()
  made = np.zeros(1, np.int64)
  for step, size in found:
    made = (made[:, None] + step * np.arange(size)).ravel()
  return found if np.array_equal(made, order) else []


def _named(factors: _Factors, dims: Shape, letters: str) -> dict[tuple[int, int], str]:
  """Returns the name of every factor: that of its axis, with a number if it is a part of one."""
  axis_of = {}
  for factor in sorted(factors, reverse=True):
    axis_of[factor] = max(n for n in range(len(dims)) if math.prod(dims[n:]) > factor[0])
  axes = list(axis_of.values())
  parts = {axis: itertools.count(1) for axis in axes}
  return {
    factor: letters[axis] + (str(next(parts[axis])) if axes.count(axis) > 1 else '')
    for factor, axis in axis_of.items()
  }


def _pattern(factors: _Factors, own: _Flattened, named: dict[tuple[int, int], str]) -> str | None:
  """Returns the pattern of a variable; None where its axes are no products of the factors."""
  left = list(factors)
  axes = []
  for size in own.rows:
    names, product = [], 1
    while product < size and left:
      factor = left.pop(0)
      names.append(named[factor])
      product *= factor[1]
    if product != size:
      return None
    axes.append('1' if not names else names[0] if len(names) == 1 else f'({" ".join(names)})')
  columns = [] if own.columns is None else ['1' if own.columns == 1 else _COLUMNS]
  return ' '.join([*columns, *axes] if own.is_flipped else [*axes, *columns])


def _flattened(uses: VariableUses, name: str) -> _Flattened | None:
  """Returns what the elements of a variable meet; None where nothing is flattened for it."""
  position = uses.readers.get(name)
  shape = uses.shape(name)
  if position is None or 1 in shape[:1] or not shape:
    return None
  kind, is_flipped = family(uses.graph.ops[position].op_type), uses.flipped.get(name, False)
  rows, columns = shape, None
  if kind == 'MatMul' and len(shape) == 2:
    rows, columns = (shape[1:], shape[0]) if is_flipped else (shape[:-1], shape[-1])
  elif kind == 'Conv2D' and len(shape) == 4:
    rows, columns = shape[:-1], shape[-1]
  elif kind in MAIN_OPS or len(shape) > 1:
    return None
  moves = _moves(uses, position, math.prod(rows))
  if moves is None or not _flattens(uses, position, moves, rows):
    return None
  indices = _moved(uses, moves)
  if indices is None:
    return None
  dims, is_image, index = indices
  size = math.prod(rows)
  order = index.reshape(-1, size)[0] if index.size % size == 0 else index
  inner = next((n for n in range(len(dims) + 1) if math.prod(dims[n:]) == size), None)
  if inner is None or not np.array_equal(np.sort(order), np.arange(size)):
    return None  # elements of several examples, or not all of one
  return _Flattened(without_ones(dims[inner:]), is_image, order, rows, columns, is_flipped)


def _moves(uses: VariableUses, reader: int, size: int) -> list[int] | None:
  """Returns the operations from one that computes numbers to the one before a reader, in order."""
  ops = uses.graph.ops
  first = uses.data_of(ops[reader])
  if family(ops[reader].op_type) in MAIN_OPS:
    first = first[:1] if first and ops[reader].inputs[0][0] == first[0] else []
  elif len(first) > 1:
    first = [n for n in first if _shape(ops[n])[-1:] == (size,)]
  if not first:
    return None
  found = [first[0]]
  joins = False
  while True:
    op = ops[found[-1]]
    following = _source(uses, op)
    if following is None:
      return found[::-1]
    if op.op_type == 'Reshape':
      if joins and _takes_examples_apart(_shape(ops[following]), _shape(op)):
        return found[::-1]
      joins |= _shape(ops[following])[-1:] != _shape(op)[-1:]
    found.append(following)


def _takes_examples_apart(before: Sequence[int | None], after: Sequence[int | None]) -> bool:
  """Returns whether the first axis becomes several, as behind a product with a matrix."""
  sizes = [math.prod(size or 0 for size in shape[1:]) for shape in (before, after)]
  return sizes[0] < sizes[1]


def _source(uses: VariableUses, op: OpRecord) -> int | None:
  """Returns what an operation moves, or keeps where it is; None if it does neither."""
  kind = family(op.op_type)
  if kind in _RESHAPING or kind == 'Transpose':
    return op.inputs[0][0]
  if kind in MAIN_OPS or not op.outputs:
    return None
  same = [n for n in uses.data_of(op) if uses.graph.ops[n].outputs[:1] == op.outputs[:1]]
  return same[0] if same and _shape(op) else None


def _flattens(uses: VariableUses, reader: int, moves: Sequence[int], rows: Shape) -> bool:
  """Returns whether several axes of a tensor become one, or a kernel is as large as an image."""
  ops = uses.graph.ops
  last = _shape(ops[moves[-1]])
  if len(rows) > 1:
    return ops[reader].attribute('padding') in ('VALID', b'VALID') and last[1:] == rows
  joins = any(
    ops[n].op_type == 'Reshape' and _shape(ops[n])[-1:] != _shape(ops[before])[-1:]
    for before, n in itertools.pairwise(moves)
  )
  return joins and last[-1:] == rows


def _moved(uses: VariableUses, moves: Sequence[int]) -> tuple[Shape, bool, np.ndarray] | None:
  """Returns the axes of a tensor, channels last if known, and where its elements are in the end.

  The first axis, of the examples, has one element if nothing is done with it.
  """
  ops = uses.graph.ops
  axes = _axes(uses, moves[0])
  shapes = [_shape(ops[n]) for n in moves]
  if axes is None or not all(shapes) or any(shape.count(None) > 1 for shape in shapes):
    return None
  batch = shapes[0][0]
  orders = [_order(uses, ops[n]) for n in moves[1:]]
  if any(order is not None and not order for order in orders):
    return None
  is_kept = all(shape[0] == batch for shape in shapes) and all(o[0] == 0 for o in orders if o)
  if is_kept:
    shapes = [(1, *shape[1:]) for shape in shapes]
  if None in shapes[0] or math.prod(size or 0 for size in shapes[0]) > _MOST_ELEMENTS:
    return None
  dims = [0] * len(axes[0])
  for size, axis in zip(shapes[0], axes[0], strict=True):
    dims[axis] = size or 0
  index = np.arange(math.prod(dims), dtype=np.int64).reshape(dims).transpose(axes[0])
  for n, shape, order in zip(moves[1:], shapes[1:], orders, strict=True):
    if order:
      index = index.transpose(order)
    elif ops[n].op_type in _RESHAPING:
      known = math.prod(size for size in shape if size is not None)
      if not known or index.size % known:
        return None
      index = index.reshape([-1 if size is None else size for size in shape])
  return tuple(dims), axes[1], index


def _axes(uses: VariableUses, position: int) -> tuple[tuple[int, ...], bool] | None:
  """Returns which axis each axis of a tensor is, channels last, and whether that is known.

  What is neither a convolution nor follows one has its axes as they are. None where a transposition
  on the way is not constant.
  """
  ops = uses.graph.ops
  order = tuple(range(len(_shape(ops[position]))))
  while True:
    op = ops[position]
    known = op.attribute('data_format')
    if known and len(order) > 2:
      text = known.decode() if isinstance(known, bytes) else str(known)
      if text.startswith('NC') and text != 'NC':
        last = len(order) - 1
        order = tuple(last if axis == 1 else axis - (axis > 1) for axis in order)
      return order, True
    turned = _order(uses, op)
    if turned is not None:
      if not turned:
        return None
      order = tuple(turned[axis] for axis in order)
    before = [n for n in uses.data_of(op) if len(_shape(ops[n])) == len(order)]
    if not before:
      return order, False
    position = before[0]


def _order(uses: VariableUses, op: OpRecord) -> tuple[int, ...] | None:
  """Returns the order of axes that a transposition makes, () if not known; None for others."""
  if family(op.op_type) != 'Transpose':
    return None
  constant = uses.graph.ops[op.inputs[1][0]].constant if len(op.inputs) > 1 else None
  return () if constant is None else tuple(int(axis) for axis in constant.flat)


def _shape(op: OpRecord) -> tuple[int | None, ...]:
  """Returns the shape of what an operation yields; () where it is not known."""
  return (op.outputs[0][1] or ()) if op.outputs else ()
