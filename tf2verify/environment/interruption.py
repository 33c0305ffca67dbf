"""Ctrl-C ends a program of tf2verify with status 130, whatever it is at."""

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType

# As a shell reports a program that SIGINT ended.
EXIT_STATUS = 128 + signal.SIGINT
_SAID = b'tf2verify: interrupted\n'
# The main thread gets this long to come back from native code, and to tidy up.
_GRACE_SECONDS = 5.0
_pressed = threading.Event()


def leave(_: int, __: FrameType | None) -> None:
  """Ends this process at once; a handler of SIGINT for while there is nothing to tidy up."""
  with contextlib.suppress(OSError):
    os.write(2, _SAID)
  os._exit(EXIT_STATUS)


def leave_at_once() -> None:
  """Has Ctrl-C end this process without a traceback, until `watched` says otherwise.

  While the package itself is imported, nobody could catch a `KeyboardInterrupt`.
  """
  ignored = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
  if not ignored and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, leave)


def _interrupt(number: int, frame: FrameType | None) -> None:
  _pressed.set()
  signal.default_int_handler(number, frame)


def raise_swallowed() -> None:
  """Raises the `KeyboardInterrupt` of a Ctrl-C that somebody caught who went on.

  What is computed after it is of no use: `Sequential` of tf-keras, for one, catches everything that
  its first call raises, and calls its layers in another way.

  Raises:
    KeyboardInterrupt: Ctrl-C was pressed since `watched`.
  """
  if _pressed.is_set():
    raise KeyboardInterrupt


@contextlib.contextmanager
def watched(grace: float = _GRACE_SECONDS) -> Iterator[None]:
  """Has Ctrl-C raise `KeyboardInterrupt`, and end this process if that leads nowhere.

  Native code that runs for ever never comes back to Python, which would raise it; nor do
  Python's own threads end that wait for such code.

  Args:
    grace: seconds after which the process is ended. A second Ctrl-C ends it as well.
  """
  handler = signal.getsignal(signal.SIGINT)
  is_own = handler in (leave, signal.default_int_handler)
  _pressed.clear()
  if is_own and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, _interrupt)
  reading, writing = socket.socketpair()
  writing.setblocking(False)
  threading.Thread(target=_wait, args=(reading, writing, grace), daemon=True).start()
  before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
  try:
    yield
  finally:
    if signal.getsignal(signal.SIGINT) is _interrupt:
      signal.signal(signal.SIGINT, signal.default_int_handler)
    _pressed.clear()
    signal.set_wakeup_fd(before)  # what waits already goes on: threads may hang at the exit


def _wait(reading: socket.socket, writing: socket.socket, grace: float) -> None:
  """Ends the process some time after the first Ctrl-C, or at the second one.

  Args:
    reading: tells of signals.
    writing: its other end, which lives as long as this thread.
    grace: as of `watched`.
  """
  while signal.SIGINT not in reading.recv(1):
    pass  # another signal
  reading.settimeout(grace)
  with contextlib.suppress(TimeoutError):
    while signal.SIGINT not in reading.recv(1):
      pass
  del writing
  leave(signal.SIGINT, None)
