"""Processes, as Linux shows them: descendants, memory, and their end."""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Container, Iterator

# Of linux/prctl.h.
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# How often, and how far apart, it is looked for processes that are to end.
_LOOKS, _LOOK_SECONDS = 100, 0.02
# Fields of /proc/PID/stat after the command, which may hold spaces: proc(5).
_PARENT_FIELD, _SESSION_FIELD = 1, 3


def _prctl(option: int, value: int) -> bool:
  try:
    return bool(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0)
  except (OSError, AttributeError):
    return False  # no Linux


def end_with_parent(parent: int) -> None:
  """Has the kernel end this process when the thread that forked it ends.

  Args:
    parent: the process that forked it; if it is gone already, this one ends at once.
  """
  if _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
    os._exit(0)


def adopt_orphans(adopts: bool = True) -> None:
  """Makes this process the parent of descendants whose own parent ends, or no longer."""
  _prctl(_PR_SET_CHILD_SUBREAPER, int(adopts))


def end_children(but: Container[int]) -> None:
  """Ends the children of this process, and what they have started, and forgets them.

  Args:
    but: those that are left alone.
  """
  for _ in range(_LOOKS):
    found = [process for process in children(os.getpid()) if process not in but]
    for process in found:
      end_descendants(process)
      with contextlib.suppress(ChildProcessError):
        os.waitpid(process, os.WNOHANG)
    if not found:
      return
    # What these had adopted, or started meanwhile, becomes this process's own.
    time.sleep(_LOOK_SECONDS)


def end_marked(mark: str) -> None:
  """Ends the processes that have begun with a text in their environment."""
  wanted = mark.encode()
  for process in _all():
    with contextlib.suppress(OSError), open(f'/proc/{process}/environ', 'rb') as file:
      if wanted in file.read().split(b'\0') and process != os.getpid():
        kill(process)


def end_first_for_lack_of_memory() -> None:
  """Lets the kernel end this process, and not the fleet, when memory runs out."""
  with contextlib.suppress(OSError), open('/proc/self/oom_score_adj', 'w', encoding='ascii') as f:
    f.write('1000')


def _stat(process: int) -> list[str]:
  with open(f'/proc/{process}/stat', encoding='utf-8', errors='replace') as file:
    return file.read().rpartition(')')[2].split()


def _all() -> list[int]:
  try:
    return [int(name) for name in os.listdir('/proc') if name.isdecimal()]
  except OSError:
    return []


def _of_all(field: int, value: int) -> Iterator[int]:
  """Yields the processes with a value in a field of their stat."""
  for process in _all():
    with contextlib.suppress(OSError, IndexError):
      if int(_stat(process)[field]) == value:
        yield process


def children(process: int) -> list[int]:
  """Returns the children of a process."""
  return list(_of_all(_PARENT_FIELD, process))


def descendants(process: int) -> Iterator[int]:
  """Yields a process and all that it has started, and they have."""
  pending = [process]
  while pending:
    parent = pending.pop()
    yield parent
    with contextlib.suppress(OSError):
      for task in os.listdir(f'/proc/{parent}/task'):
        path = f'/proc/{parent}/task/{task}/children'
        with contextlib.suppress(OSError), open(path, encoding='ascii') as file:
          pending += map(int, file.read().split())


def anonymous_memory(process: int) -> int:
  """Returns the bytes of resident memory, of a process and its descendants, without files.

  What is mapped from files, TensorFlow's libraries above all, is shared and can be had
  back at any time. Pages that a copy shares with the process that it was forked from
  count in each: about 0.2 GiB where TensorFlow is imported. To tell those apart
  (`smaps_rollup`) takes 10 ms a look, this 0.02 ms.
  """
  pages = 0
  for one in descendants(process):
    with contextlib.suppress(OSError, IndexError):  # it has ended meanwhile
      with open(f'/proc/{one}/statm', encoding='ascii') as file:
        fields = file.read().split()
      pages += int(fields[1]) - int(fields[2])
  return pages * os.sysconf('SC_PAGE_SIZE')


def kill(process: int, number: int = signal.SIGKILL) -> None:
  """Sends a signal to a process, if it is still there."""
  with contextlib.suppress(ProcessLookupError, PermissionError):
    os.kill(process, number)


def end_descendants(process: int) -> None:
  """Ends a process and what it has started."""
  for one in list(descendants(process)):
    kill(one)


def end_session(session: int) -> None:
  """Ends the processes of a session, also those whose parents are gone."""
  for one in list(_of_all(_SESSION_FIELD, session)):
    kill(one)
