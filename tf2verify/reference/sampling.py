"""What is kept of a large array: some elements, and signed means of all of them.

docs/decisions/0025-large-arrays-are-sampled.md has the reasons and what they show.
"""

import hashlib
from typing import Iterator

import numpy as np

from .arrays import Array, widened
from .versions import VERSIONS

SAMPLES = 1024
BLOCK = 64
# Blocks in a row have other signs, so that what escapes in one block does not in the next.
PATTERNS = 16
# A multiple of all the blocks that share a round of patterns.
_ELEMENTS_AT_ONCE = 2**18


def sample_positions(size: int, samples: int = SAMPLES) -> Array:
  """Returns which elements are kept, in C order: one, at random, of each equal part.

  Args:
    size: number of elements of the array.
    samples: how many are wanted; all where the array has no more.

  Returns:
    int64, rising strictly.
  """
  count = min(samples, size)
  starts = np.arange(count + 1, dtype=np.int64) * size // max(count, 1)
  widths = np.maximum(starts[1:] - starts[:-1], 1)
  return np.asarray(starts[:-1] + _hashed_words('positions {}'.format(size), count) % widths)


def signs() -> Array:
  """Returns the signs of the elements of 16 blocks in a row, as float64 of shape (16, 64).

  The signs of each block add up to 4 or more, or -4 or less (66 is the first number by which
  they do), so that a constant added to a whole block is seen as well.
  """
  words = _hashed_words('signs 66', 2 * PATTERNS).astype('<u4')
  bits = np.unpackbits(words.view(np.uint8)).astype(np.float64).reshape(PATTERNS, BLOCK)
  return 2 * bits - 1


def _hashed_words(purpose: str, count: int) -> Array:
  """Returns numbers of 32 bits: the SHA-256 of what they are for, counted through."""
  digests = [
    hashlib.sha256('{}:{}:{}'.format(VERSIONS['sampling'], purpose, number).encode()).digest()
    for number in range(-(-count // 8))
  ]
  return np.frombuffer(b''.join(digests), '<u4')[:count].astype(np.int64)


def sample(array: Array, samples: int = SAMPLES, block: int = BLOCK) -> Array:
  """Returns elements of an array and, for every 64 in a row, the mean of element times sign.

  Args:
    array: of a floating or complex dtype.
    samples: number of single elements.
    block: 64, or 0 for no means.

  Returns:
    The elements at `sample_positions`, and then for every 64 elements in a row (the last
    ones filled up with zeros) the sum of element times sign, divided by 64, rounded once to
    the array's dtype.
  """
  flat = array.reshape(-1)
  found = [flat[sample_positions(flat.size, samples)]]
  if block and flat.size:
    weights = signs() / block
    with np.errstate(all='ignore'):
      means = [_signed_means(part, weights) for part in _parts(flat)]
    found.append(np.concatenate(means)[: -(-flat.size // block)].astype(array.dtype))
  return np.concatenate(found)


def _parts(flat: Array) -> Iterator[Array]:
  for start in range(0, flat.size, _ELEMENTS_AT_ONCE):
    yield flat[start : start + _ELEMENTS_AT_ONCE]


def _signed_means(part: Array, weights: Array) -> Array:
  """Returns float64 or complex128."""
  wide = widened(part)
  if wide.size % weights.size:
    wide = np.concatenate([wide, np.zeros(-wide.size % weights.size, wide.dtype)])
  means = np.einsum('nkj,kj->nk', wide.reshape((-1, *weights.shape)), weights)
  return np.asarray(means.reshape(-1))
