"""SHA-256 of an array: of its dtype, its shape and its bytes."""

import hashlib
from typing import Any

import numpy as np

from tf2verify.numerics.tolerance import dtype_name

_Array = np.ndarray[Any, Any]


def array_digest(array: _Array) -> str:
  """Returns the SHA-256 by which a recording knows an array, in hexadecimal.

  Hashed are the dtype's name (`float32`; `string` for text and bytes), `|`, the sizes
  joined by commas, `|`, and the elements in C order, little-endian. Text is hashed as
  the lengths of all elements in bytes, as int64, and then their bytes (UTF-8).

  Args:
    array: of any shape and layout; of Python objects only if they are str or bytes.
  """
  is_text = dtype_name(array.dtype) == 'str'
  name = 'string' if is_text else dtype_name(array.dtype)
  shape = ','.join(str(size) for size in array.shape)
  found = hashlib.sha256(f'{name}|{shape}|'.encode())
  if is_text:
    texts = text_bytes(array)
    found.update(np.array([len(text) for text in texts], '<i8').tobytes())
    found.update(b''.join(texts))
    return found.hexdigest()
  flat = np.ascontiguousarray(array).reshape(-1)
  if flat.dtype.byteorder == '>':
    flat = flat.astype(flat.dtype.newbyteorder('<'))
  if flat.size:
    found.update(flat.view(np.uint8).data)
  return found.hexdigest()


def text_bytes(array: _Array) -> list[bytes]:
  """Returns the elements of an array of text or bytes, in C order, as bytes."""
  return [
    element.encode('utf-8', 'surrogatepass') if isinstance(element, str) else bytes(element)
    for element in array.reshape(-1).tolist()
  ]
