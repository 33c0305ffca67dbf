"""Values that variables are set to."""

import hashlib
import math
from typing import Any, Callable, Optional, Tuple

import numpy as np

from .arrays import Array, is_inexact
from .sequences import size_of
from .versions import VERSIONS

DISTINCT_VALUES = 'distinct values'
CONSTANT_VALUES = "the guide's constant 0.001"
GUIDE_CONSTANT = 0.001

Fill = Callable[[str, Tuple[int, ...], Any], Any]

_POSITIVE_WORDS = ('variance', 'moving_var', 'running_var', 'stddev', 'sigma')


def _fan_in(name: str, shape: Tuple[int, ...]) -> int:
  if 'embedding' in name.lower():
    return shape[-1]  # one row is looked up, no sum over the rows
  return size_of(shape[:-2] if 'depthwise' in name.lower() else shape[:-1])


def distinct_values(name: str, shape: Tuple[int, ...], dtype: Any) -> Optional[Array]:
  """Returns values that differ from variable to variable and from element to element.

  Magnitudes in [0.5, 1.5), scaled by 1 / sqrt(fan-in) where the rank is 2 or more;
  either sign, but where the name says that a variance is meant. None, which keeps the
  initial value, for a dtype that is not floating or complex.
  """
  if not is_inexact(dtype):
    return None
  seed = hashlib.sha256('{}:{}'.format(VERSIONS['fill'], name).encode()).digest()
  generator = np.random.RandomState(np.frombuffer(seed, dtype='<u4'))
  words = generator.randint(0, 2**32, size=size_of(shape), dtype=np.uint32)
  # The lower 23 bits become the fraction of a float32 in [1, 2), the highest the sign.
  fractions = (words & np.uint32(0x007FFFFF)) | np.uint32(0x3F800000)
  values = fractions.view(np.float32)
  values -= np.float32(0.5)
  if not any(word in name.lower() for word in _POSITIVE_WORDS):
    fractions |= words & np.uint32(0x80000000)
    if len(shape) >= 2 and values.size:
      values *= np.float32(1.0 / math.sqrt(_fan_in(name, shape)))
  return np.asarray(values.astype(dtype, copy=False).reshape(shape))


def constant_values(name: str, shape: Tuple[int, ...], dtype: Any) -> Optional[Array]:
  """Returns 0.001 for every element, as TensorFlow's migration guide has it."""
  return np.full(shape, GUIDE_CONSTANT, dtype) if is_inexact(dtype) else None
