"""Comparison of sampled tensors of a recording with the port's."""

import dataclasses

import numpy as np

from tf2verify.numerics.arrays import TensorComparison, compare_tensors
from tf2verify.numerics.sampling import Views, is_whole
from tf2verify.numerics.tolerance import ToleranceTable
from tf2verify.records.difference import Difference
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.sampled import SampledArray
from tf2verify.records.tensor_key import TensorKey


@dataclasses.dataclass(frozen=True, eq=False)
class SampleResult:
  """What was compared, and the result."""

  result: TensorComparison  # by the ordinary rules; a difference's index is that of the whole array
  tf1: np.ndarray  # what was compared of the reference's tensor
  tf2: np.ndarray  # what was compared of the port's
  views: Views | None = None  # where that is but a part; None elsewhere
  by_digest: bool = False  # whether a tensor that is held in part was compared as a whole

  def failed(self) -> FailedTensor | None:
    """Returns the arrays behind the difference, of a part the samples alone; None without any."""
    found = self.result.difference
    if found is None or isinstance(self.tf1, SampledArray):
      return None
    pair = (self.tf1, self.tf2) if self.views is None else self.views.samples()
    return FailedTensor(found.quantity, found.tf1_subject, found.run, *pair)


def compare_either(
  key: TensorKey, tf1: np.ndarray, tf2: np.ndarray, tolerances: ToleranceTable
) -> SampleResult:
  """Compares as `compare_tensors` does, also a tensor that a recording holds in part.

  Of that all elements where the digests are equal, else the views.

  Args:
    key: which tensor it is.
    tf1: the reference's; a `SampledArray` where it is held in part.
    tf2: the port's.
    tolerances: the allowance by dtype.
  """
  if not isinstance(tf1, SampledArray):
    return SampleResult(compare_tensors(key, tf1, tf2, tolerances), tf1, tf2)
  if is_whole(tf1, tf2):
    same = TensorComparison(None, tf2.size, inconclusive=False, identical=True)
    return SampleResult(same, tf1, tf2, by_digest=True)
  if tf1.full_shape != tf2.shape or tf1.full_dtype != tf2.dtype:
    # Shape and dtype are compared first; no element of it is looked at.
    empty = np.broadcast_to(np.zeros((), tf1.full_dtype), tf1.full_shape)
    return SampleResult(compare_tensors(key, empty, tf2, tolerances), tf1, tf2)
  views = Views(tf1, tf2)
  result = compare_tensors(key, views.tf1, views.tf2, tolerances)
  if result.difference is not None:
    placed = _placed(result.difference, views, tf1)
    result = dataclasses.replace(result, difference=placed)
  return SampleResult(result, views.tf1, views.tf2, views)


def _placed(difference: Difference, views: Views, tf1: SampledArray) -> Difference:
  """Returns a difference of the views as one of the whole array."""
  array = difference.array
  if array is None:
    return difference
  position = array.index[0]
  element, is_block = views.element(position)
  index = tuple(int(axis) for axis in np.unravel_index(element, tf1.full_shape))
  placed = dataclasses.replace(
    array, shape=tf1.full_shape, index=index, sampled=True, block=tf1.block if is_block else 0
  )
  if is_block:
    one, other = views.means(position)
    placed = dataclasses.replace(placed, tf1=one, tf2=other)
  return dataclasses.replace(difference, array=placed)


class SampledCount:
  """How many of the compared tensors a recording holds in part."""

  def __init__(self) -> None:
    self._by_views = self._by_digest = 0

  def add(self, looked: SampleResult) -> None:
    """Counts a tensor, if it is one of them."""
    self._by_views += looked.views is not None
    self._by_digest += looked.by_digest

  def merge(self, other: 'SampledCount') -> None:
    """Adds what another one has counted."""
    self._by_views += other._by_views
    self._by_digest += other._by_digest

  def notes(self) -> list[str]:
    """Returns how they were compared, for a report; empty where there were none."""
    whole = 'the same bit by bit (SHA-256)'
    if self._by_views:
      verb = 'is' if self._by_digest == 1 else 'are'
      rest = f'; {self._by_digest:,} more {verb} {whole}' if self._by_digest else ''
      return [
        f'{_tensors(self._by_views)} compared by 1,024 elements of each, and by signed means of 64 '
        f'elements, which every element is part of{rest}'
      ]
    held = f'{_tensors(self._by_digest)}, of which the recording holds a part: {whole}'
    return [held] if self._by_digest else []


def _tensors(count: int) -> str:
  return '1 large tensor' if count == 1 else f'{count:,} large tensors'
