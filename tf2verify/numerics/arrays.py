"""Two arrays compared: presence, shape, dtype, non-finite pattern, values.

Nothing is broadcast, nothing is altered before it is compared, and nothing raises for
a mismatch.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.numerics import chunks, frontier
from tf2verify.numerics.tolerance import FLOATING_DTYPES, Tolerance, ToleranceTable, dtype_name
from tf2verify.numerics.ulps import ulp_histogram
from tf2verify.records.difference import (
  ArrayDifference,
  Aspect,
  Deviation,
  Difference,
  FrontierPoint,
  Judgement,
)
from tf2verify.records.tensor_key import TensorKey

_Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class ArrayComparison:
  """What comparing two arrays found.

  Invariants: `aspect` is None exactly where the arrays agree; `difference` is there
  exactly for NON_FINITE and VALUES; `identical` and `within_tolerance_of_zero` imply
  agreement and exclude each other.
  """

  # The first aspect that differs, in the order SHAPE, DTYPE, NON_FINITE, VALUES.
  aspect: Aspect | None
  # The numbers. It counts all mismatched elements, finite or not; its greatest relative difference
  # is that of those finite on both sides (NaN if there are none). Its worst element is the first
  # non-finite mismatch in C order, else the element that exceeds its own allowance the most.
  difference: ArrayDifference | None
  elements: int  # number of element pairs compared; 0 if shape or dtype differ
  identical: bool  # equal bit by bit, so that -0 is not 0
  # The arrays agree, but not bit by bit, and no |element| of either side exceeds atol: zeros would
  # have passed as well.
  within_tolerance_of_zero: bool
  # Of floating and complex arrays that differ, in values or not at all in the allowance, see
  # `Deviation`; None for others, and for those that are identical or differ in another aspect.
  frontier: tuple[FrontierPoint, ...] | None = None
  magnitude: float = 0.0  # see `Deviation`


@dataclasses.dataclass(frozen=True)
class TensorComparison:
  """What comparing two tensors, either of which may be absent, found."""

  difference: Difference | None  # the finding; None where the tensors agree
  elements: int  # number of element pairs compared
  inconclusive: bool  # `ArrayComparison.within_tolerance_of_zero`
  identical: bool  # equal bit by bit, or absent on both sides
  # What other tolerances would say; None where none would say otherwise.
  deviation: Deviation | None = None


def compare_arrays(tf1: _Array, tf2: _Array, tolerance: Tolerance) -> ArrayComparison:
  """Compares two arrays element by element, in one pass over chunks.

  A floating or complex element passes only if |tf2 - tf1| <= atol + rtol * |tf1| in
  float64 arithmetic, where a difference that overflows does not pass. NaN agrees with
  NaN, an infinity with the same infinity, -0 with 0. Everything else passes only if it
  is equal: integers, booleans, text (also as bytes), structured dtypes.

  Args:
    tf1: the reference; any shape, layout and byte order.
    tf2: the port.
    tolerance: the allowance of floating and complex elements; others ignore it.

  Returns:
    The comparison. Beyond the arrays it needs a few megabytes of memory, however large
    they are.
  """
  if tf1.shape != tf2.shape:
    return ArrayComparison(Aspect.SHAPE, None, 0, False, False)
  if dtype_name(tf1.dtype) != dtype_name(tf2.dtype):
    return ArrayComparison(Aspect.DTYPE, None, 0, False, False)
  rule = chunks.rule_for(tf1.dtype, tolerance)
  tally = _Tally()
  # Overflow and invalid operations are part of the rules.
  with np.errstate(all='ignore'):
    for start, tf1_chunk, tf2_chunk in _chunk_pairs(tf1, tf2, rule):
      tally.add(start, tf1_chunk, tf2_chunk, rule)
  floating = dtype_name(tf1.dtype) in FLOATING_DTYPES
  points = tally.frontier.points if floating and not tally.identical else None
  if not tally.mismatched:
    near_zero = tally.near_zero and not tally.identical
    return ArrayComparison(
      None, None, tf1.size, tally.identical, near_zero, points, tally.magnitude
    )
  aspect = Aspect.NON_FINITE if tally.non_finite else Aspect.VALUES
  difference = _array_difference(tf1, tf2, tally, rule.tolerance, floating)
  if tally.non_finite:
    points = None
  return ArrayComparison(aspect, difference, tf1.size, False, False, points, tally.magnitude)


def compare_tensors(
  key: TensorKey, tf1: _Array | None, tf2: _Array | None, tolerances: ToleranceTable
) -> TensorComparison:
  """Compares two tensors; None on one side only is a difference of presence.

  Args:
    key: which tensor it is, for the finding.
    tf1: the tf1 side; None where it has none.
    tf2: the tf2 side.
    tolerances: the allowance by dtype.
  """
  if tf1 is None or tf2 is None:
    if tf1 is tf2:
      return TensorComparison(None, 0, inconclusive=False, identical=True)
    absent = Difference.of(key, Aspect.PRESENCE, describe(tf1), describe(tf2))
    return TensorComparison(absent, 0, inconclusive=False, identical=False)
  tolerance = tolerances.for_dtype(tf1.dtype)
  found = compare_arrays(tf1, tf2, tolerance)
  difference = None
  if found.aspect is Aspect.SHAPE:
    difference = Difference.of(
      key, found.aspect, str(tf1.shape), str(tf2.shape), hint=_shape_hint(tf1, tf2)
    )
  elif found.aspect is Aspect.DTYPE:
    difference = Difference.of(key, found.aspect, dtype_name(tf1.dtype), dtype_name(tf2.dtype))
  elif found.aspect is not None:
    difference = Difference.of(key, found.aspect, array=found.difference)
  deviation = None
  if found.frontier is not None:
    judgement = Judgement.PASSED if difference is None else Judgement.FAILED
    if found.within_tolerance_of_zero:
      judgement = Judgement.NEAR_ZERO
    deviation = Deviation(
      key.quantity,
      key.subject,
      key.run,
      dtype_name(tf1.dtype),
      tolerance.rtol,
      tolerance.atol,
      found.frontier,
      found.magnitude,
      judgement,
      ulps=ulp_histogram(tf1, tf2),
    )
  return TensorComparison(
    difference, found.elements, found.within_tolerance_of_zero, found.identical, deviation
  )


def total(values: _Array) -> float:
  """Returns the sum of the elements, summed in float64."""
  return float(np.sum(values, dtype=np.float64))


def describe(value: _Array | None) -> str:
  """Returns shape and dtype as text: `(4, 8) float32`; `absent` for None."""
  return 'absent' if value is None else f'{value.shape} {dtype_name(value.dtype)}'


class _Tally:
  """What the chunks up to now have shown."""

  def __init__(self) -> None:
    self.identical = True
    self.near_zero = True
    self.mismatched = 0
    self.non_finite = False
    self.relative = math.nan
    self.worst = -1
    self.absolute = math.nan
    self.frontier = frontier.FrontierBuilder()
    self.magnitude = 0.0
    self._excess: float | int = -math.inf

  def add(self, start: int, tf1: _Array, tf2: _Array, rule: chunks.ChunkRule) -> None:
    """Adds a chunk that starts at the given position in C order."""
    same = rule.identical(tf1, tf2)
    # One large element settles it, so this costs nothing after the first chunk of
    # most tensors.
    if self.near_zero:
      self.near_zero = rule.near_zero(tf1) and (same or rule.near_zero(tf2))
    if same:
      return
    self.identical = False
    self.magnitude = max(self.magnitude, rule.sampled_greatest(tf1))
    found = rule.mismatch(tf1, tf2, self.frontier)
    if found is None:
      return
    self.mismatched += found.count
    self.relative = float(np.fmax(self.relative, found.relative))
    if self.non_finite:
      return
    if self.worst < 0 or found.non_finite or found.excess > self._excess:
      self.worst = start + found.worst
      self.absolute = found.absolute
      self.non_finite = found.non_finite
      self._excess = found.excess


def _chunk_pairs(
  tf1: _Array, tf2: _Array, rule: chunks.ChunkRule
) -> Iterator[tuple[int, _Array, _Array]]:
  """Yields position and chunks in C order: views where layout and dtype allow it."""
  # numpy's annotations do not know the flag `contig`.
  iterator = np.nditer(  # type: ignore[call-overload]
    [tf1, tf2],
    flags=['external_loop', 'buffered', 'zerosize_ok', 'refs_ok'],
    op_flags=[['readonly', 'contig'], ['readonly', 'contig']],
    op_dtypes=None if rule.work_dtype is None else [rule.work_dtype, rule.work_dtype],
    # The work dtype holds every value of the dtypes that it is chosen for, but a
    # dtype from outside numpy does not always say so.
    casting='unsafe',
    order='C',
    buffersize=rule.chunk_size,
  )
  start = 0
  for tf1_chunk, tf2_chunk in iterator:
    if tf1_chunk.size:
      yield start, tf1_chunk, tf2_chunk
    start += tf1_chunk.size


def _array_difference(
  tf1: _Array, tf2: _Array, tally: _Tally, tolerance: Tolerance, floating: bool
) -> ArrayDifference:
  required_atol = required_rtol = math.inf if tally.non_finite else None
  if floating and not tally.non_finite:
    points = tally.frontier.points
    required_atol = frontier.required_atol(points, tolerance.rtol)
    required_rtol = frontier.required_rtol(points, tolerance.atol)
  index = tuple(int(axis) for axis in np.unravel_index(tally.worst, tf1.shape))
  return ArrayDifference(
    shape=tf1.shape,
    dtype=dtype_name(tf1.dtype),
    mismatched=tally.mismatched,
    size=tf1.size,
    index=index,
    tf1=tf1.item(index),
    tf2=tf2.item(index),
    greatest_absolute=tally.absolute,
    greatest_relative=tally.relative,
    rtol=tolerance.rtol,
    atol=tolerance.atol,
    required_atol=required_atol,
    required_rtol=required_rtol,
  )


def _shape_hint(tf1: _Array, tf2: _Array) -> str:
  if tf1.size != tf2.size:
    return ''
  if [size for size in tf1.shape if size != 1] == [size for size in tf2.shape if size != 1]:
    return 'only axes of size 1 differ: maybe a squeeze, an expand_dims or keepdims on one side'
  if sorted(tf1.shape) == sorted(tf2.shape):
    return 'the same axes in a different order: maybe a transpose on one side'
  return 'the same number of elements: maybe a reshape or flatten on one side'
