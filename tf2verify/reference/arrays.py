"""The kinds, bytes and digests of arrays."""

import hashlib
from typing import Any, Tuple

import numpy as np

Array = np.ndarray


def is_bfloat16(dtype: Any) -> bool:
  """Returns whether a dtype is bfloat16, which numpy itself does not have."""
  return str(getattr(dtype, 'name', dtype)) == 'bfloat16'


def is_string(array: Array) -> bool:
  """Returns whether an array holds text or bytes."""
  return array.dtype.kind in 'OSU'


def is_inexact(dtype: Any) -> bool:
  """Returns whether a dtype is floating or complex."""
  return np.dtype(dtype).kind in 'fc' or is_bfloat16(dtype)


def widened(array: Array) -> Array:
  """Returns an array as float64, or complex128, in which differences are formed."""
  return array.astype(np.complex128 if array.dtype.kind == 'c' else np.float64)


def _bytes_of(array: Array) -> Any:
  """Returns the C-order little-endian bytes of a numeric array."""
  if not is_bfloat16(array.dtype):
    array = array.astype(array.dtype.newbyteorder('<'), copy=False)
  array = np.asarray(array, order='C')
  return array.reshape(-1).view(np.uint8) if array.size else b''


def array_digest(array: Array) -> str:
  """Returns the SHA-256 by which a recording knows an array, in hexadecimal.

  Hashed are the dtype's name (`float32`; `string` for text and bytes), `|`, the sizes
  joined by commas, `|`, and the elements in C order, little-endian. Text is hashed as
  the lengths of all elements in bytes, as int64, and then their bytes (UTF-8).

  Args:
    array: of any shape and layout; of Python objects only if they are str or bytes.
  """
  name = 'string' if is_string(array) else array.dtype.name
  shape = ','.join(str(size) for size in array.shape)
  found = hashlib.sha256('{}|{}|'.format(name, shape).encode())
  if name == 'string':
    for part in encoded_strings(array):
      found.update(_bytes_of(part))
  else:
    found.update(_bytes_of(array))
  return found.hexdigest()


def encoded_strings(array: Array) -> Tuple[Array, Array]:
  """Returns the lengths of the strings, and their bytes one after the other."""
  texts = [
    t.encode('utf-8', 'surrogatepass') if isinstance(t, str) else bytes(t)
    for t in array.reshape(-1).tolist()
  ]
  lengths = np.array([len(text) for text in texts], np.int64).reshape(array.shape)
  return lengths, np.frombuffer(b''.join(texts), np.uint8)
