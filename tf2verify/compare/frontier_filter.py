"""The elements of a chunk that a frontier does not cover, found fast."""

from typing import Any

import numpy as np

from tf2verify.compare.frontier import SLACK, FrontierBuilder

_Array = np.ndarray[Any, Any]

_BLOCK = 256
# A test that leaves more than this share is not the one for the next chunk.
_SHARE = 1 / 64


class FrontierFilter:
  """Waves most elements through, by one of two tests.

  - Rounding grows with the values: it is under a line through the origin.
  - Noise that does not grow with them is not, but is well under the frontier: a block
    of elements passes as a whole, its least |tf1| with its greatest |tf2 - tf1|.
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
    self._folded = np.empty((2, size // 2 + _BLOCK), dtype)
    self._passes = np.empty(size, np.bool_)
    self._by_blocks = False

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
    test = self._blocks if self._by_blocks else self._line
    passes = test(tf1, difference, highest, frontier)
    if passes.all():
      return None
    if passes.size - np.count_nonzero(passes) > _SHARE * passes.size:
      self._by_blocks = not self._by_blocks
      passes |= difference == 0
    positions: _Array = np.flatnonzero(~passes)
    covered = frontier.covers(np.abs(tf1[positions]), self._most_moduli * difference[positions])
    return positions[~covered]

  def _line(
    self, tf1: _Array, difference: _Array, highest: float, frontier: FrontierBuilder
  ) -> _Array:
    """Returns which elements are under the corner of the frontier, up to half its slack."""
    corner = frontier.corner
    slope = min(corner.slope * (1.0 + SLACK / 2), self._greatest)
    top = corner.top * (1.0 + SLACK / 2) / self._most_moduli
    bound = np.abs(tf1, out=self._magnitude[: tf1.size])
    np.multiply(bound, tf1.dtype.type(slope if slope >= self._least else 0.0), out=bound)
    passes = np.less_equal(difference, bound, out=self._passes[: tf1.size])
    if not highest <= top:
      passes &= difference <= tf1.dtype.type(min(top, self._greatest))
    return passes

  def _blocks(
    self, tf1: _Array, difference: _Array, highest: float, frontier: FrontierBuilder
  ) -> _Array:
    """Returns which elements are in blocks that the frontier covers.

    A block is a column of the chunk in rows of `_BLOCK` elements.
    """
    del highest
    whole = tf1.size // _BLOCK * _BLOCK
    passes = self._passes[: tf1.size]
    passes[...] = False
    if whole:
      magnitude = np.abs(tf1, out=self._magnitude[: tf1.size])
      # Zeros of a ReLU on both sides are under any frontier.
      np.copyto(magnitude, np.inf, where=difference == 0)
      least = _fold(np.minimum, magnitude[:whole], self._folded[0])
      most = _fold(np.maximum, difference[:whole], self._folded[1])
      passes[:whole].reshape(-1, _BLOCK)[...] = frontier.covers(least, self._most_moduli * most)
    return passes


def _fold(function: np.ufunc, vector: _Array, scratch: _Array) -> _Array:
  """Reduces the rows of `_BLOCK` elements to one, faster than `ufunc.reduce` does."""
  rows = vector.reshape(-1, _BLOCK)
  while len(rows) > 1:
    half = (len(rows) + 1) // 2
    folded = scratch[: half * _BLOCK].reshape(half, _BLOCK)
    # Where the number of rows is odd, the one in the middle meets itself.
    function(rows[:half], rows[-half:], out=folded)
    rows = folded
  row: _Array = rows[0]
  return row
