"""Slices of a graph, to be taken elsewhere."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.diagnosis.patterns.operations.op_text import slice_text
from tf2verify.records.diagnosis import GraphDifference
from tf2verify.records.op_graph import OpGraph

# Begin, end and strides.
_BOUNDS = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Slice:
  """What a slice takes: as text, of how many axes, and by which masks and bounds."""

  text: str
  axes: int
  masks: tuple[tuple[str, Any], ...]
  bounds: tuple[np.ndarray, ...]  # begin, end and strides


def slice_of(graph: OpGraph, position: int) -> Slice | None:
  """Returns what a slice takes; None for another operation, or where that is not known."""
  op = graph.ops[position]
  text = slice_text(graph, position) if op.op_type == 'StridedSlice' else ''
  bounds = [graph.ops[producer].constant for producer, _ in op.inputs[1:]] if text else []
  known = tuple(bound for bound in bounds if bound is not None)
  if len(known) != _BOUNDS:
    return None
  masks = tuple((name, value) for name, value in op.attributes if name.endswith('_mask'))
  return Slice(text, len(known[0]), masks, known)


def told_as_slices(
  known: GraphDifference, tf1: tuple[OpGraph, int], tf2: tuple[OpGraph, int]
) -> GraphDifference:
  """Returns a difference of masks of two slices with what these take as text: `[:, None]`.

  Args:
    known: of an attribute; others are returned as they are.
    tf1: graph and position of the operation.
    tf2: the same of the port's.
  """
  if known.op_type != 'StridedSlice' or not known.what.endswith('_mask'):
    return known
  texts = [slice_text(graph, position) for graph, position in (tf1, tf2)]
  is_told = all(texts) and texts[0] != texts[1]
  one, other = (f'[{text}]' for text in texts)
  return dataclasses.replace(known, tf1=one, tf2=other) if is_told else known


def other_end(one: Slice) -> Slice | None:
  """Returns a slice that leaves out as much at the other end: `:, 2:` for `:, :-2`.

  None where that is not along one axis, or the axis goes by another step than 1.
  """
  found: list[tuple[int, int, int | None]] = []
  for axis, first, last in _ranges(one):
    if first == 0 and last is not None and last < 0:
      found.append((axis, -last, None))
    elif last is None and first > 0:
      found.append((axis, 0, -first))
  return _with_range(one, *found[0]) if len(found) == 1 else None


def moved_by_one(one: Slice) -> Iterator[Slice]:
  """Yields a slice one element later and earlier along an axis: `2:` and `:-2` for `1:-1`."""
  for axis, first, last in _ranges(one):
    if last is not None:
      yield _with_range(one, axis, first + 1, last + 1 or None)
    if first > 0 and last != 0:
      yield _with_range(one, axis, first - 1, (last or 0) - 1)


def _ranges(one: Slice) -> Iterator[tuple[int, int, int | None]]:
  """Yields the axes of which a slice takes a range in steps of 1: first element, end, if any."""
  begin, end, strides = (bound.ravel().astype(int).tolist() for bound in one.bounds)
  masks = {name: int(value or 0) for name, value in one.masks}
  special = masks.get('ellipsis_mask', 0)
  passing = masks.get('new_axis_mask', 0) | masks.get('shrink_axis_mask', 0) | special
  for axis in range(one.axes):
    bit = 1 << axis
    first = 0 if masks.get('begin_mask', 0) & bit else begin[axis]
    last = None if masks.get('end_mask', 0) & bit else end[axis]
    if not passing & bit and strides[axis] == 1 and (first, last) != (0, None):
      yield axis, first, last


def _with_range(one: Slice, axis: int, first: int, last: int | None) -> Slice:
  """Returns a slice that takes another range along an axis."""
  begin, end, strides = (bound.ravel().astype(int).tolist() for bound in one.bounds)
  begin[axis], end[axis] = first, last or 0
  masks = {name: int(value or 0) for name, value in one.masks}
  for name, is_open in (('begin_mask', not first), ('end_mask', last is None)):
    masks[name] = masks.get(name, 0) & ~(1 << axis) | (is_open << axis)
  kept = tuple((name, masks.get(name, 0)) for name in dict.fromkeys((*dict(one.masks), *masks)))
  dtype = one.bounds[0].dtype
  bounds = tuple(np.asarray(bound, dtype) for bound in (begin, end, strides))
  text = f'{first or ""}:{"" if last is None else last}'
  return Slice(text, one.axes, kept, bounds)
