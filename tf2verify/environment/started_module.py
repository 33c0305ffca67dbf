"""How this process of Python was started."""

import re
from collections.abc import Sequence

# Python's own options that take the word after them.
_WITH_A_WORD = ('-W', '-X', '--check-hash-based-pycs')


def started_module(words: Sequence[str]) -> str:
  """Returns the module of `python ... -m MODULE ...`; '' for a script, `-c` or a prompt.

  Args:
    words: `sys.orig_argv`: the program first. What follows the script or module is its own.
  """
  rest = iter(words[1:])
  for word in rest:
    if re.fullmatch('-[A-Za-z]*m', word):
      return next(rest, '')
    if word in _WITH_A_WORD:
      next(rest, None)
    elif not word.startswith('-') or word == '-' or re.fullmatch('-[A-Za-z]*c', word):
      return ''
  return ''
