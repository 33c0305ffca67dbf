"""Values perturbed by one unit in the last place."""

import hashlib
from typing import Any

import numpy as np

from .arrays import CHUNK, Array

# By dtype: the unsigned integer of its size, the bits of infinity, the fraction's bits.
_FORMATS = {
  'float64': (np.uint64, 0x7FF0000000000000, 52),
  'float32': (np.uint32, 0x7F800000, 23),
  'float16': (np.uint16, 0x7C00, 10),
  'bfloat16': (np.uint16, 0x7F80, 7),
}

_COMPONENTS = {'complex64': 'float32', 'complex128': 'float64'}


def fraction_bits(dtype: Any) -> int:
  """Returns the bits of a dtype's fraction; 0 for one that is not moved."""
  found = _FORMATS.get(_COMPONENTS.get(dtype.name, dtype.name))
  return 0 if found is None else found[2]


class Mover:
  """Moves what a run reads by one unit in the last place, each element up or down by a coin."""

  def __init__(self, number: int, least_fraction_bits: int = 0) -> None:
    """Takes the number of the run, and how many bits a dtype has at least that is moved."""
    self.number = number
    self._least = least_fraction_bits

  def variable(self, name: str, value: Array) -> Array:
    """Returns the values moved; the same array where its dtype stays."""
    bits = fraction_bits(value.dtype)
    return value if not bits or bits < self._least else self._moved(name, value)

  def input(self, path: str, value: Array) -> Array:
    """Returns the values moved; the same array where it holds integers only (labels, masks)."""
    bits = fraction_bits(value.dtype)
    return value if not bits or _holds_integers(value) else self.variable('input ' + path, value)

  def _moved(self, name: str, value: Array) -> Array:
    kind = _COMPONENTS.get(value.dtype.name, value.dtype.name)
    unsigned, infinity, _ = _FORMATS[kind]
    moved = np.array(value, order='C')
    bits = moved.reshape(-1).view(unsigned)
    seed = hashlib.sha256('{}:{}'.format(self.number, name).encode()).digest()
    generator = np.random.RandomState(np.frombuffer(seed, '<u4'))
    coins = np.unpackbits(np.frombuffer(generator.bytes(bits.size // 8 + 1), np.uint8))
    for start in range(0, bits.size, CHUNK):
      _move(bits[start : start + CHUNK], coins[start : start + CHUNK], infinity)
    return moved


def _move(bits: Array, coins: Array, infinity: int) -> None:
  """Adds or subtracts one, in place, where that gives a number of the same sign."""
  one = bits.dtype.type(1)
  step = coins[: bits.size].astype(bits.dtype)
  step += step
  step -= one  # 1, or the greatest integer, which adds up to -1
  before = bits & bits.dtype.type(np.iinfo(bits.dtype).max >> 1)
  after = before + step
  before -= one  # 0 becomes the greatest integer: one comparison for it and infinity
  after -= one
  limit = bits.dtype.type(infinity - 1)
  step[(before >= limit) | (after >= limit)] = 0
  bits += step


def _holds_integers(value: Array) -> bool:
  if value.dtype.kind == 'c':
    return _holds_integers(value.real) and _holds_integers(value.imag)
  wide = value.astype(np.float64)
  with np.errstate(all='ignore'):
    return bool(np.all(np.floor(wide) == wide))
