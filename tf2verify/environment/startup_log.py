"""What TensorFlow logs while it starts: held back, unless it cannot start."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

_LEVEL = 'TF_CPP_MIN_LOG_LEVEL'
_ERRORS_ONLY = '2'


@contextlib.contextmanager
def held_back() -> Iterator[None]:
  """Holds back what is written to standard error within; shows it if an exception leaves.

  For a program that owns its process, around the first import of TensorFlow: it logs that there
  is no CUDA, that oneDNN is on and which instructions it was not compiled for, some of that as
  errors, and on a level that it is too early to set. Later only errors are logged. Where
  TF_CPP_MIN_LOG_LEVEL is set, the user has decided what is logged, and nothing is held back.
  """
  if _LEVEL in os.environ:
    yield
    return
  os.environ[_LEVEL] = _ERRORS_ONLY  # stays: processes that are started here are as quiet
  try:
    descriptor = sys.__stderr__.fileno() if sys.__stderr__ is not None else None
  except (OSError, ValueError):
    descriptor = None
  if descriptor is None:
    yield
    return
  # The log is written by C++, past Python's sys.stderr.
  sys.stderr.flush()
  with tempfile.TemporaryFile() as log:
    kept = os.dup(descriptor)
    os.dup2(log.fileno(), descriptor)
    shown = False
    try:
      yield
    except Exception:
      shown = True
      raise
    finally:
      sys.stderr.flush()
      os.dup2(kept, descriptor)
      os.close(kept)
      if shown:
        log.seek(0)
        os.write(descriptor, log.read())
