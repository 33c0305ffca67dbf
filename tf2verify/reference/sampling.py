"""What is kept of a large array: some elements, and signed means of all of them."""

import hashlib
from typing import Iterator

import numpy as np

from .arrays import CHUNK, Array
from .versions import VERSIONS

SAMPLES = 1024
BLOCK = 64
_PATTERNS = 16


def sample_positions(size: int, samples: int = SAMPLES) -> Array:
  """Returns which elements are kept of an array: one, at random, of each equal part."""
  count = min(samples, size)
  starts = np.arange(count + 1, dtype=np.int64) * size // max(count, 1)
  widths = np.maximum(starts[1:] - starts[:-1], 1)
  return starts[:-1] + _hashed_words('positions {}'.format(size), count) % widths


def _hashed_words(purpose: str, count: int) -> Array:
  digests = [
    hashlib.sha256('{}:{}:{}'.format(VERSIONS['sampling'], purpose, number).encode()).digest()
    for number in range(-(-count // 8))
  ]
  return np.frombuffer(b''.join(digests), '<u4')[:count].astype(np.int64)


def sample(array: Array, samples: int = SAMPLES, block: int = BLOCK) -> Array:
  """Returns elements of an array and, for every 64 in a row, the mean of element times sign."""
  flat = array.reshape(-1)
  found = [flat[sample_positions(flat.size, samples)]]
  if block:
    words = _hashed_words('signs 66', 2 * _PATTERNS).astype('<u4')
    bits = np.unpackbits(words.view(np.uint8)).astype(np.float64).reshape(_PATTERNS, block)
    weights = (2 * bits - 1) / block
    with np.errstate(all='ignore'):
      parts = [_signed_means(part, weights) for part in _parts(flat)]
    found.append(np.concatenate(parts)[: -(-flat.size // block)].astype(array.dtype))
  return np.concatenate(found)


def _parts(flat: Array) -> Iterator[Array]:
  for start in range(0, flat.size, 2 * CHUNK):
    yield flat[start : start + 2 * CHUNK]


def _signed_means(part: Array, weights: Array) -> Array:
  wide = part.astype(np.complex128 if part.dtype.kind == 'c' else np.float64)
  if wide.size % weights.size:
    wide = np.concatenate([wide, np.zeros(-wide.size % weights.size, wide.dtype)])
  return np.einsum('nkj,kj->nk', wide.reshape((-1, *weights.shape)), weights).reshape(-1)
