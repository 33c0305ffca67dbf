"""The elements of a chunk that a frontier does not cover, found fast."""

from typing import Any

import numpy as np

from tf2verify.compare.frontier import SLACK, Corner, FrontierBuilder

_Array = np.ndarray[Any, Any]

# So many zeros are worth a look at the whole chunk.
_MANY = 1 / 64


class FrontierFilter:
  """Waves through what is under the corner of a frontier, which is most of a tensor."""

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
    passes = self._under_corner(tf1, difference, highest, frontier.corner)
    if passes.all():
      return None
    if passes.size - np.count_nonzero(passes) > _MANY * passes.size:
      passes |= difference == 0
    positions: _Array = np.flatnonzero(~passes)
    covered = frontier.covers(np.abs(tf1[positions]), self._most_moduli * difference[positions])
    return positions[~covered]

  def _under_corner(
    self, tf1: _Array, difference: _Array, highest: float, corner: Corner
  ) -> _Array:
    """Returns which elements are under the corner of the frontier, up to the slack."""
    slope = min(corner.slope * (1.0 + SLACK), self._greatest)
    top = corner.top * (1.0 + SLACK) / self._most_moduli
    bound = np.abs(tf1, out=self._magnitude[: tf1.size])
    np.multiply(bound, tf1.dtype.type(slope if slope >= self._least else 0.0), out=bound)
    passes = np.less_equal(difference, bound, out=self._passes[: tf1.size])
    if not highest <= top:
      passes &= difference <= tf1.dtype.type(min(top, self._greatest))
    return passes
