"""The temporary folder of a fleet; those of fleets that were killed are removed by the next one."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator

_PREFIX = 'tf2verify-fleet-'
_LOCK = 'lock'


@contextlib.contextmanager
def own_folder() -> Iterator[str]:
  """Yields a new folder, which is removed at the end."""
  _remove_left()
  with contextlib.ExitStack() as stack:
    made = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
    folder = stack.enter_context(made)
    lock = os.path.join(folder, _LOCK)
    # The kernel lets go of it should the process end; it has its name only once it is held.
    file = stack.enter_context(open(f'{lock}.new', 'wb'))
    fcntl.flock(file, fcntl.LOCK_EX)
    os.rename(f'{lock}.new', lock)
    yield folder


def _remove_left() -> None:
  """Removes the folders of this user whose fleets have ended without removing them."""
  with os.scandir(tempfile.gettempdir()) as entries:
    folders = [entry.path for entry in entries if entry.name.startswith(_PREFIX)]
  for folder in folders:
    with contextlib.suppress(OSError), open(os.path.join(folder, _LOCK), 'rb') as file:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      if os.fstat(file.fileno()).st_uid == os.getuid():
        shutil.rmtree(folder, ignore_errors=True)
