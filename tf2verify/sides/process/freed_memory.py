"""Memory that is free goes back to the system."""

import ctypes
import sys


def give_back() -> None:
  """Returns freed memory to the operating system, where the C library keeps it (glibc).

  TensorFlow's threads free each case's tensors into arenas of their own, which glibc keeps: in
  a process of many cases some 10 to 20 MB a case, for models with a few MB of weights.
  Elsewhere it does nothing.
  """
  if sys.platform != 'linux':
    return
  trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)  # musl has none
  if trim is not None:
    trim(0)
