"""Arrays that are kept for later, and take next to no memory until they are read.

Of a large model, the values before a training step are several times the model, and of two models
that agree nobody reads them again. They lie in a file without a name that is mapped: the system
loads what is read, and the file ends with the last array of it, or with the process.
"""

import contextlib
import mmap
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

# Smaller arrays stay where they are, and so do all where they are few: files take time.
_LEAST_BYTES = 2**16
_WORTH_BYTES = 16 * 2**20
# Every array starts at a multiple of this, as numpy's own do.
_ALIGNMENT = 64
# As many elements at a time are compared with the first one.
_CHUNK = 2**20

_Value = TypeVar('_Value')
# What is mapped now.
_mapped: 'weakref.WeakSet[mmap.mmap]' = weakref.WeakSet()


def set_aside(values: Sequence[_Value]) -> list[_Value]:
  """Returns values of which large arrays are read-only and take next to no memory until read.

  Args:
    values: arrays; anything else is returned as it is. One that is there several times is so in
      what is returned.

  Returns:
    The same numbers, dtypes and shapes. An array that is the same number throughout is that number,
    broadcast. All are as they were where they are few, or no file can be written.
  """
  large = {id(v): v for v in values if isinstance(v, np.ndarray) and _is_large(v)}
  if sum(array.nbytes for array in large.values()) < _WORTH_BYTES:
    return list(values)
  found = {key: known for key, a in large.items() if (known := _broadcast(a)) is not None}
  rest = {key: array for key, array in large.items() if key not in found}
  # Without a place for a file, or with a file system that maps none, they stay in memory.
  with contextlib.suppress(OSError, ValueError):
    found.update(zip(rest, _in_file(rest.values()), strict=True))
  return [found.get(id(value), value) for value in values]  # type: ignore[misc]


def release_pages() -> None:
  """Gives back the memory of what was read of arrays set aside; they can be read again."""
  if not hasattr(mmap, 'MADV_DONTNEED'):
    return
  for known in list(_mapped):
    with contextlib.suppress(OSError, ValueError):
      known.madvise(mmap.MADV_DONTNEED)


def _is_large(array: np.ndarray) -> bool:
  return array.nbytes >= _LEAST_BYTES and not array.dtype.hasobject


def _broadcast(array: np.ndarray) -> np.ndarray | None:
  """Returns an array of one number throughout as that number; None for any other.

  Bits are compared, so that -0.0 and NaN stay what they are.
  """
  if array.dtype.itemsize not in (1, 2, 4, 8) or not array.flags.c_contiguous:
    return None
  bits = array.reshape(-1).view(f'u{array.dtype.itemsize}')
  alike = (bool(np.all(bits[i : i + _CHUNK] == bits[0])) for i in range(0, bits.size, _CHUNK))
  return np.broadcast_to(array.reshape(-1)[0].copy(), array.shape) if all(alike) else None


def _in_file(arrays: Iterable[np.ndarray]) -> list[np.ndarray]:
  """Returns arrays as parts of a file that is mapped."""
  known = list(arrays)
  if not known:
    return []
  offsets = []
  with tempfile.TemporaryFile() as file:
    for array in known:
      file.write(b'\0' * (-file.tell() % _ALIGNMENT))
      offsets.append(file.tell())
      file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    file.flush()
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
  _mapped.add(mapped)
  return [
    np.frombuffer(mapped, np.uint8, array.nbytes, offset).view(array.dtype).reshape(array.shape)
    for array, offset in zip(known, offsets, strict=True)
  ]
