"""Whether arrays hold the same numbers, but for rounding and shape."""

import numpy as np

# Of the greatest element: numbers that are closer are the same but for rounding.
_SAME = 1e-4
_MASKED = 1e6


def holds_one_number(array: np.ndarray) -> bool:
  """Returns whether an array has elements, and all are the same."""
  return bool(array.size) and bool((array == array.flat[0]).all())


def are_same(one: np.ndarray, other: np.ndarray) -> bool:
  """Returns whether two arrays have the same elements in the same order, in whatever shapes.

  Infinities and NaN are the same where both have them.

  Args:
    one: the array that says how much rounding may be, of any dtype.
    other: the other one.
  """
  if one.size != other.size or one.dtype.kind not in 'fc':
    return one.size == other.size and bool((one.ravel() == other.ravel()).all())
  first, second = one.ravel(), other.ravel()
  # What a mask has put there is no measure of the others.
  huge = np.abs(first) >= _MASKED
  return _near(first[huge], second[huge]) and _near(first[~huge], second[~huge])


def _near(one: np.ndarray, other: np.ndarray) -> bool:
  finite = np.isfinite(one) & np.isfinite(other)
  if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
    return False
  with np.errstate(all='ignore'):
    apart = np.max(np.abs(one[finite] - other[finite]), initial=0.0)
    return bool(apart <= _SAME * np.max(np.abs(one[finite]), initial=0.0))
