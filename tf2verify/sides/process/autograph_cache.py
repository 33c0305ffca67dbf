"""What autograph remembers of the user's functions."""

from tensorflow.python.autograph.impl import api
from tensorflow.python.autograph.pyct import cache


def forget() -> None:
  """Makes autograph convert every function anew.

  It keeps the functions that it has written by code object, and those of two files are
  equal where text and line are the same: what it wrote for the second file would show
  the lines of the first.
  """
  transpiler = api._TRANSPILER
  with transpiler._cache_lock:
    transpiler._cache = cache.CodeObjectCache()
