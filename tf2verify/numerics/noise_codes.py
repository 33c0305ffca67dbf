"""Noise in one byte an element, as a recording holds it.

A code stands for a share of the tensor's own size, so that the noise of a squared
gradient of 1e-12 is told as well as that of an image.
"""

import math
from typing import Any

import numpy as np

_Array = np.ndarray[Any, Any]

VERSION = 1
# Code 254 is 45 times the tensor's size; code 1 is 2**-57.75 of it, below the last bit
# of a float64.
_STEPS = 4
_CODE_OF_ONE = 232
_GREATEST_CODE = 254
UNKNOWN = 255


def scale(value: _Array) -> float:
  """Returns the least power of two above the greatest finite |element|; 1 where that is 0.

  Of a complex array it is the greatest modulus. It is held between 2**-1000 and 2**1000.
  """
  sizes = np.abs(_wide(value))
  greatest = float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
  if not greatest:
    return 1.0
  return math.ldexp(1.0, min(max(math.frexp(greatest)[1], -1000), 1000))


def encode(noise: _Array, value: _Array) -> _Array:
  """Returns uint8 codes: 0 for none, 255 for what is not finite, else rounded up.

  Noise of more than 45 times the tensor's size gets the code of that: no tensor so noisy
  tells anything.

  Args:
    noise: not negative; of the shape of `value`.
    value: the tensor as it is stored; floating or complex.
  """
  ratios = np.asarray(noise, np.float64) / scale(value)
  codes = np.searchsorted(_table()[:UNKNOWN], ratios.reshape(-1), side='left')
  codes = np.minimum(codes, _GREATEST_CODE).reshape(ratios.shape)
  return np.where(np.isfinite(ratios), codes, UNKNOWN).astype(np.uint8)


def decode(codes: _Array, value: _Array) -> _Array:
  """Returns the noise as float64, NaN where it is unknown; see `encode`."""
  return np.asarray(_table()[codes] * scale(value))


def _table() -> _Array:
  codes = np.arange(256, dtype=np.float64)
  table: _Array = 2.0 ** ((codes - _CODE_OF_ONE) / _STEPS)
  table[0], table[UNKNOWN] = 0.0, np.nan
  return table


def _wide(value: _Array) -> _Array:
  """Returns the values in float64 or complex128: bfloat16 is no float to numpy."""
  return value.astype(np.complex128 if value.dtype.kind == 'c' else np.float64)
