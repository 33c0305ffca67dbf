"""Values perturbed by one unit in the last place, in random directions."""

import hashlib
import threading
from typing import Any, NamedTuple, Optional

import numpy as np

from .arrays import Array

# Of a format whose bits, the sign aside, count its numbers in order: the unsigned
# integer of the same size, the bits of infinity, and how many the fraction has.
_FORMATS = {
  'float64': (np.uint64, 0x7FF0000000000000, 52),
  'float32': (np.uint32, 0x7F800000, 23),
  'float16': (np.uint16, 0x7C00, 10),
  'bfloat16': (np.uint16, 0x7F80, 7),
}
_COMPONENTS = {'complex64': 'float32', 'complex128': 'float64'}
_CHUNK = 2**17  # elements; stays in the processor's cache


def fraction_bits(dtype: Any) -> Optional[int]:
  """Returns the bits of a dtype's fraction, or of that of its name; None: it is not moved."""
  name = dtype if isinstance(dtype, str) else dtype.name
  found = _FORMATS.get(_COMPONENTS.get(name, name))
  return None if found is None else found[2]


class Perturber(NamedTuple):
  """Perturbs what a run reads, each element up or down at random.

  The random directions are those of numpy's `RandomState`, which is the same in every
  version, seeded by the SHA-256 of number and name: a run here and one that was recorded
  under the same number start from the same bits.

  Attributes:
    number: of the run; a different number gives different directions.
    least_fraction_bits: a dtype with fewer stays. What is computed in float64 from
      float32 variables is not rounded to float32: a unit of those would be far more
      than its noise.
    unit_bits: what is moved moves by a unit of a format with so many bits; 0 for its own.
      A model that casts its float32 weights to bfloat16 does not see a unit of float32.
  """

  number: int
  least_fraction_bits: int = 0
  unit_bits: int = 0

  def variable(self, name: str, value: Array) -> Array:
    """Returns the perturbed values; the same array if its dtype is not perturbed."""
    bits = fraction_bits(value.dtype)
    if bits is None or bits < self.least_fraction_bits:
      return value
    units = 2 ** max(bits - self.unit_bits, 0) if self.unit_bits else 1
    return moved(value, '{}:{}'.format(self.number, name), units)

  def input(self, path: str, value: Array) -> Array:
    """Returns the perturbed values; the same array if it has integers only.

    Labels, masks, lengths and pixels are read exactly on either side, and a model
    that asks whether a mask is 1 would do something else with 0.9999999.
    """
    if fraction_bits(value.dtype) is None or _holds_integers(value):
      return value
    return self.variable('input ' + path, value)


def moved(value: Array, key: str, units: int = 1) -> Array:
  """Returns every element moved by one unit in the last place, or more of them, up or down.

  Zeros stay, since rounding does not change them; so do infinities and NaN, and what
  would become one of these three or change its sign.

  Args:
    value: of dtype float16, bfloat16, float32, float64, complex64 or complex128.
    key: gives the directions.
    units: how many units each element is moved by.

  Returns:
    An array of the same shape and dtype.
  """
  unsigned, infinity, _ = _FORMATS[_COMPONENTS.get(value.dtype.name, value.dtype.name)]
  if value.dtype.byteorder == '>':
    value = value.astype(value.dtype.newbyteorder('='))
  found = np.array(value, order='C')
  flat = found.reshape(-1)
  bits = (flat.view(flat.real.dtype) if value.dtype.kind == 'c' else flat).view(unsigned)
  coins = _coins(key, bits.size)
  for start in range(0, bits.size, _CHUNK):
    part = slice(start, start + _CHUNK)
    _move(bits[part], coins[part], infinity, units)
  return found


def _move(bits: Array, coins: Array, infinity: int, units: int) -> None:
  """Adds or subtracts units, in place, where that gives a number of the same sign."""
  one = bits.dtype.type(1)
  step = coins.astype(bits.dtype)
  step += step
  step -= one  # 1, or the greatest integer, which adds up to -1
  if units > 1:
    step *= bits.dtype.type(units)
  before = bits & bits.dtype.type(np.iinfo(bits.dtype).max >> 1)
  after = before + step
  before -= one  # 0 becomes the greatest integer: one comparison for it and infinity
  after -= one
  limit = bits.dtype.type(infinity - 1)
  step[(before >= limit) | (after >= limit)] = 0
  bits += step


class _Generator(threading.local):
  """A generator for each thread: it is seeded before each use, and takes longer to be made."""

  def __init__(self) -> None:
    self.state = np.random.RandomState(0)


_GENERATOR = _Generator()


def _coins(key: str, count: int) -> Array:
  seed = np.frombuffer(hashlib.sha256(key.encode()).digest(), '<u4')
  generator = _GENERATOR.state
  generator.seed(seed)
  return np.unpackbits(np.frombuffer(generator.bytes(count // 8 + 1), np.uint8))[:count]


def _holds_integers(value: Array) -> bool:
  if value.dtype.kind == 'c':
    return _holds_integers(value.real) and _holds_integers(value.imag)
  wide = value.astype(np.float64)
  with np.errstate(all='ignore'):
    return bool(np.all(np.floor(wide) == wide))
