"""Values of variables compared bit by bit, and unlike ones made."""

import hashlib

import numpy as np

_Array = np.ndarray
# A slot may be kept times a factor: Keras' momentum is -learning_rate times TF1's.
_PROPORTIONAL = 1e-4


def same(one: _Array, other: _Array) -> bool:
  """Returns whether two arrays are equal element by element; NaN equals NaN."""
  if one.shape != other.shape or one.dtype != other.dtype:
    return False
  if bool(np.array_equal(one, other)):
    return True
  return one.dtype.kind in 'fcV' and bool(((one == other) | (one != one) & (other != other)).all())


def sentinel(name: str, value: _Array) -> _Array:
  """Returns an array of the shape and dtype of another, different in every element.

  Floating elements are drawn from the hash of the name, and positive as those of a
  variance have to be.
  """
  if value.dtype.kind == 'b':
    return np.asarray(~value)
  if value.dtype.kind in 'iu':
    with np.errstate(over='ignore'):
      return np.asarray(value + np.ones((), value.dtype))
  if value.dtype.kind not in 'fcV':
    return np.full(value.shape, b'not restored', object)
  digest = hashlib.sha256(f'not restored:{name}'.encode()).digest()
  generator = np.random.RandomState(np.frombuffer(digest, dtype='<u4'))
  drawn: _Array = generator.uniform(0.5, 1.5, value.shape).astype(value.dtype)
  return np.where(drawn == value, drawn + drawn, drawn)


def proportional(one: _Array, other: _Array) -> bool:
  """Returns whether an array is another one times a factor other than zero.

  Zeros are proportional to zeros only; integers and text have to be equal.
  """
  if one.shape != other.shape:
    return False
  if one.dtype.kind not in 'fcV' or other.dtype.kind not in 'fcV':
    return same(one, other)
  left, right = one.astype(np.float64).ravel(), other.astype(np.float64).ravel()
  if not np.any(right):
    return not np.any(left)
  factor = float(left @ right) / float(right @ right)
  allowed = _PROPORTIONAL * abs(factor) * float(np.abs(right).max())
  return factor != 0.0 and bool(np.abs(left - factor * right).max() <= allowed)
