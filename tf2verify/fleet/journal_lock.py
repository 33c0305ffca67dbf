"""One fleet at a time writes a journal."""

import fcntl
import os

from tf2verify.errors import UsageError

_SUFFIX = '-lock'


class JournalLock:
  """Held from enter to exit, and let go by the kernel should the process end.

  A file beside the journal: SQLite's own locks go when any descriptor of the database
  itself is closed.
  """

  def __init__(self, journal: str) -> None:
    self._journal = journal
    self._path = journal + _SUFFIX
    self._descriptor = -1

  def __enter__(self) -> 'JournalLock':
    while True:
      try:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
      except OSError as error:
        raise UsageError(
          f'{self._journal} cannot be written: {self._path}: {error.strerror}; --journal names a '
          'file in a folder that is there and can be written'
        ) from error
      try:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
      except BlockingIOError as error:
        owner = os.read(self._descriptor, 20).decode('ascii', 'replace').strip()
        os.close(self._descriptor)
        raise UsageError(
          f'{self._journal} is in use by another fleet (process {owner or "unknown"}); wait for '
          'it, or name another journal'
        ) from error
      if self._is_still_there():
        break
      os.close(self._descriptor)  # its owner has removed it meanwhile
    os.ftruncate(self._descriptor, 0)
    os.write(self._descriptor, str(os.getpid()).encode())
    return self

  def __exit__(self, *_: object) -> None:
    os.unlink(self._path)
    os.close(self._descriptor)

  def _is_still_there(self) -> bool:
    try:
      return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
    except FileNotFoundError:
      return False
