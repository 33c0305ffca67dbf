"""The .npz files of a recording, read within limits that are known before anything is unpacked.

numpy is not asked to read them: what a file may hold is known from the manifest, so a
member is taken only if it is exactly that.
"""

import collections
import contextlib
import dataclasses
import math
import os
import re
import stat
import struct
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tf2verify.errors import RecordingError
from tf2verify.recordings.array_entries import ITEMSIZES, ArrayEntry

_Array = np.ndarray[Any, Any]

# Of one array, and of all.
_MOST_BYTES = 4 * 2**30
_MOST_BYTES_IN_ALL = 16 * 2**30
# All arrays together may be this many times as large as the files; DEFLATE itself reaches
# 1,032, with zeros alone.
_MOST_TIMES = 200
_ALWAYS_ALLOWED = 256 * 2**20
# What numpy and zip write around an array.
_MOST_AROUND = 2048
_MOST_TEXT = 64 * 2**20
_MAGIC = re.compile(rb'\x93NUMPY(?:\x01\x00(?P<short>..)|\x02\x00(?P<long>....))', re.DOTALL)
_HEADER = re.compile(
  rb"\{'descr': '(?P<descr>[<>|=]?[A-Za-z]\d{1,2})', 'fortran_order': (?P<order>True|False), "
  rb"'shape': \((?P<shape>[\d, ]{0,700})\), \} *\n"
)
_STRIPPED = re.compile(rb'\d+')
_ENCRYPTED = 0x1
_DESCRS = {
  'bool': 'b1',
  'bfloat16': 'u2',
  **{f'{kind}{8 * size}': f'{kind[0]}{size}' for kind in ('int', 'uint') for size in (1, 2, 4, 8)},
  **{f'float{8 * size}': f'f{size}' for size in (2, 4, 8)},
  **{f'complex{8 * size}': f'c{size}' for size in (8, 16)},
}
_ZIP_ERRORS = (
  zipfile.BadZipFile,
  zipfile.LargeZipFile,
  zlib.error,
  struct.error,
  EOFError,
  ValueError,
  RuntimeError,  # a password; NotImplementedError of a feature
  OverflowError,
  LookupError,
)
_COPY_AGAIN = 'the file is damaged or cut off: copy the whole folder again, or record again'


@dataclasses.dataclass(frozen=True)
class _Member:
  """What a member of a zip file has to be.

  Attributes:
    dtype: numpy's name of what is stored.
    shape: of what is stored; None for a vector of bytes whose length nobody has told.
  """

  dtype: str
  shape: tuple[int, ...] | None

  @property
  def most_bytes(self) -> int:
    if self.shape is None:
      return _MOST_TEXT
    return math.prod(self.shape) * ITEMSIZES[self.dtype]


class ArrayFiles:
  """The files of a folder, each opened at its first use."""

  def __init__(self, folder: str, entries: Iterable[ArrayEntry]) -> None:
    """Checks sizes, as the manifest has them, against limits and against the files.

    Args:
      folder: of the recording.
      entries: of all arrays.

    Raises:
      RecordingError: a file is missing, no plain file of the folder, or too large.
    """
    self._folder = folder
    self._members: dict[str, dict[str, _Member]] = {}
    self._archives: dict[str, zipfile.ZipFile] = {}
    self._opened = contextlib.ExitStack()
    # A session reads in a thread beside the port.
    self._lock = threading.Lock()
    for entry in entries:
      self._members.setdefault(entry.file, {}).update(_members_of(entry))
    on_disk = {name: self._size(name) for name in self._members}
    self._check_sizes(on_disk)

  @property
  def names(self) -> tuple[str, ...]:
    """The files that the manifest names."""
    return tuple(self._members)

  def size(self, name: str) -> int:
    """Returns the bytes of a file on disk."""
    return self._size(name)

  def read(self, entry: ArrayEntry) -> tuple[_Array, _Array | None]:
    """Reads what is stored for an array; nothing of it is verified but type and size.

    Returns:
      The array as stored, and for text the lengths.

    Raises:
      RecordingError: it is not there, or not what the manifest says.
    """
    with self._lock:
      archive = self._archive(entry.file)
      members = self._members[entry.file]
      names = list(_members_of(entry))
      found = [self._member(entry.file, archive, name, members[name]) for name in names]
    return found[0], found[1] if len(found) > 1 else None

  def close(self) -> None:
    """Lets go of the files; a later `read` opens them again."""
    with self._lock:
      self._opened.close()
      self._archives.clear()

  def _check_sizes(self, on_disk: dict[str, int]) -> None:
    total = 0
    for name, members in self._members.items():
      declared = 0
      for key, member in members.items():
        if member.shape is not None and member.most_bytes > _MOST_BYTES:
          raise self._refused(name, f'{key} would take {member.most_bytes:,} bytes', _too_large())
        declared += 0 if member.shape is None else member.most_bytes
      texts = sum(_MOST_TEXT for member in members.values() if member.shape is None)
      most = declared + declared // 1000 + texts + _MOST_AROUND * (len(members) + 1)
      if on_disk[name] > most:
        raise self._refused(
          name,
          f'it has {on_disk[name]:,} bytes, more than its arrays can take ({most:,})',
          'it is a different file from the recorded one: copy the whole folder again',
        )
      total += declared
    allowed = min(max(_ALWAYS_ALLOWED, _MOST_TIMES * sum(on_disk.values())), _MOST_BYTES_IN_ALL)
    if total > allowed:
      raise RecordingError(
        f'{self._folder}: the arrays would take {total:,} bytes, and files of '
        f'{sum(on_disk.values()):,} bytes may hold {allowed:,}; {_too_large()}'
      )

  def _path(self, name: str) -> str:
    path = os.path.join(self._folder, name)
    if os.path.dirname(os.path.realpath(path)) != os.path.realpath(self._folder):
      raise self._refused(
        name,
        'it is a link that leads out of the folder',
        'put the file itself there (cp -rL copies what links lead to)',
      )
    return path

  def _size(self, name: str) -> int:
    try:
      found = os.stat(self._path(name))
    except (OSError, ValueError) as error:
      raise self._unreadable(name, error) from None
    if not stat.S_ISREG(found.st_mode):
      raise self._refused(name, 'it is not a file', _COPY_AGAIN)
    return found.st_size

  def _archive(self, name: str) -> zipfile.ZipFile:
    if name not in self._archives:
      self._size(name)
      with self._refusing(name, 'it cannot be opened'), contextlib.ExitStack() as opened:
        file = opened.enter_context(open(self._path(name), 'rb'))
        archive = opened.enter_context(zipfile.ZipFile(file))
        self._check_members(name, archive)
        self._opened.push(opened.pop_all())
      self._archives[name] = archive
    return self._archives[name]

  def _check_members(self, name: str, archive: zipfile.ZipFile) -> None:
    wanted = {f'{key}.npy' for key in self._members[name]}
    found = [info.filename for info in archive.infolist()]
    twice = {member for member, times in collections.Counter(found).items() if times > 1}
    for problem, members in (
      ('is missing in it', wanted - set(found)),
      ('is in it, which the manifest does not name', set(found) - wanted),
      ('is in it twice', twice),
    ):
      if members:
        raise self._refused(name, f'{ascii(min(members))[:80]} {problem}', _COPY_AGAIN)

  def _member(self, name: str, archive: zipfile.ZipFile, key: str, member: _Member) -> _Array:
    info = archive.getinfo(f'{key}.npy')
    if info.flag_bits & _ENCRYPTED:
      raise self._refused(name, f'{key} is encrypted', _COPY_AGAIN)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
      raise self._refused(name, f'{key} is packed by method {info.compress_type}', _COPY_AGAIN)
    if info.file_size > member.most_bytes + _MOST_AROUND:
      raise self._refused(
        name,
        f'{key} would take {info.file_size:,} bytes unpacked, and the manifest says '
        f'{member.most_bytes:,}',
        _COPY_AGAIN,
      )
    with self._refusing(name, f'{key} cannot be unpacked'), archive.open(info) as file:
      data = file.read(info.file_size + 1)
    if len(data) != info.file_size:
      raise self._refused(name, f'{key} ends early', _COPY_AGAIN)
    return self._parsed(name, key, data, member)

  def _parsed(self, name: str, key: str, data: bytes, member: _Member) -> _Array:
    descr, fortran, shape, start = self._header(name, key, data)
    wanted = member.shape
    if wanted is None and len(shape) == 1:
      wanted = (len(data) - start,)
    if descr.lstrip('<>|=') != _DESCRS[member.dtype] or shape != wanted:
      raise self._refused(
        name,
        f'{key} has dtype {descr} and shape {shape}, the manifest says {member.dtype} {wanted}',
        _COPY_AGAIN,
      )
    if fortran and len(shape) > 1:
      raise self._refused(
        name, f'{key} is in Fortran order', 'write it in C order (np.ascontiguousarray)'
      )
    if len(data) - start != math.prod(shape) * ITEMSIZES[member.dtype]:
      raise self._refused(name, f'{key} has other bytes than its shape {shape} takes', _COPY_AGAIN)
    with self._refusing(name, f'{key} cannot be read'):
      # Aligned, and free of the bytes around it.
      found = np.frombuffer(data, np.dtype(descr), offset=start).reshape(shape)
      return found.astype(found.dtype.newbyteorder('='))

  def _header(self, name: str, key: str, data: bytes) -> tuple[str, bool, tuple[int, ...], int]:
    """Returns dtype, order, shape, and where the elements begin."""
    magic = _MAGIC.match(data)
    size, start = 0, 0
    if magic is not None:
      size = int.from_bytes(magic['short'] or magic['long'], 'little')
      start = magic.end() + size
    header = _HEADER.fullmatch(data[start - size : start]) if 0 < size < _MOST_AROUND else None
    if header is None:
      raise self._refused(
        name,
        f'{key} is not a plain array of numbers as np.savez writes it (Python objects are never '
        'read)',
        _COPY_AGAIN,
      )
    sizes = _STRIPPED.findall(header['shape'])
    if any(len(digits) > 19 for digits in sizes):
      raise self._refused(name, f'{key} has a shape that no array has', _COPY_AGAIN)
    shape = tuple(int(digits) for digits in sizes)
    return header['descr'].decode(), header['order'] == b'True', shape, start

  @contextlib.contextmanager
  def _refusing(self, name: str, problem: str) -> Iterator[None]:
    try:
      yield
    except MemoryError:
      raise self._refused(
        name, f'{problem}: it does not fit into memory', 'use a machine with more memory'
      ) from None
    except OSError as error:
      raise self._unreadable(name, error) from None
    except _ZIP_ERRORS as error:
      text = ascii(str(error))[1:-1][:120]
      raise self._refused(
        name, f'{problem} ({type(error).__name__}: {text})', _COPY_AGAIN
      ) from None

  def _unreadable(self, name: str, error: OSError | ValueError) -> RecordingError:
    if isinstance(error, FileNotFoundError):
      return self._refused(
        name, 'it is missing', 'copy the whole folder again (all files that manifest.json names)'
      )
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return self._refused(name, f'it cannot be read: {reason}', 'make it readable, or copy it again')

  def _refused(self, name: str, problem: str, fix: str) -> RecordingError:
    return RecordingError(f'{os.path.join(self._folder, name)}: {problem}; {fix}')


def _members_of(entry: ArrayEntry) -> dict[str, _Member]:
  """Returns what is stored for an array, by key."""
  if entry.encoding != 'string':
    return {entry.key: _Member(entry.dtype, entry.shape)}
  return {
    entry.key: _Member('uint8', None),
    f'{entry.key}.lengths': _Member('int64', entry.shape),
  }


def _too_large() -> str:
  return 'no recording is as large: it is damaged, or made to fill the memory; record again'
