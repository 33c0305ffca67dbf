"""Values that operations have: attributes, and constants that they read."""

import math
from typing import Any

import numpy as np


def same(one: Any, other: Any) -> bool:
  """Returns whether two values of an operation are one, in any shape that is broadcast."""
  if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape and one.dtype.kind == other.dtype.kind == 'f':
      return _is_broadcast(one, other)  # a mask for all channels, say
    return one.shape == other.shape and bool(np.array_equal(one, other))
  if isinstance(one, float) and isinstance(other, float):
    return math.isclose(one, other, rel_tol=1e-6)
  return bool(one == other)


def _is_broadcast(one: np.ndarray, other: np.ndarray) -> bool:
  try:
    return bool(np.all(np.equal(one, other)))
  except ValueError:
    return False


def plain(value: Any) -> Any:
  """Returns a value of Python; None for a large array."""
  if isinstance(value, np.ndarray):
    return value.tolist() if value.size <= 64 else None
  return value
