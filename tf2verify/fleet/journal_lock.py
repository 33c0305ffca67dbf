"""One fleet at a time writes a journal, by whichever of its names."""

import fcntl
import os

from tf2verify.errors import UsageError

_LOCKS = '/proc/locks'


class JournalLock:
  """Held from enter to exit, and let go by the kernel should the process end.

  A lock of the file itself (`flock`), so that symbolic and hard links to it are the same
  journal. SQLite's own locks are of another kind, and go when any descriptor of the file is
  closed: this one is opened before SQLite's and closed after them, and the file is not
  opened at all where the kernel tells that somebody holds the lock.
  """

  def __init__(self, journal: str) -> None:
    self._journal = journal
    self._descriptor = -1

  def __enter__(self) -> 'JournalLock':
    while True:
      self._refuse_if_held()
      self._descriptor = self._opened()
      try:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
      except BlockingIOError:
        os.close(self._descriptor)
        self._refuse_if_held()
        raise self._in_use('unknown') from None
      if self._is_still_there():
        return self
      os.close(self._descriptor)  # somebody has put another file in its place meanwhile

  def __exit__(self, *_: object) -> None:
    os.close(self._descriptor)

  def _opened(self) -> int:
    try:
      try:
        return os.open(self._journal, os.O_RDWR | os.O_CREAT, 0o666)
      except PermissionError:
        return os.open(self._journal, os.O_RDONLY)  # SQLite will say that it cannot write
    except OSError as error:
      raise UsageError(
        f'{self._journal} cannot be written: {error.strerror}; --journal names a file in a folder '
        'that is there and can be written'
      ) from error

  def _refuse_if_held(self) -> None:
    owner = _owner(self._journal)
    if owner:
      raise self._in_use(owner)

  def _in_use(self, owner: str) -> UsageError:
    return UsageError(
      f'{self._journal} is in use by another fleet (process {owner}); wait for it, or name a '
      'different '
      'journal'
    )

  def _is_still_there(self) -> bool:
    try:
      return os.path.samestat(os.stat(self._journal), os.fstat(self._descriptor))
    except FileNotFoundError:
      return False


def _owner(path: str) -> str:
  """Returns the number of the process that has locked a file by `flock`; '' for none."""
  try:
    found = os.stat(path)
    with open(_LOCKS, encoding='utf-8') as file:
      lines = [line.split() for line in file]
  except OSError:
    return ''
  identity = f'{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}'
  # 1: FLOCK  ADVISORY  WRITE 708 08:01:1311 0 EOF; of one that waits, `->` stands before FLOCK.
  return next((line[4] for line in lines if line[1] == 'FLOCK' and line[5] == identity), '')
