"""Rounding noise, in one byte for each element."""

import math

import numpy as np

from .arrays import Array


def noise_codes(noise: Array, value: Array) -> Array:
  """Returns one byte for each element: the noise on a scale of the tensor's own size.

  Code c stands for 2**((c - 232) / 4) times the least power of two above the greatest
  |value|, 0 for none, 255 for what is not finite; noise is rounded up.
  """
  sizes = np.abs(value.astype(np.complex128 if value.dtype.kind == 'c' else np.float64))
  greatest = float(sizes[np.isfinite(sizes)].max()) if np.isfinite(sizes).any() else 0.0
  exponent = min(max(math.frexp(greatest)[1], -1000), 1000) if greatest else 0
  table = 2.0 ** ((np.arange(255, dtype=np.float64) - 232) / 4)
  table[0] = 0.0
  ratios = np.asarray(noise, np.float64) / math.ldexp(1.0, exponent)
  codes = np.minimum(np.searchsorted(table, ratios.reshape(-1), side='left'), 254)
  return np.where(np.isfinite(ratios), codes.reshape(ratios.shape), 255).astype(np.uint8)
