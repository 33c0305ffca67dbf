"""What was wrong, on one line."""

import itertools
import re

from tf2verify.errors import LayerError, UserCodeError

_LONGEST = 300
_ERROR_LINE = re.compile(r'(\w+(?:Error|Exception)): (.+)')


def telling_line(error: UserCodeError | LayerError) -> str:
  """Returns what was wrong on one line; autograph and Keras put it after a traceback."""
  lines = [line.strip() for line in str(error.__cause__).splitlines() if line.strip()]
  for line, following in itertools.pairwise([*lines, '']):
    found = _ERROR_LINE.fullmatch(line)
    if found and found[2].startswith('Exception encountered when calling'):
      return f'{found[1]}: {following}'[:_LONGEST]
    if found:
      return line[:_LONGEST]
  return _sentence(str(error).splitlines())[:_LONGEST]


def _sentence(lines: list[str]) -> str:
  """Returns the first line, with those that go on with it: Keras breaks its sentences."""
  found = [lines[0].strip()]
  for line in lines[1:]:
    if not line.strip() or found[-1].endswith(('.', ':', '!', '?')):
      break
    found.append(line.strip())
  return ' '.join(found)
