"""The boundary at which the user's own code runs."""

import contextlib
import os
import traceback
from collections.abc import Iterator

import tf2verify
from tf2verify.errors import Tf2VerifyError, UserCodeError

_OWN_FOLDER = os.path.dirname(os.path.abspath(tf2verify.__file__)) + os.sep


def _user_traceback(error: BaseException) -> str:
  """Formats the traceback without tf2verify's own frames."""
  frames = [
    frame
    for frame in traceback.extract_tb(error.__traceback__)
    if not os.path.abspath(frame.filename).startswith(_OWN_FOLDER)
  ]
  lines = ['Traceback (most recent call last):\n', *traceback.format_list(frames)]
  return ''.join(lines + traceback.format_exception_only(type(error), error)).rstrip()


@contextlib.contextmanager
def user_code(side: str, hook: str) -> Iterator[None]:
  """Turns whatever the user's code raises into a `UserCodeError` with its traceback.

  Args:
    side: 'tf1', 'tf2' or 'case'.
    hook: the method that is called inside.
  """
  try:
    yield
  except Tf2VerifyError:
    raise
  except (Exception, SystemExit) as error:  # the user's code may raise anything
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    raise UserCodeError(side, hook, last, _user_traceback(error)) from error
