"""Numbers by which arrays are found that may have the same elements, in whatever order."""

import numpy as np

from tf2verify.reference.arrays import widened

# Sums of one set of numbers in two orders agree this far.
_CLOSE = 1e-4


def signature(value: np.ndarray) -> np.ndarray:
  """Returns three numbers that do not depend on the order of the elements."""
  wide = np.abs(widened(value))
  finite = wide[np.isfinite(wide)]
  if not finite.size:
    return np.zeros(3)
  return np.array([finite.sum(), np.sqrt(np.square(finite).sum()), finite.max()])


def may_be_alike(one: np.ndarray, others: np.ndarray) -> np.ndarray:
  """Returns which signatures allow that arrays yield the same as another one.

  Args:
    one: the signature of that.
    others: those of the arrays, in rows.
  """
  return np.asarray((np.abs(one - others) <= _CLOSE * np.maximum(one, others)).all(axis=-1))
