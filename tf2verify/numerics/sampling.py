"""Large arrays by some of their elements, and by sums that every element is part of.

docs/decisions/0025-large-arrays-are-sampled.md has the reasons and what they show.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.numerics.tolerance import dtype_name
from tf2verify.records.sampled import SampledArray
from tf2verify.reference.arrays import array_digest, widened
from tf2verify.reference.sampling import BLOCK, SAMPLES, sample, sample_positions

_Array = np.ndarray[Any, Any]

# Elements at once; stays in the processor's cache.
_CHUNK = 2**18


def stored_size(size: int, samples: int, block: int) -> int:
  """Returns the number of elements of a sampled array."""
  return min(samples, size) + (-(-size // block) if block else 0)


def sampled(
  array: _Array, samples: int = SAMPLES, block: int = BLOCK, sha256: str | None = None
) -> SampledArray:
  """Returns samples and signed means of an array.

  Args:
    array: of a floating or complex dtype.
    samples: number of single elements.
    block: 64, or 0 for no means.
    sha256: its digest, where that is known.
  """
  digest = array_digest(array) if sha256 is None else sha256
  return SampledArray(sample(array, samples, block), array.shape, samples, block, digest)


def _root_mean_squares(flat: _Array) -> _Array:
  """Returns float64: of every block."""

  def squares(blocks: _Array) -> _Array:
    parts = blocks.view(blocks.real.dtype) if blocks.dtype.kind == 'c' else blocks
    wide = parts.astype(np.float64)
    return np.asarray(np.einsum('nj,nj->n', wide, wide))

  return np.asarray(np.sqrt(_by_block(flat, squares) / BLOCK))


def _by_block(flat: _Array, function: Any) -> _Array:
  """Returns what a function makes of every block; it takes arrays of shape (n, 64)."""
  with np.errstate(all='ignore'):
    found = [function(chunk).reshape(-1) for chunk in _chunks(flat)]
  together = np.concatenate(found) if found else np.zeros(0)
  return np.asarray(together[: -(-flat.size // BLOCK)])


def _chunks(flat: _Array) -> Iterator[_Array]:
  for start in range(0, flat.size, _CHUNK):
    chunk = flat[start : start + _CHUNK]
    if dtype_name(chunk.dtype) == 'bfloat16':
      chunk = chunk.astype(np.float32)
    if chunk.size % BLOCK:
      chunk = np.concatenate([chunk, np.zeros(-chunk.size % BLOCK, chunk.dtype)])
    yield np.ascontiguousarray(chunk).reshape(-1, BLOCK)


def is_whole(tf1: SampledArray, tf2: _Array) -> bool:
  """Returns whether a sampled array stands for this one, bit by bit, by its digest."""
  if not tf1.sha256 or tf1.full_shape != tf2.shape or tf1.dtype != tf2.dtype:
    return False
  count = min(tf1.samples, tf1.full_size)
  few = tf2.reshape(-1)[sample_positions(tf2.size, tf1.samples)]
  # The digest of a large array takes longer than these.
  if few.tobytes() != tf1[:count].tobytes():
    return False
  return bool(array_digest(tf2) == tf1.sha256)


class Views:
  """A sampled tensor and a whole one, as plain arrays that the ordinary tolerance judges.

  The samples are as they are. For a block, tf1 is the root mean square of the port's
  elements, and tf2 the same and the difference of the signed means: if every element is
  within atol + rtol * |tf1|, so is the difference of the means of atol + rtol * rms, but
  for the rounding of the means. Where a mean is not finite, both are the means.

  Attributes:
    tf1: one-dimensional, of the dtype of the tensors.
    tf2: likewise.
  """

  def __init__(self, tf1: SampledArray, tf2: _Array) -> None:
    """Takes tensors of one shape and dtype; `tf1` may also be computed from sampled ones."""
    self._sampled = tf1
    whole = sampled(tf2, tf1.samples, tf1.block, sha256='')
    self._means_from = min(tf1.samples, tf1.full_size)
    self.tf1 = np.array(tf1)
    if tf1.block:
      sizes = _root_mean_squares(tf2.reshape(-1)).astype(tf2.dtype)
      ones, others = (np.asarray(side)[self._means_from :] for side in (tf1, whole))
      finite = np.isfinite(widened(ones)) & np.isfinite(widened(others))
      self.tf1[self._means_from :] = np.where(finite, sizes, ones)
    self.tf2 = self._seen(np.array(whole))

  def of(self, other: _Array) -> _Array | None:
    """Returns another value of the same tensor, sampled or whole, as `tf2` is one.

    None where it is of another shape or layout.
    """
    if not isinstance(other, SampledArray):
      if other.shape != self._sampled.full_shape:
        return None
      other = sampled(other, self._sampled.samples, self._sampled.block, sha256='')
    if other.shape != self._sampled.shape or other.full_shape != self._sampled.full_shape:
      return None
    return self._seen(np.array(other))

  def element(self, position: int) -> tuple[int, bool]:
    """Returns which element, in C order, is at a position of a view, and whether it is a block.

    That of a block is its first one.
    """
    if position >= self._means_from:
      return (position - self._means_from) * self._sampled.block, True
    return int(sample_positions(self._sampled.full_size, self._sampled.samples)[position]), False

  def samples(self) -> tuple[_Array, _Array]:
    """Returns the single elements of both sides."""
    return self.tf1[: self._means_from], self.tf2[: self._means_from]

  def means(self, position: int) -> tuple[Any, Any]:
    """Returns the signed means of both sides, as Python numbers, at a position of a block."""
    one = self._sampled[position].item()
    shown = self.tf2[position].item()
    finite = math.isfinite(abs(one))
    return one, one + (shown - self.tf1[position].item()) if finite else shown

  def _seen(self, other: _Array) -> _Array:
    """Returns a sampled value with its means beside the root mean squares."""
    tail = slice(self._means_from, None)
    ones, others = widened(np.asarray(self._sampled)[tail]), widened(other[tail])
    sizes = widened(self.tf1[tail])
    with np.errstate(all='ignore'):
      shown = sizes + (others - ones)
    finite = np.isfinite(ones) & np.isfinite(others)
    other[tail] = np.where(finite, shown, others).astype(other.dtype)
    return other
