"""A large array of which a recording holds a part, and sums over all of it."""

from typing import Any

import numpy as np


class SampledArray(np.ndarray):  # type: ignore[type-arg]
  """Some elements of an array, followed by sums that every element is part of.

  One-dimensional. All of it is linear in the array that it stands for, so that the
  difference of two of one layout stands for the difference of the arrays.
  `compare.sampling` tells which elements, and which sums.

  Attributes:
    full_shape: of the array that it stands for.
    sha256: of that array, see docs/recordings.md; '' for what was computed from
      such arrays.
  """

  full_shape: tuple[int, ...]
  sha256: str

  def __new__(
    cls, values: 'np.ndarray[Any, Any]', full_shape: tuple[int, ...], sha256: str = ''
  ) -> 'SampledArray':
    """Wraps the values."""
    found = np.asarray(values).view(cls)
    found.full_shape = full_shape
    found.sha256 = sha256
    return found

  def __array_finalize__(self, made_from: 'np.ndarray[Any, Any] | None') -> None:
    """Keeps the shape; what is computed, or a part, has no digest."""
    self.full_shape = getattr(made_from, 'full_shape', ())
    self.sha256 = ''

  @property
  def full_size(self) -> int:
    """The number of elements that it stands for."""
    return int(np.prod(self.full_shape, dtype=np.int64))
