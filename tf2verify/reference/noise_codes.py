"""Noise in one byte an element, as a recording holds it.

A code stands for a share of the tensor's own size, so that the noise of a squared
gradient of 1e-12 is told as well as that of an image.
"""

import math

import numpy as np

from .arrays import Array, widened

# Code 254 is 45 times the tensor's size; code 1 is 2**-57.75 of it, below the last bit
# of a float64.
_STEPS = 4
_CODE_OF_ONE = 232
_GREATEST_CODE = 254
UNKNOWN_NOISE = 255


def noise_scale(value: Array) -> float:
  """Returns the least power of two above the greatest finite |element|; 1 where that is 0.

  Of a complex array it is the greatest modulus. It is held between 2**-1000 and 2**1000.
  """
  # To float64 or complex128: bfloat16 is no float to numpy.
  sizes = np.abs(widened(value))
  greatest = float(sizes[np.isfinite(sizes)].max()) if np.isfinite(sizes).any() else 0.0
  exponent = min(max(math.frexp(greatest)[1], -1000), 1000) if greatest else 0
  return math.ldexp(1.0, exponent)


def noise_codes(noise: Array, value: Array) -> Array:
  """Returns uint8 codes: 0 for none, 255 for what is not finite, else rounded up.

  Noise of more than 45 times the tensor's size gets the code of that: no tensor so noisy
  tells anything.

  Args:
    noise: not negative; of the shape of `value`.
    value: the tensor as it is stored; floating or complex.
  """
  ratios = np.asarray(noise, np.float64) / noise_scale(value)
  codes = np.searchsorted(_noise_table()[:UNKNOWN_NOISE], ratios.reshape(-1), side='left')
  codes = np.minimum(codes, _GREATEST_CODE).reshape(ratios.shape)
  return np.where(np.isfinite(ratios), codes, UNKNOWN_NOISE).astype(np.uint8)


def noise_of_codes(codes: Array, value: Array) -> Array:
  """Returns the noise as float64, NaN where it is unknown; see `noise_codes`."""
  return np.asarray(_noise_table()[codes] * noise_scale(value))


def _noise_table() -> Array:
  table = 2.0 ** ((np.arange(256, dtype=np.float64) - _CODE_OF_ONE) / _STEPS)
  table[0], table[UNKNOWN_NOISE] = 0.0, np.nan
  return table
