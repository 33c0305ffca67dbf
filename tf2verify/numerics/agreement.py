"""How far two intermediate tensors are apart, in two numbers."""

import dataclasses
import functools
import math

import numpy as np

from tf2verify.reference.arrays import widened

# Different forms of one computation round differently, by a few units in the last
# place of the largest element; this many machine epsilons are still taken for that.
ROUNDING_EPSILONS = 16
# Next to a mask of -1e9 that hides any difference. Where an element has lost half of its
# digits, and more than the rounding of the small elements, it takes a closer look. Sums
# that cancel out leave one or two such elements in a thousand.
_SMALL = 0.1
_MANY = 0.005
_SAMPLE = 2**16


@dataclasses.dataclass(frozen=True)
class Agreement:
  """Two tensors side by side."""

  identical: bool  # equal element by element, NaN equal to NaN
  # Greatest difference; infinite where shape, dtype or the pattern of non-finite elements differ.
  absolute: float
  scale: float  # greatest finite magnitude of the tf1 side
  epsilon: float  # machine epsilon of the dtype; 0 where elements are compared exactly
  # Whether elements differ by much of their own size, though by little beside the greatest: they
  # cancel out, or the greatest ones hide a difference. Only looked at where `is_rounding`.
  is_doubtful: bool = False

  @property
  def relative(self) -> float:
    """`absolute` over `scale`."""
    if self.identical:
      return 0.0
    return self.absolute / self.scale if self.scale else math.inf

  @property
  def is_rounding(self) -> bool:
    """Whether no more than rounding is to be seen relative to the greatest element."""
    return self.identical or self.relative <= ROUNDING_EPSILONS * self.epsilon


IDENTICAL = Agreement(True, 0.0, 0.0, 0.0)


def agreement(tf1: np.ndarray, tf2: np.ndarray) -> Agreement:
  """Compares two arrays."""
  floating = tf1.dtype.kind in 'fcV'
  epsilon = _epsilon(tf1.dtype) if floating else 0.0
  if tf1.shape != tf2.shape or tf1.dtype != tf2.dtype:
    return Agreement(False, math.inf, _scale(tf1), epsilon)
  if not floating:
    if tf1.dtype.kind not in 'iu':
      same = bool(np.array_equal(tf1, tf2))
      return Agreement(same, 0.0 if same else 1.0, 1.0, 0.0)
    apart = np.abs(tf1.astype(np.float64) - tf2.astype(np.float64))
    same = bool(np.array_equal(tf1, tf2))  # float64 does not hold every int64
    absolute = 0.0 if same else max(float(apart.max()), 1.0)
    return Agreement(same, absolute, _scale(tf1), 0.0)
  if tf1.tobytes() == tf2.tobytes():
    return Agreement(True, 0.0, _scale(tf1), epsilon)
  one, other = widened(tf1), widened(tf2)
  finite = np.isfinite(one) & np.isfinite(other)
  same = (one == other) | (np.isnan(one) & np.isnan(other))
  if same.all():
    return Agreement(True, 0.0, _scale(tf1), epsilon)
  if not (finite | same).all():
    return Agreement(False, math.inf, _scale(tf1), epsilon)
  with np.errstate(over='ignore'):
    apart = np.abs(np.subtract(one, other, out=np.zeros_like(one), where=finite))
  found = Agreement(False, float(apart.max(initial=0.0)), _scale(tf1), epsilon)
  if found.is_rounding and _is_doubtful(one, other, apart, epsilon):
    return dataclasses.replace(found, is_doubtful=True)
  return found


def _is_doubtful(tf1: np.ndarray, tf2: np.ndarray, apart: np.ndarray, epsilon: float) -> bool:
  magnitude, other = (np.where(np.isfinite(one), np.abs(one), 0.0) for one in (tf1, tf2))
  beyond = apart > math.sqrt(epsilon) * magnitude
  if not beyond.any():
    return False
  sizes = np.maximum(magnitude, other)  # a mask may be added to what is zero on one side
  sizes = sizes[sizes > 0]
  sizes = sizes[:: max(1, sizes.size // _SAMPLE)]
  small = float(np.quantile(sizes, _SMALL)) if sizes.size else 0.0
  beyond &= apart > ROUNDING_EPSILONS * epsilon * small
  return bool(np.count_nonzero(beyond) > _MANY * beyond.size)


def _scale(array: np.ndarray) -> float:
  if array.dtype.kind not in 'fciuV' or not array.size:
    return 1.0
  magnitude = np.abs(widened(array))
  finite = magnitude[np.isfinite(magnitude)]
  return float(finite.max(initial=0.0))


@functools.cache
def _epsilon(dtype: np.dtype) -> float:
  if dtype.name == 'bfloat16':
    return 2.0**-7
  if dtype.name.startswith('float8'):
    return 2.0**-2
  return float(np.finfo(dtype).eps)
