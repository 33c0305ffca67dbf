"""Distributions that initial values are drawn from: read from draws, and compared."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from tf2verify.records.distribution import Distribution, Family

# Two initializers of the same distribution differ by the rounding of their constants:
# 0.8796 for the standard deviation of a truncated normal is 3e-5 off.
RTOL = 1e-4
# A value follows from a draw up to a share of its spread, and some units in the last place.
_OF_SPREAD = 2e-5
_UNITS = 8
_UNIT = {2: 2**-8, 4: 2**-24, 8: 2**-53}
_HIDDEN = {2: 0.1, 4: 1e-4, 8: 1e-4}
# Elements that a line is put through.
_POINTS = 1024
# A difference of so many standard errors is none of chance: 3e-7 a time.
_STANDARD_ERRORS = 5.0
# The two-sided Kolmogorov-Smirnov statistic is beyond this once in 3e6 times.
_KOLMOGOROV = 2.8
# No number within this, over how many there are, of an end: once in 3e6 times.
_AT_AN_END = 15.0
# Of fewer numbers no spread is known.
_FEW = 64
# Of fewer repetitions nothing is said of single elements. So many standard errors of one are
# no chance among all elements, of 64 repetitions and of fewer.
_REPEATED = 16
_OF_MANY, _OF_FEW = 8.0, 12.0
# What a test of values has to be able to show: a scale that is this far off.
TELLING = 0.03


def points(array: np.ndarray) -> np.ndarray:
  """Returns the elements that decide whether a value follows from a draw, copied."""
  step = max(1, array.size // _POINTS)
  taken: np.ndarray = array.reshape(-1)[::step].copy()
  return taken


@dataclasses.dataclass(frozen=True)
class ValueRange:
  """Minimum, maximum and mean of an array: a few different elements change them."""

  least: float
  greatest: float
  mean: float

  @classmethod
  def of(cls, array: np.ndarray) -> 'ValueRange':
    """Returns that of a floating array with elements."""
    array = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    return cls(float(array.min()), float(array.max()), float(array.mean(dtype=np.float64)))


def distribution_behind(
  family: Family,
  draw: np.ndarray,
  value: np.ndarray,
  extents: tuple[ValueRange, ValueRange] | None = None,
) -> Distribution | None:
  """Returns what a value is drawn from that is a draw, scaled and shifted.

  Args:
    family: of the draw: uniform from 0 to 1, or normal of mean 0 and standard deviation
      1, truncated at 2 or not.
    draw: the random numbers, or `points` of them.
    value: what was made of them, or `points` of it.
    extents: of both as a whole; None where `draw` and `value` are that.

  Returns:
    The distribution, up to rounding; None where the value is no affine function of the
    draw, element by element, where two elements are too few to tell, or where rounding
    hides the scale.
  """
  if draw.size != value.size or draw.size < 3 or value.dtype.kind not in 'fV':
    return None
  one, other = (points(array).astype(np.float64) for array in (draw, value))
  if not np.isfinite(other).all() or np.ptp(one) == 0:
    return None
  centred = one - one.mean()
  factor = float((centred * (other - other.mean())).sum() / (centred * centred).sum())
  offset = float(other.mean() - factor * one.mean())
  spread = float(np.ptp(other))
  rounding = _UNITS * _UNIT.get(value.dtype.itemsize, 2**-8) * float(np.abs(other).max())
  if factor == 0 or rounding > _HIDDEN.get(value.dtype.itemsize, 0.1) * spread:
    return None
  allowed = _OF_SPREAD * spread + rounding
  if np.abs(other - factor * one - offset).max() > allowed:
    return None
  # A table whose few elements lie between the points: a diagonal.
  drawn, made = extents or (ValueRange.of(draw), ValueRange.of(value))
  ends = sorted(offset + factor * end for end in (drawn.least, drawn.greatest))
  expected = (*ends, offset + factor * drawn.mean)
  found = (made.least, made.greatest, made.mean)
  if not all(abs(a - b) <= 4 * allowed for a, b in zip(expected, found, strict=True)):
    return None
  if family is Family.UNIFORM:
    return Distribution(family, min(offset, offset + factor), abs(factor))
  return Distribution(family, offset, abs(factor))


def same_distribution(one: Distribution, other: Distribution, rtol: float = RTOL) -> bool:
  """Returns whether two distributions are the same, up to the rounding of their constants."""
  allowed = rtol * max(one.scale, other.scale)
  return (
    one.family is other.family
    and abs(one.scale - other.scale) <= allowed
    and abs(one.location - other.location) <= allowed
  )


def sample(family: Family, shape: Sequence[int], number: int, seed: int) -> np.ndarray:
  """Returns numbers as a random op of a family would draw them, the same every time.

  Args:
    family: what to draw from.
    shape: of the numbers. Those of two shapes with as many elements are the same.
    number: which draw of an initializer it is.
    seed: which of its repetitions.
  """
  generator = np.random.RandomState([number, seed, len(family.value)])
  size = math.prod(shape)
  if family is Family.UNIFORM:
    found = generator.random_sample(size)
  else:
    found = generator.standard_normal(size)
    while family is Family.TRUNCATED_NORMAL and (beyond := np.abs(found) >= 2).any():
      found[beyond] = generator.standard_normal(int(beyond.sum()))
  return found.reshape(tuple(shape))


def rounding_of(dtype: np.dtype) -> float:
  """Returns up to what share two distributions are the same that are read from this dtype."""
  return RTOL if dtype.itemsize > 2 else 1e-2


def relation(
  tf1: Sequence[np.ndarray], tf2: Sequence[np.ndarray], rtol: float = RTOL
) -> str | None:
  """Returns how values that were made of the same random numbers differ.

  Args:
    tf1: values, one array a repetition, of at least three.
    tf2: those of the other side, of the same random numbers.
    rtol: how far apart they may be, relative to the greatest.

  Returns:
    '' where they are the same up to rounding; as text, what differs where each element is
    an affine function of that of tf1; None where it is not, or where only its sign differs,
    which need not change a distribution.
  """
  if [array.shape for array in tf1] != [array.shape for array in tf2]:
    return None
  one, other = (np.stack([np.asarray(array, np.float64) for array in side]) for side in (tf1, tf2))
  greatest = np.abs(other).max(initial=0.0)
  if not (np.isfinite(one).all() and np.isfinite(other).all() and greatest > 0):
    return None
  if np.abs(other - one).max() <= rtol * greatest:
    return ''
  means = one.mean(axis=0), other.mean(axis=0)
  spread = ((one - means[0]) ** 2).sum(axis=0)
  factors = ((one - means[0]) * (other - means[1])).sum(axis=0) / np.where(spread, spread, 1.0)
  offsets = means[1] - factors * means[0]
  if np.abs(factors * one + offsets - other).max() > rtol * greatest:
    return None
  scaled = np.abs(np.abs(factors) - 1) > rtol
  scaled &= spread > 0
  if scaled.all():
    first = factors.flat[0]
    if np.abs(factors - first).max() <= rtol * abs(first):
      return f'{first:.4g} times what tf1 makes of the same random numbers'
  if not scaled.any():
    return None
  at = tuple(int(n) for n in np.argwhere(scaled)[0])
  return f'at {at} {factors[at]:.4g} times what tf1 makes of the same random numbers'


@dataclasses.dataclass(frozen=True)
class SampleTest:
  """What repeated draws tell of two distributions."""

  difference: str  # what differs, as text; '' where nothing can be seen to
  elements: int  # how many numbers of each side were looked at, the lesser of the two
  # How far apart two scales have to be, relatively, to be seen; infinite where that is not known.
  resolution: float

  @property
  def is_telling(self) -> bool:
    """Whether a scale that is 3 % off would have been seen."""
    return self.resolution <= TELLING


def values_test(tf1: Sequence[np.ndarray], tf2: Sequence[np.ndarray]) -> SampleTest:
  """Compares two distributions by what was drawn from them.

  Looks at the mean, at the root mean square about the mean of tf1, of the whole and of
  every index of every axis, and at the distribution of all elements (Kolmogorov and
  Smirnov); of enough repetitions also at the mean of every element, at the spread about
  that, and at whether they are the same numbers in another order. What is said to differ
  does so by more than five standard errors.

  Args:
    tf1: initial values of a variable, one array a repetition.
    tf2: those of the other side, of the same shape.
  """
  ones, others = (np.stack([np.asarray(a, np.float64) for a in side]) for side in (tf1, tf2))
  elements = min(ones.size, others.size)
  if not (np.isfinite(ones).all() and np.isfinite(others).all()):
    return SampleTest('not all of them are finite', elements, math.inf)
  centre, spread = float(ones.mean()), float(ones.std())
  if max(ones.size, others.size) < _FEW or not elements or spread == 0:
    return SampleTest('', elements, math.inf)
  one, other = (_Moments.of((side - centre) / spread) for side in (ones, others))
  one, other = one.with_errors_as(other), other.with_errors_as(one)
  resolution = _STANDARD_ERRORS * math.hypot(one.scale_error, other.scale_error)
  difference = (
    _moments_differ(one, other, centre, spread)
    or _slices_differ((ones - centre) / spread, (others - centre) / spread)
    or _elements_differ((ones - centre) / spread, (others - centre) / spread)
    or _orders_differ(ones, others)
  )
  if not difference:
    distance = _kolmogorov(ones.ravel(), others.ravel())
    if elements >= _FEW and distance > _KOLMOGOROV * math.sqrt(1 / ones.size + 1 / others.size):
      difference = f'the fraction of elements below some number differs by {100 * distance:.2g} %'
  return SampleTest(difference, elements, resolution)


def at_ends(test: SampleTest, known: Distribution, values: Sequence[np.ndarray]) -> SampleTest:
  """Looks at how near numbers come to the ends of a uniform distribution, and not beyond.

  That shows a scale with far fewer numbers than their spread does: of n numbers, none is within
  c/n of the width of an end by chance once in exp(c) times.

  Args:
    test: of what was drawn from both distributions.
    known: that of one side, from its operations.
    values: what was drawn on the other side.
  """
  numbers = np.unique(np.concatenate([np.ravel(value) for value in values])).astype(np.float64)
  if known.family is not Family.UNIFORM or test.difference or numbers.size < _FEW:
    return test
  low, high = known.location, known.location + known.scale
  allowed = max(rounding_of(value.dtype) for value in values) * known.scale
  gap = _AT_AN_END / numbers.size * known.scale + allowed
  least, greatest = float(numbers[0]), float(numbers[-1])
  is_beyond = least < low - allowed or greatest > high + allowed
  if is_beyond or least > low + gap or greatest < high - gap:
    text = f'one side draws from {low:.4g} to {high:.4g}, and the other one numbers from '
    return dataclasses.replace(test, difference=f'{text}{least:.4g} to {greatest:.4g}')
  # Each end moves by half of what the width does.
  return dataclasses.replace(test, resolution=min(test.resolution, 2 * _AT_AN_END / numbers.size))


@dataclasses.dataclass(frozen=True)
class _Moments:
  """Mean and root mean square of numbers, and the standard errors of both."""

  mean: float
  scale: float
  mean_error: float
  scale_error: float
  count: int

  def with_errors_as(self, other: '_Moments') -> '_Moments':
    """Returns them with the errors that as many numbers of the other side would have.

    Of a few numbers the spread, and with it the error, is not known.
    """
    if self.count >= _FEW or other.count <= self.count:
      return self
    factor = math.sqrt(other.count / max(self.count, 1))
    mean_error = max(self.mean_error, factor * other.mean_error)
    scale_error = max(self.scale_error, factor * other.scale_error)
    return dataclasses.replace(self, mean_error=mean_error, scale_error=scale_error)

  @classmethod
  def of(cls, numbers: np.ndarray) -> '_Moments':
    """Returns them for arrays along the first axis, independent of each other."""
    squares = numbers * numbers
    mean, square = float(numbers.mean()), float(squares.mean())
    if square == 0:
      return cls(mean, 0.0, 0.0, 0.0, numbers.size)
    if len(numbers) >= 16:  # elements of one array need not be independent
      axes = tuple(range(1, numbers.ndim))
      count = len(numbers)
      spreads = numbers.mean(axis=axes).std(), squares.mean(axis=axes).std()
    else:
      count = numbers.size
      spreads = numbers.std(), squares.std()
    mean_error, square_error = (float(spread) / math.sqrt(count) for spread in spreads)
    scale_error = square_error / (2 * square)
    return cls(mean, math.sqrt(square), mean_error, scale_error, numbers.size)


def _moments_differ(one: _Moments, other: _Moments, centre: float, spread: float) -> str:
  ratio = other.scale / one.scale if one.scale else math.inf
  allowed = _STANDARD_ERRORS * math.hypot(one.scale_error, other.scale_error)
  if abs(ratio - 1) > allowed + RTOL:
    return f'the scale of the port is {ratio:.4g} times that of tf1'
  allowed = _STANDARD_ERRORS * math.hypot(one.mean_error, other.mean_error)
  if abs(other.mean - one.mean) > allowed + RTOL:
    means = (centre + spread * moments.mean for moments in (one, other))
    return 'the mean is {:.4g} in tf1 and {:.4g} in the port'.format(*means)
  return ''


def _slices_differ(ones: np.ndarray, others: np.ndarray) -> str:
  """Returns the first slice of an axis whose scale differs: gates, heads, rows of padding."""
  if ones.shape[1:] != others.shape[1:]:
    return ''
  for axis in range(1, ones.ndim):
    if ones.shape[axis] < 2:
      continue
    others_axes = tuple(n for n in range(ones.ndim) if n != axis)
    stats = []
    for side in (ones, others):
      squares = side * side
      square = squares.mean(axis=others_axes)
      count = squares.size // squares.shape[axis]
      stats.append((square, squares.std(axis=others_axes) / math.sqrt(count)))
    (one, one_error), (other, other_error) = stats
    # Of few elements the standard error itself is not known: one more tenth of the scale.
    errors = 1.4 * _STANDARD_ERRORS * np.hypot(one_error, other_error)
    beyond = np.flatnonzero(np.abs(other - one) > errors + 0.1 * np.maximum(one, other))
    if beyond.size and min(ones.size, others.size) // ones.shape[axis] >= 256:
      at = int(beyond[0])
      ratio = math.sqrt(other[at] / one[at]) if one[at] else math.inf
      place = f'at index {at} of axis {axis - 1}'
      return f'{place} the scale of the port is {ratio:.4g} times that of tf1'
  return ''


def _elements_differ(ones: np.ndarray, others: np.ndarray) -> str:
  """Returns what differs of elements by themselves: a fixed part, or what is drawn beside it."""
  count = min(len(ones), len(others))
  if count < _REPEATED or ones.shape[1:] != others.shape[1:]:
    return ''
  means = [side.mean(axis=0) for side in (ones, others)]
  squares = [(side - mean) ** 2 for side, mean in zip((ones, others), means, strict=True)]
  errors = [np.sqrt(square.mean(axis=0) / len(square)) for square in squares]
  # Of few repetitions the spread of one element is not known, that of all together is.
  errors = [np.maximum(error, math.sqrt((error * error).mean())) for error in errors]
  sure = _OF_MANY if count >= _FEW else _OF_FEW
  beyond = np.abs(means[1] - means[0]) > sure * np.hypot(*errors) + RTOL
  if beyond.any():
    at = tuple(int(n) for n in np.argwhere(beyond)[0])
    return f'at {at} the mean of many draws differs'
  axes = tuple(range(1, ones.ndim))
  one, other = (square.mean(axis=axes) for square in squares)
  if not one.any() or not other.any():
    return '' if one.any() == other.any() else 'one of the two is the same at every draw'
  ratio = math.sqrt(other.mean() / one.mean())
  allowed = _STANDARD_ERRORS * math.hypot(
    *(float(square.std() / square.mean()) / (2 * math.sqrt(count)) for square in (one, other))
  )
  if abs(ratio - 1) > allowed + RTOL:
    return f'about its mean, the scale of the port is {ratio:.4g} times that of tf1'
  return ''


def _orders_differ(ones: np.ndarray, others: np.ndarray) -> str:
  """Returns whether only one side draws the same numbers in another order every time."""
  if min(len(ones), len(others)) < 2:
    return ''
  alike = []
  for side in (ones, others):
    in_order = np.sort(side.reshape(len(side), -1), axis=1)
    alike.append(bool((in_order == in_order[0]).all() and (side != side[0]).any()))
  if alike[0] == alike[1]:
    return ''
  whose = ('tf1 draws', 'the port') if alike[0] else ('the port draws', 'tf1')
  return f'{whose[0]} the same numbers in a different order every time, unlike {whose[1]}'


def _kolmogorov(one: np.ndarray, other: np.ndarray) -> float:
  """Returns the greatest distance of two empirical distribution functions."""
  one, other = np.sort(one), np.sort(other)
  points = np.concatenate([one, other])
  below = [np.searchsorted(side, points, side='right') / side.size for side in (one, other)]
  return float(np.abs(below[0] - below[1]).max())
