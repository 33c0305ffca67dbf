"""How far rounding alone moves a tensor, and whether a difference is more than that.

The reference is run again with its values moved by one unit in the last place (see
`moving`); how far a tensor then is from what it was is its noise. The method is
Monte Carlo arithmetic (D. S. Parker 1997) with the inputs alone moved, akin to CESTAC
(J. Vignes 1978, 1993), which moves every result. docs/noise.md has the measurements
behind the constants.
"""

import dataclasses
import enum
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.numerics.tolerance import Tolerance
from tf2verify.reference.arrays import widened

_Array = np.ndarray[Any, Any]

# How often the reference is run with moved values before a difference is excused.
RUNS = 8
# How often where few elements of a tensor are beyond their own noise: rounding comes in
# steps, so an element can be the same in all of eight runs.
MOST_RUNS = 32
# A tensor's greatest difference is rounding up to this multiple of its noise. Of 149
# tensors beyond the tolerance though right, the greatest was at 0.87.
FACTOR = 2.0
# The same element by element, since the greatest noise of eight runs can be small there
# by chance.
ELEMENT_FACTOR = 16.0
# Up to this share of the elements beyond the tolerance (at least one) is few.
_FEW = 0.05
# A tensor whose noise is this share of its greatest element tells nothing.
SHARE = 0.01
# After one, two, ... runs, a difference beyond this multiple of the noise is settled. Of
# normally distributed noise, one difference in 1e3 (first run) to 1e4 is as large.
_SETTLED = (1000.0, 100.0, 30.0, 16.0)
# A tensor of fewer elements can be still in one run, and is settled after four.
_SMALL = 1000
# How far, in noise, an element of a run that moves nothing may be from the reference
# beyond the tolerance.
_REPEATS = 0.1
_CHUNK = 2**17


class Kind(enum.Enum):
  """What a difference beyond the tolerance is."""

  ROUNDING = 'rounding'
  DEGENERATE = 'degenerate'
  DIFFERENT = 'different'


@dataclasses.dataclass(frozen=True)
class NoiseVerdict:
  """A difference beside the noise."""

  # ROUNDING: no more than the noise explains, and the noise is well below the tensor's own size.
  # DEGENERATE: no more than the noise explains, and the noise is as large as the tensor, so that
  # nothing else could be seen either. DIFFERENT: everything else, also where no noise could be
  # measured.
  kind: Kind
  difference: float  # greatest |tf2 - tf1| of the elements beyond the tolerance
  # Greatest |moved - tf1| of all elements and runs; NaN where it could not be measured.
  noise: float
  size: float  # greatest |tf1| of the finite elements
  # The element that is furthest beyond its own noise, in C order, where that and not `noise` makes
  # it DIFFERENT; -1 elsewhere.
  index: int = -1
  index_noise: float = math.nan  # the noise of that element; NaN elsewhere
  # Whether the elements beyond their own noise are so few that more runs may explain them.
  doubtful: bool = False

  @property
  def ratio(self) -> float:
    """How many times the noise the difference is."""
    return self.difference / self.noise if self.noise else math.inf


class Spread:
  """Moved runs of one tensor around the reference.

  It needs memory of the tensor's own size from the first run on, but for a tensor that
  is settled then: the many tensors of a port that is wrong.

  Attributes:
    settled: whether more runs would change nothing: the tensor is DIFFERENT.
  """

  def __init__(self, tf1: _Array, tf2: _Array, tolerance: Tolerance) -> None:
    """Takes two tensors of one shape and dtype that differ in values.

    Args:
      tf1: the reference, of a dtype that has `fraction_bits`.
      tf2: the port.
      tolerance: elements within it count for nothing.
    """
    self._shape = tf1.shape
    self._tf1, self._tf2 = tf1.reshape(-1), tf2.reshape(-1)
    self._tolerance = tolerance
    self._noise: _Array | None = None
    self._greatest = math.nan
    self._runs = 0
    self.settled = False
    self._difference = self._size = 0.0
    for part in _parts(tf1.size):
      tf1_part = _wide(self._tf1[part])
      self._difference = max(self._difference, float(self._beyond(part).max()))
      self._size = max(self._size, float(np.abs(tf1_part[np.isfinite(tf1_part)]).max(initial=0.0)))

  def add(self, moved: _Array | None) -> None:
    """Adds what a perturbed run gave; None, another shape or a new NaN leaves no noise to tell."""
    self.look(moved)
    self.keep(moved)

  def look(self, moved: _Array | None) -> None:
    """The first half of `add`, which needs no memory: whether that settles it."""
    if self.settled:
      return
    self._runs += 1
    comparable = moved is not None and moved.shape == self._shape
    flat = moved.reshape(-1) if moved is not None and comparable else self._tf1
    greatest = self._greatest_spread(flat) if comparable else math.nan
    self._greatest = greatest if self._runs == 1 else float(np.maximum(self._greatest, greatest))
    limit = _SETTLED[min(self._runs, len(_SETTLED)) - 1]
    if flat.size < _SMALL and self._runs < len(_SETTLED):
      limit = math.inf
    still = self._greatest == 0 and limit == math.inf
    # Where the noise is NaN, too.
    self.settled = not (still or self._difference <= limit * self._greatest)

  def keep(self, moved: _Array | None) -> None:
    """The second half of `add`: the noise element by element."""
    if self.settled:
      self._noise = None
      return
    flat = moved.reshape(-1) if moved is not None else self._tf1
    if self._noise is None:
      wide = self._tf1.dtype in (np.dtype(np.float64), np.dtype(np.complex128))
      self._noise = np.zeros(flat.size, np.float64 if wide else np.float32)
    for part in _parts(flat.size):
      noise = self._noise[part]
      np.maximum(noise, self._spread(flat, part), out=noise, casting='same_kind')

  def repeats(self, again: _Array | None) -> bool:
    """Returns whether a run that moved nothing gave the reference, or something close by.

    Threads may add up in another order, so the last bits may differ; a random op that
    no seed reaches would make a noise of its draws, and is caught here.
    """
    if again is None or again.shape != self._shape or self._noise is None:
      return False
    flat = again.reshape(-1)
    for part in _parts(flat.size):
      spread = self._spread(flat, part)
      allowed = self._allowed(_wide(self._tf1[part]))
      if not np.all((spread <= _REPEATS * self._noise[part]) | (spread <= allowed)):
        return False
    return True

  def judged(self) -> NoiseVerdict:
    """Returns the verdict after the runs so far."""
    verdict = NoiseVerdict(Kind.DIFFERENT, self._difference, self._greatest, self._size)
    if self._noise is None or not self._greatest >= 0:
      return verdict
    if self._difference > FACTOR * self._greatest:
      # An element that an optimizer amplifies (its gradient is hardly more than epsilon) can be the
      # only one, and its noise too small by chance.
      few = self._difference <= ELEMENT_FACTOR * self._greatest and self._are_few(self._greatest)
      return dataclasses.replace(verdict, doubtful=few)
    index, few = self._furthest(self._noise)
    if index >= 0:
      index_noise = float(self._noise[index])
      return dataclasses.replace(verdict, index=index, index_noise=index_noise, doubtful=few)
    degenerate = self._greatest >= SHARE * self._size
    return dataclasses.replace(verdict, kind=Kind.DEGENERATE if degenerate else Kind.ROUNDING)

  def different(self) -> NoiseVerdict:
    """Returns the verdict of a tensor that nothing is to excuse, with the noise so far."""
    return NoiseVerdict(Kind.DIFFERENT, self._difference, self._greatest, self._size)

  def _beyond(self, part: slice) -> _Array:
    """Returns |tf2 - tf1| of the elements beyond the tolerance, and 0 for the others."""
    # In the precision of the comparison, or one element could be beyond there only.
    tf1, tf2 = widened(self._tf1[part]), widened(self._tf2[part])
    with np.errstate(all='ignore'):
      difference: _Array = np.abs(tf2 - tf1)
    # NaN and infinities agree where the aspect is VALUES.
    difference[~(difference > self._allowed(tf1)) | ~np.isfinite(tf1)] = 0.0
    return difference

  def _allowed(self, tf1: _Array) -> _Array:
    with np.errstate(all='ignore'):
      allowed: _Array = self._tolerance.atol + self._tolerance.rtol * np.abs(tf1)
    return allowed

  def _spread(self, moved: _Array, part: slice) -> _Array:
    tf1 = _wide(self._tf1[part])
    with np.errstate(all='ignore'):
      spread: _Array = np.abs(_wide(moved[part]) - tf1)
    if not math.isfinite(spread.max()):
      spread[~np.isfinite(tf1)] = 0.0
    return spread

  def _greatest_spread(self, moved: _Array) -> float:
    """Returns the greatest |moved - tf1|; NaN where a finite element became non-finite."""
    greatest = 0.0
    for part in _parts(moved.size):
      found = float(self._spread(moved, part).max())
      if not math.isfinite(found):
        return math.nan
      greatest = max(greatest, found)
    return greatest

  def _are_few(self, noise: float) -> bool:
    """Returns whether few elements beyond the tolerance are beyond `FACTOR` times a noise."""
    count = mismatched = 0
    for part in _parts(self._tf1.size):
      beyond = self._beyond(part)
      count += int(np.count_nonzero(beyond > FACTOR * noise))
      mismatched += int(np.count_nonzero(beyond))
    return count <= max(1, _FEW * mismatched)

  def _furthest(self, noise: _Array) -> tuple[int, bool]:
    """Returns the element furthest beyond its own noise (-1: none), and whether few are."""
    worst, index, count, mismatched = 0.0, -1, 0, 0
    for part in _parts(noise.size):
      beyond = self._beyond(part)
      excess = beyond - ELEMENT_FACTOR * noise[part]
      count += int(np.count_nonzero(excess > 0))
      mismatched += int(np.count_nonzero(beyond))
      position = int(excess.argmax())
      if excess[position] > worst:
        worst, index = float(excess[position]), part.start + position
    return index, count <= max(1, _FEW * mismatched)


def _parts(size: int) -> Iterator[slice]:
  for start in range(0, size, _CHUNK):
    yield slice(start, start + _CHUNK)


def _wide(values: _Array) -> _Array:
  """Returns the values in float32 or wider: a noise need not be exact."""
  return values.astype(np.float32) if values.dtype.itemsize < 4 else values
