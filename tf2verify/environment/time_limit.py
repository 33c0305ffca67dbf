"""A limit on the time that a case may take in this process."""

import contextlib
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType

from tf2verify.errors import CaseDefinitionError

# Native code gets this long to come back to Python after the limit.
GRACE_SECONDS = 10.0

STUCK = 'and code that cannot be interrupted: native code, or Python that catches every exception'


class TimeLimitReached(BaseException):
  """Raised in the main thread, wherever it is; no `except Exception` of a case holds it up.

  Attributes:
    seconds: the limit.
  """

  def __init__(self, seconds: float) -> None:
    super().__init__(said(seconds))
    self.seconds = seconds

  def stack(self) -> str:
    """Returns where the main thread was, the outermost frame first."""
    return ''.join(traceback.format_tb(self.__traceback__)).rstrip()


def said(seconds: float) -> str:
  """Returns what a report says of a case that took longer."""
  return f'no verdict after {seconds:g} s (the time limit: --timeout, or timeout of verify)'


class _Alarm:
  """The handler of SIGALRM."""

  def __init__(self, seconds: float) -> None:
    self._seconds = seconds

  def __call__(self, _: int, __: FrameType | None) -> None:
    raise TimeLimitReached(self._seconds)


@contextlib.contextmanager
def limited(seconds: float | None, on_stuck: Callable[[], object] = lambda: None) -> Iterator[None]:
  """Raises `TimeLimitReached` in what runs inside and takes longer.

  Python code, and waiting, end at once; sessions that `sides` opens end with an error;
  other native code is not interrupted, and raises when it comes back.

  Args:
    seconds: None, or 0, for no limit.
    on_stuck: called in another thread where it does not come back within `GRACE_SECONDS`.

  Raises:
    CaseDefinitionError: it is no number; or this is not the main thread, which alone can be
      interrupted.
  """
  if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, (int, float))):
    raise CaseDefinitionError(
      f'timeout is {seconds!r:.80}; it must be a number of seconds, or None'
    )
  if not seconds:
    yield
    return
  if threading.current_thread() is not threading.main_thread():
    raise CaseDefinitionError(
      'timeout is given in a thread, and only the main thread can be interrupted: call verify '
      'there, or leave timeout out and limit the process from outside, as python -m tf2verify fleet'
    )
  watch = threading.Timer(seconds + GRACE_SECONDS, on_stuck)
  watch.daemon = True
  before = signal.signal(signal.SIGALRM, _Alarm(seconds))
  signal.setitimer(signal.ITIMER_REAL, seconds)
  watch.start()
  try:
    yield
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)
    watch.cancel()


def seconds_left() -> float | None:
  """Returns how long what runs inside `limited` may still take; None without a limit."""
  left, _ = signal.getitimer(signal.ITIMER_REAL)
  return left if left > 0 and isinstance(signal.getsignal(signal.SIGALRM), _Alarm) else None
