"""What is opened and read outside of the process while a reference is built."""

import contextlib
import functools
import os
import sys
import threading
import tokenize
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

from tf2verify.reference.user_files import AUTOGRAPH
from tf2verify.sides.kept.installed import file_digest
from tf2verify.tensorflow_internals import file_reads

_ENVIRON: Any = type(os.environ)
# Events of `sys.audit` that tell of what has no digest.
_REFUSED = {
  'os.listdir': 'lists a folder',
  'os.scandir': 'lists a folder',
  'socket.connect': 'connects to',
  'socket.getaddrinfo': 'connects to',
  'subprocess.Popen': 'starts a process',
  'os.system': 'starts a process',
  'os.exec': 'starts a process',
  'os.posix_spawn': 'starts a process',
  'ctypes.dlopen': 'loads a library',
  'sqlite3.connect': 'opens a database',
  'mmap.__new__': 'maps memory',
}
_NOWHERE = ('/dev/', '/proc/', '/sys/')


class Outside:
  """What was read while `watched`.

  Attributes:
    files: path and SHA-256 of each file that was read, before it was.
    environ: name and value of each environment variable; None for one that is not set.
    obstacles: what was done that has no digest.
  """

  def __init__(self) -> None:
    self.files: dict[str, str] = {}
    self.environ: dict[str, str | None] = {}
    self.obstacles: dict[str, None] = {}
    self._thread = 0
    self._within = False

  @contextlib.contextmanager
  def watched(self) -> Iterator[None]:
    """Remembers what this thread reads, until exit."""
    listening = _listening()
    read_variable, list_variables = _ENVIRON.__getitem__, _ENVIRON.__iter__

    def recorded(environ: Any, name: Any) -> Any:
      found = None
      try:
        found = read_variable(environ, name)
        return found
      finally:
        if isinstance(name, str) and not self._within:
          self.environ.setdefault(name, found)

    def listed(environ: Any) -> Any:
      names = list(list_variables(environ))
      for name in names:
        self.environ.setdefault(str(name), read_variable(environ, name))
      return iter(names)

    self._thread = threading.get_ident()
    listening.add(self)
    try:
      with (
        mock.patch.object(_ENVIRON, '__getitem__', recorded),
        mock.patch.object(_ENVIRON, '__iter__', listed),
        file_reads.told(lambda what: self.refuse(f'reads files by {what}')),
      ):
        yield
    finally:
      listening.discard(self)

  def refuse(self, why: str) -> None:
    """Remembers something that has no digest."""
    self.obstacles[why] = None

  def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
    """Takes an event of `sys.audit`."""
    if self._within or threading.get_ident() != self._thread or _is_import(sys._getframe(2)):
      return
    self._within = True
    try:
      if event == 'open':
        self._opened(*arguments[:3])
      elif event in _REFUSED:
        shown = f' {arguments[0]!r:.60}' if arguments else ''
        self.refuse(f'{_REFUSED[event]}{shown}')
    finally:
      self._within = False

  def _opened(self, path: Any, mode: Any, flags: Any) -> None:
    if isinstance(path, int):
      return  # opened before, by its path
    path = os.path.abspath(os.fsdecode(path))
    writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
    if path.startswith(_NOWHERE) or _is_scratch(path):
      return
    if writes or (isinstance(mode, str) and set(mode) & set('wax+')):
      self.refuse(f'writes {path}')
    elif path not in self.files and not _is_source_line(path):
      digest = file_digest(path)
      self.files[path] = digest


def _is_scratch(path: str) -> bool:
  """Returns whether a file is AutoGraph's own, or has no name but that of its folder.

  Nobody else has put anything in.
  """
  return os.path.basename(path).startswith(AUTOGRAPH) or os.path.isdir(path)


def _is_import(frame: types.FrameType | None) -> bool:
  """Returns whether it is Python's import that opens a file or lists a folder."""
  while frame is not None and frame.f_code.co_filename == __file__:
    frame = frame.f_back
  return frame is not None and frame.f_code.co_filename.startswith('<frozen importlib')


def _is_source_line(path: str) -> bool:
  """Returns whether a module's file is opened for its lines, which tracebacks and AutoGraph show.

  What the code does is known by what it has made; one that is read as data is a file like another.
  """
  frame: types.FrameType | None = sys._getframe(1)
  while frame is not None and frame.f_code.co_filename == __file__:
    frame = frame.f_back
  return path.endswith('.py') and frame is not None and frame.f_code is tokenize.open.__code__


@functools.cache
def _listening() -> set[Outside]:
  """Returns who hears of events; a hook of `sys.audit` stays as long as the process."""
  found: set[Outside] = set()

  def hook(event: str, arguments: tuple[Any, ...]) -> None:
    if found and (event == 'open' or event in _REFUSED):
      for one in tuple(found):
        one.heard(event, arguments)

  sys.addaudithook(hook)
  return found
