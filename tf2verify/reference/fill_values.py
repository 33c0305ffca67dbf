"""Values that variables are set to."""

import hashlib
import math
import re
from typing import Any, Callable, Optional, Tuple

import numpy as np

from .arrays import Array, is_inexact
from .sequences import size_of
from .versions import VERSIONS

DISTINCT_VALUES = 'distinct values'
CONSTANT_VALUES = "the guide's constant 0.001"
GUIDE_CONSTANT = 0.001

Fill = Callable[[str, Tuple[int, ...], Any], Any]

# What a variable of one bound of a range is called, as by tf.contrib.quantize: a fake quantization
# whose least value is above its greatest is undefined, and XLA's differs there.
_SIGNS = {'min': -1.0, 'max': 1.0}
_POSITIVE_WORDS = ('variance', 'moving_var', 'running_var', 'stddev', 'sigma')
# The same as a word of its own, at the end of a name: `bn/var`, `pop_var`.
_POSITIVE_ENDS = re.compile(r'(^|[/_])(var|std)(_?(ema|avg|average|mean))?(_?\d+)?$')


def _fan_in(name: str, shape: Tuple[int, ...]) -> int:
  if 'embedding' in name.lower():
    return shape[-1]  # one row is looked up, no sum over the rows
  return size_of(shape[:-2] if 'depthwise' in name.lower() else shape[:-1])


def _last_word(name: str) -> str:
  return name.rpartition('/')[2].lower()


def is_bound(name: str, shape: Tuple[int, ...]) -> bool:
  """Returns whether a variable is called as one bound of a range."""
  return len(shape) <= 1 and _last_word(name) in _SIGNS


def _is_positive(name: str) -> bool:
  return any(word in name for word in _POSITIVE_WORDS) or bool(_POSITIVE_ENDS.search(name))


def distinct_values(name: str, shape: Tuple[int, ...], dtype: Any) -> Optional[Array]:
  """Returns values that differ from variable to variable and from element to element.

  One constant for all (the guide's 0.001) hides transposed kernels, swapped
  variables, permuted gates and a changed order of channels.

  The magnitude is uniform in [0.5, 1.5): with random signs for a weight, scaled
  by 1 / sqrt(fan-in) where the rank is 2 or more, so that activations neither
  vanish nor explode; positive where the name says that a variance is meant,
  negative for `min` and positive for `max`, the bounds of a range.
  The draws come from numpy's frozen `RandomState`, seeded by the SHA-256 of the
  name, so that they are the same in every version.

  Args:
    name: the variable's tf1 name.
    shape: its shape.
    dtype: its dtype.

  Returns:
    The values; None for a dtype that is not floating or complex, whose
    initial value (a step, an index table) has a meaning.
  """
  if not is_inexact(dtype):
    return None
  seed = hashlib.sha256('{}:{}'.format(VERSIONS['fill'], name).encode()).digest()
  generator = np.random.RandomState(np.frombuffer(seed, dtype='<u4'))
  words = generator.randint(0, 2**32, size=size_of(shape), dtype=np.uint32)
  # A word's lower 23 bits become the fraction of a float32 in [1, 2), its highest
  # bit the sign: no rounding, and no float64 copy of a large variable.
  fractions = (words & np.uint32(0x007FFFFF)) | np.uint32(0x3F800000)
  values = fractions.view(np.float32)
  values -= np.float32(0.5)
  if is_bound(name, shape):
    values *= np.float32(_SIGNS[_last_word(name)])
  elif not _is_positive(name.lower()):
    fractions |= words & np.uint32(0x80000000)
    if len(shape) >= 2 and values.size:
      values *= np.float32(1.0 / math.sqrt(_fan_in(name, shape)))
  return np.asarray(values.astype(dtype, copy=False).reshape(shape))


def constant_values(name: str, shape: Tuple[int, ...], dtype: Any) -> Optional[Array]:
  """Returns 0.001 for every element, as TensorFlow's guide has it; None as `distinct_values`."""
  return np.full(shape, GUIDE_CONSTANT, dtype) if is_inexact(dtype) else None
