"""The elements of a chunk that a frontier does not cover, found fast."""

from typing import Any

import numpy as np

from tf2verify.numerics.frontier import SLACK, FrontierBuilder

_Array = np.ndarray[Any, Any]

_SAMPLE = 256
# So many zeros are worth a look at the whole chunk.
_MANY = 1 / 64


class FrontierFilter:
  """Waves through what is under one corner of a frontier, which is most of a tensor.

  Rounding, which grows with the values, is best under the corner of the highest
  vertex, noise that does not grow under that of a vertex near zero. A sample tells.
  """

  def __init__(self, dtype: np.dtype[Any], size: int, most_moduli: float) -> None:
    """Allocates scratch vectors.

    Args:
      dtype: float32 or float64.
      size: the greatest number of elements in a chunk.
      most_moduli: how many times the greater component a modulus can be; 1 for
        real numbers.
    """
    self._greatest = float(np.finfo(dtype).max)
    self._least = float(np.finfo(dtype).tiny)
    self._most_moduli = most_moduli
    self._magnitude = np.empty(size, dtype)
    self._passes = np.empty(size, np.bool_)
    self._slope = self._top = 0.0
    self._is_good = False

  def uncovered(
    self, tf1: _Array, difference: _Array, highest: float, frontier: FrontierBuilder
  ) -> _Array | None:
    """Returns the positions of the elements that may be above a frontier; None for none.

    Differences in the subnormal range may be missed.

    Args:
      tf1: a chunk of numbers, or of the components of complex ones.
      difference: |tf2 - tf1|, in the same dtype.
      highest: the greatest difference; NaN where one is.
      frontier: of the elements up to now.
    """
    if not self._is_good or not highest <= self._top * (1.0 + SLACK):
      self._choose_corner(tf1, difference, frontier)
    passes = self._under_corner(tf1, difference, highest)
    self._is_good = bool(passes.all())
    if self._is_good:
      return None
    if passes.size - np.count_nonzero(passes) > _MANY * passes.size:
      passes |= difference == 0
    positions: _Array = np.flatnonzero(~passes)
    covered = frontier.covers(np.abs(tf1[positions]), self._most_moduli * difference[positions])
    return positions[~covered]

  def _choose_corner(self, tf1: _Array, difference: _Array, frontier: FrontierBuilder) -> None:
    step = max(1, tf1.size // _SAMPLE)
    magnitudes, differences = np.abs(tf1[::step]), difference[::step]
    slopes, tops = frontier.corners()
    beyond = (differences > slopes[:, None] * magnitudes) | (differences > tops[:, None])
    beyond_any = np.count_nonzero(beyond, axis=1)
    best = int(np.flatnonzero(beyond_any == beyond_any.min())[-1])
    self._slope, self._top = float(slopes[best]), float(tops[best])

  def _under_corner(self, tf1: _Array, difference: _Array, highest: float) -> _Array:
    """Returns which elements are under the corner, up to the slack."""
    slope = min(self._slope * (1.0 + SLACK), self._greatest)
    top = self._top * (1.0 + SLACK) / self._most_moduli
    bound = np.abs(tf1, out=self._magnitude[: tf1.size])
    np.multiply(bound, tf1.dtype.type(slope if slope >= self._least else 0.0), out=bound)
    passes = np.less_equal(difference, bound, out=self._passes[: tf1.size])
    if not highest <= top:
      passes &= difference <= tf1.dtype.type(min(top, self._greatest))
    return passes
