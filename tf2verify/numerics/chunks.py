"""The rules by which two chunks of elements are compared.

A chunk is a contiguous vector that fits into the cache. `rule_for` picks the rule
for a dtype; a rule finds the elements of a chunk that are too far apart.
"""

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tf2verify.numerics.frontier import FrontierBuilder
from tf2verify.numerics.frontier_filter import FrontierFilter
from tf2verify.numerics.tolerance import EXACT, FLOATING_DTYPES, Tolerance, dtype_name

_Array = np.ndarray[Any, Any]
_Dtype = np.dtype[Any]

# With three float32 scratch vectors this stays within a 1 MiB second-level cache.
_CHUNK_BYTES = 2**18

_GREATEST = float(np.finfo(np.float64).max)
# Elements of a chunk that are looked at to learn how large a tensor is.
_SAMPLE = 1024
# Well above the subnormal range of float32.
_SMALL = 2.0**-100


@dataclasses.dataclass(frozen=True)
class ChunkMismatch:
  """The elements of one chunk that are too far apart."""

  count: int  # how many, at least 1
  # Position of the worst: the first non-finite mismatch if there is one, else the first of those
  # with the greatest `excess`.
  worst: int
  non_finite: bool  # whether the worst is a mismatch of the non-finite pattern
  excess: float | int  # |tf2 - tf1| minus the allowance, at the worst
  absolute: float  # |tf2 - tf1| at the worst; NaN where it cannot be formed
  # Greatest |tf2 - tf1| / |tf1| of the mismatches that are finite on both sides; infinite where tf1
  # is 0, NaN if there is none.
  relative: float


class ChunkRule(abc.ABC):
  """When two elements agree.

  Attributes:
    work_dtype: what the chunks have to be cast to (without loss); None for as
      they are.
    chunk_size: greatest number of elements in a chunk.
    tolerance: the allowance; zero where the rule is exact.
  """

  def __init__(self, work_dtype: _Dtype | None, itemsize: int, tolerance: Tolerance) -> None:
    self.work_dtype = work_dtype
    self.chunk_size = max(1, _CHUNK_BYTES // max(1, itemsize))
    self.tolerance = tolerance

  @abc.abstractmethod
  def identical(self, tf1: _Array, tf2: _Array) -> bool:
    """Returns whether the chunks are the same, bit by bit."""

  @abc.abstractmethod
  def mismatch(self, tf1: _Array, tf2: _Array, frontier: FrontierBuilder) -> ChunkMismatch | None:
    """Returns the elements that are too far apart; None if there are none.

    Args:
      tf1: a chunk.
      tf2: the chunk of the other side.
      frontier: takes the elements that decide about other tolerances, of all
        chunks before and of this one; exact rules leave it as it is.
    """

  def near_zero(self, chunk: _Array) -> bool:
    """Returns whether every |element| is at most atol."""
    del chunk
    return False

  def sampled_greatest(self, chunk: _Array) -> float:
    """Returns the greatest |element| of a sample; infinite where one is not finite."""
    del chunk
    return 0.0


def rule_for(dtype: _Dtype, tolerance: Tolerance) -> ChunkRule:
  """Returns the rule for a dtype; `tolerance` matters to floating and complex ones only."""
  name = dtype_name(dtype)
  if name in FLOATING_DTYPES:
    return _FloatingRule(dtype, tolerance)
  if name == 'str':
    return _OpaqueRule(dtype.itemsize, _unequal_text)
  if dtype.kind in 'biu' or name.startswith(('int', 'uint')):
    return _IntegerRule(None, 8, EXACT)
  return _OpaqueRule(dtype.itemsize, _unequal)


class _FloatingRule(ChunkRule):
  """|tf2 - tf1| <= atol + rtol * |tf1|, as float64 (complex128) arithmetic has it.

  NaN agrees with NaN, an infinity with the same infinity, for a complex number
  component by component. A difference of finite numbers that overflows float64 is a
  mismatch. A modulus is as numpy rounds it, which is within its last bit.

  In float32 most elements are waved through by the same inequality with a reduced
  allowance, and as elements that are under the frontier for sure; the few others are
  looked at in float64.
  """

  def __init__(self, dtype: _Dtype, tolerance: Tolerance) -> None:
    self._is_complex = dtype.kind == 'c'
    wide = dtype_name(dtype) in ('float64', 'complex128')
    real: Any = np.float64 if wide else np.float32
    work = np.dtype((np.complex128 if wide else np.complex64) if self._is_complex else real)
    super().__init__(work, work.itemsize, tolerance)
    self._bits = np.dtype(np.uint64 if wide else np.uint32)
    self._real = np.dtype(real)
    # Components within it have a modulus that does not overflow.
    self._greatest = self._real.type(np.finfo(real).max * (0.7 if self._is_complex else 1))
    self._rtol, self._atol = self._reduced()
    components = self.chunk_size * (2 if self._is_complex else 1)
    self._difference = np.empty(components, real)
    self._allowance = np.empty(components, real)
    self._filter = FrontierFilter(self._real, components, 1.5 if self._is_complex else 1.0)

  def _reduced(self) -> tuple[Any, Any]:
    """Returns rtol and atol such that what passes with them passes the exact rule.

    - Each of the four float32 roundings is off by at most 2**-24 relative, or
      2**-150 absolute: 2**-20 and the bounds at 2**-100 leave room for all.
    - In float64 the inequality is the rule itself.
    - Both components within 0.7 of the allowance: the modulus is within 0.99 of it.
    """
    rtol, atol = self.tolerance.rtol, self.tolerance.atol
    share = 1.0 if self._real.itemsize == 8 else 1.0 - 2**-20
    if self._is_complex:
      share = 0.7
    rtol, atol = rtol * share, atol * share
    if share < 1:
      tiny = 2.0**-100 if self._real.itemsize == 4 else 2.0**-1000
      rtol = rtol if rtol >= tiny else 0.0
      atol = atol if atol >= tiny else -tiny
    return self._real.type(min(rtol, float(self._greatest))), self._real.type(
      min(atol, float(self._greatest))
    )

  def identical(self, tf1: _Array, tf2: _Array) -> bool:
    return not np.any(tf1.view(self._bits) != tf2.view(self._bits))

  def near_zero(self, chunk: _Array) -> bool:
    if self._is_complex:
      return bool(np.max(np.abs(chunk.astype(np.complex128))) <= self.tolerance.atol)
    # As Python floats: numpy 2 would round atol to float32 here.
    return (
      float(np.max(chunk)) <= self.tolerance.atol and -float(np.min(chunk)) <= self.tolerance.atol
    )

  def sampled_greatest(self, chunk: _Array) -> float:
    greatest = float(np.max(np.abs(chunk[:: max(1, chunk.size // _SAMPLE)])))
    return greatest if greatest < math.inf else math.inf

  def mismatch(self, tf1: _Array, tf2: _Array, frontier: FrontierBuilder) -> ChunkMismatch | None:
    difference = np.subtract(
      tf2.view(self._real), tf1.view(self._real), out=self._difference[: self._components(tf1)]
    )
    np.abs(difference, out=difference)
    highest = np.max(difference)
    # NaN and what overflows fail this.
    if frontier.top < highest <= self._greatest:
      position = int(np.argmax(difference)) // (2 if self._is_complex else 1)
      one, other = self._widened(np.array([position]), tf1, tf2)
      frontier.add(np.abs(one), np.abs(other - one))
    candidates = self._candidates(tf1.view(self._real), difference, float(highest), frontier)
    if candidates is None or not candidates.size:
      return None
    if self._is_complex:
      candidates = np.unique(candidates // 2)
    return self._exact(candidates, tf1, tf2, frontier)

  def _components(self, chunk: _Array) -> int:
    return chunk.size * (2 if self._is_complex else 1)

  def _candidates(
    self, tf1: _Array, difference: _Array, highest: float, frontier: FrontierBuilder
  ) -> _Array | None:
    """Returns the positions that may be mismatches, or above the frontier; None for none."""
    uncovered = self._filter.uncovered(tf1, difference, highest, frontier)
    tolerance = self.tolerance
    if highest <= self._atol:
      return uncovered
    # As long as all elements up to now pass, so do those that their frontier covers.
    if tolerance.atol >= _SMALL and frontier.passes(tolerance.rtol, tolerance.atol):
      return uncovered
    passes = self._within_allowance(tf1, difference, highest)
    if uncovered is not None:
      passes[uncovered] = False
    return None if passes.all() else np.flatnonzero(~passes)

  def _within_allowance(self, tf1: _Array, difference: _Array, highest: float) -> _Array:
    """Returns which elements pass with the reduced allowance."""
    allowance = np.abs(tf1, out=self._allowance[: tf1.size])
    np.multiply(allowance, self._rtol, out=allowance)
    np.add(allowance, self._atol, out=allowance)
    passes: _Array = difference <= allowance
    if not highest <= self._greatest:
      # An infinite difference is within an infinite allowance.
      passes &= difference <= self._greatest
    return passes

  def _widened(self, positions: _Array, tf1: _Array, tf2: _Array) -> tuple[_Array, _Array]:
    exact = np.complex128 if self._is_complex else np.float64
    return tf1[positions].astype(exact), tf2[positions].astype(exact)

  def _exact(
    self, positions: _Array, tf1: _Array, tf2: _Array, frontier: FrontierBuilder
  ) -> ChunkMismatch | None:
    tf1, tf2 = self._widened(positions, tf1, tf2)
    difference = np.abs(tf2 - tf1)
    # A modulus can overflow: infinity times an rtol of 0 would be NaN.
    magnitude = np.minimum(np.abs(tf1), _GREATEST)
    allowance = magnitude * self.tolerance.rtol
    allowance += self.tolerance.atol
    np.minimum(allowance, _GREATEST, out=allowance)
    excess = np.subtract(difference, allowance, out=allowance)
    bad = ~(excess <= 0)
    astray = np.zeros(0, np.intp)
    if not np.isfinite(difference).all():
      doubtful = np.flatnonzero(~(np.isfinite(tf1) & np.isfinite(tf2)))
      bad[doubtful] = False
      agree = _non_finite_agree(tf1[doubtful], tf2[doubtful], self.tolerance)
      astray = doubtful[~agree]
      finite = np.ones(bad.size, np.bool_)
      finite[doubtful] = False
      frontier.add(magnitude[finite], difference[finite])
      if self._is_complex:
        _add_finite_components(tf1[doubtful], tf2[doubtful], frontier)
    else:
      frontier.add(magnitude, difference)
    bad_finite = np.flatnonzero(bad)
    if not astray.size and not bad_finite.size:
      return None
    worst = int(astray[0]) if astray.size else int(bad_finite[np.argmax(excess[bad_finite])])
    relative = difference[bad_finite] / magnitude[bad_finite]
    return ChunkMismatch(
      count=astray.size + bad_finite.size,
      worst=int(positions[worst]),
      non_finite=astray.size > 0,
      excess=float(excess[worst]),
      absolute=float(difference[worst]),
      relative=float(relative.max()) if relative.size else math.nan,
    )


def _non_finite_agree(tf1: _Array, tf2: _Array, tolerance: Tolerance) -> _Array:
  """Returns where NaN meets NaN and an infinity the same infinity.

  A complex number agrees if both components do; one that is finite beside another that
  is not has no modulus to go by, so it is compared by itself.
  """
  if np.iscomplexobj(tf1):
    real = _non_finite_agree(tf1.real, tf2.real, tolerance)
    return real & _non_finite_agree(tf1.imag, tf2.imag, tolerance)
  finite = np.isfinite(tf1) & np.isfinite(tf2)
  allowance = np.minimum(tolerance.atol + tolerance.rtol * np.abs(tf1), _GREATEST)
  within = np.abs(tf2 - tf1) <= allowance
  same: _Array = (tf1 == tf2) | (np.isnan(tf1) & np.isnan(tf2)) | (finite & within)
  return same


def _add_finite_components(tf1: _Array, tf2: _Array, frontier: FrontierBuilder) -> None:
  """Adds the components that are compared by themselves, see `_non_finite_agree`."""
  for one, other in ((tf1.real, tf2.real), (tf1.imag, tf2.imag)):
    finite = np.isfinite(one) & np.isfinite(other)
    frontier.add(np.abs(one[finite]), np.abs(other[finite] - one[finite]))


def _unequal(tf1: _Array, tf2: _Array) -> _Array:
  return np.asarray(tf1 != tf2)


def _unequal_text(tf1: _Array, tf2: _Array) -> _Array:
  """Text counts as its UTF-8 bytes, which is what TensorFlow holds."""
  pairs = zip(tf1.tolist(), tf2.tolist(), strict=True)
  return np.fromiter((_as_bytes(x) != _as_bytes(y) for x, y in pairs), np.bool_, tf1.size)


def _as_bytes(element: Any) -> Any:
  return element.encode('utf-8', 'surrogatepass') if isinstance(element, str) else element


class _OpaqueRule(ChunkRule):
  """Equal or not: dtypes without arithmetic. The worst is the first."""

  def __init__(self, itemsize: int, unequal: Callable[[_Array, _Array], _Array]) -> None:
    super().__init__(None, itemsize, EXACT)
    self._unequal = unequal

  def identical(self, tf1: _Array, tf2: _Array) -> bool:
    return not np.any(self._unequal(tf1, tf2))

  def mismatch(self, tf1: _Array, tf2: _Array, frontier: FrontierBuilder) -> ChunkMismatch | None:
    del frontier
    positions = np.flatnonzero(self._unequal(tf1, tf2))
    if not positions.size:
      return None
    return ChunkMismatch(positions.size, int(positions[0]), False, 0, math.nan, math.nan)


class _IntegerRule(ChunkRule):
  """Integers and booleans, exactly; the worst is where they are farthest apart."""

  def identical(self, tf1: _Array, tf2: _Array) -> bool:
    return not np.any(_unequal(tf1, tf2))

  def mismatch(self, tf1: _Array, tf2: _Array, frontier: FrontierBuilder) -> ChunkMismatch | None:
    del frontier
    positions = np.flatnonzero(_unequal(tf1, tf2))
    if not positions.size:
      return None
    wide = np.uint64 if tf1.dtype == np.uint64 else np.int64
    x, y = tf1[positions].astype(wide), tf2[positions].astype(wide)
    # Two int64 can be farther apart than int64 reaches: the wrapped difference, read
    # as uint64, is right.
    difference = (np.maximum(x, y) - np.minimum(x, y)).view(np.uint64)
    worst = int(np.argmax(difference))
    relative = difference.astype(np.float64) / np.abs(x.astype(np.float64))
    return ChunkMismatch(
      count=positions.size,
      worst=int(positions[worst]),
      non_finite=False,
      excess=int(difference[worst]),
      absolute=float(difference[worst]),
      relative=float(relative.max()),
    )
