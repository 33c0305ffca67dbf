"""What AutoGraph remembers of the user's functions: by file, too.

It keeps the functions that it has written by code object, and those of two files are equal
where text and line are the same: what it wrote for the second file would show the lines of the
first. To forget them instead would convert all of Keras anew for every case.
"""

import contextlib
import functools
import types
from collections.abc import Iterator
from typing import Any

from tensorflow.python.autograph.impl import api
from tensorflow.python.autograph.pyct import cache


class ByFile(cache.CodeObjectCache):  # type: ignore[misc]
  """A cache of AutoGraph's for each file."""

  def __init__(self) -> None:
    super().__init__()
    self._files: dict[str, Any] = {}

  def has(self, entity: Any, subkey: Any) -> bool:
    """Returns whether a function has been converted."""
    return bool(self._of(entity).has(entity, subkey))

  def __getitem__(self, entity: Any) -> Any:
    return self._of(entity)[entity]

  def __len__(self) -> int:
    return sum(map(len, self._files.values()))

  def _of(self, entity: Any) -> Any:
    code = getattr(entity, '__code__', None)
    file = code.co_filename if isinstance(code, types.CodeType) else ''
    return self._files.setdefault(file, cache.CodeObjectCache())


@functools.cache
def _kept() -> ByFile:
  # For the life of the process, as AutoGraph's own.
  return ByFile()


@contextlib.contextmanager
def by_file() -> Iterator[None]:
  """Has AutoGraph tell the functions of different files apart."""
  transpiler = api._TRANSPILER
  with transpiler._cache_lock:
    before, transpiler._cache = transpiler._cache, _kept()
  try:
    yield
  finally:
    with transpiler._cache_lock:
      transpiler._cache = before
