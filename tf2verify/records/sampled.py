"""A large array of which a recording holds a part, and sums over all of it."""

from typing import Any

import numpy as np


class SampledArray(np.ndarray):
  """Some elements of an array, followed by signed means that every element is part of.

  One-dimensional, of the dtype of the array that it stands for. All of it is linear in
  that array, so that the difference of two of one layout stands for the difference of
  the arrays. `compare.sampling` tells which elements, and which means.

  Attributes:
    full_shape: of the array that it stands for.
    samples: how many single elements come first.
    block: how many consecutive elements each mean is of; 0 without means.
    sha256: of that array, see `compare.digest`; '' for what was computed from such
      arrays.
  """

  full_shape: tuple[int, ...]
  samples: int
  block: int
  sha256: str

  def __new__(
    cls,
    values: 'np.ndarray[Any, Any]',
    full_shape: tuple[int, ...],
    samples: int,
    block: int,
    sha256: str = '',
  ) -> 'SampledArray':
    """Wraps the values."""
    found = np.asarray(values).view(cls)
    found.full_shape = full_shape
    found.samples = samples
    found.block = block
    found.sha256 = sha256
    return found

  def __array_finalize__(self, made_from: 'np.ndarray[Any, Any] | None') -> None:
    """Keeps the layout; what is computed, or a part, has no digest."""
    self.full_shape = getattr(made_from, 'full_shape', ())
    self.samples = getattr(made_from, 'samples', 0)
    self.block = getattr(made_from, 'block', 0)
    self.sha256 = ''

  @property
  def full_dtype(self) -> 'np.dtype[Any]':
    """The dtype of the array that it stands for, which is its own."""
    return self.dtype

  @property
  def full_size(self) -> int:
    """The number of elements that it stands for."""
    return int(np.prod(self.full_shape, dtype=np.int64))
