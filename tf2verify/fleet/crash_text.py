"""The end of what a crashed process printed, as a reader wants it."""

import linecache
import os
import re

from tf2verify.safe_text import safe

_SHOWN_LINES = 40
_LONGEST_LINE = 400
_FRAME = re.compile(r'  File "(?P<path>.*)", line (?P<line>\d+) in ')
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LOADERS = ('<string>', '<frozen importlib', '<frozen runpy')
_ADDRESS = re.compile(r'(?<=[Tt]hread) 0x[0-9a-f]+')
_MODULES = 'Extension modules: '
# TensorFlow says so at every start on a machine without a GPU.
_NO_GPU = 'failed call to cuInit'


def end_of_log(log: str) -> str:
  """Returns the last lines of a log; stacks without the frames that are not the user's.

  Args:
    log: what the process printed, Python's stack of the crash at its end.
  """
  # Of a progress bar, what was written last stands on its line.
  lines = [line.rstrip('\r').rpartition('\r')[2] for line in log.split('\n')]
  lines = [safe(line) for line in lines]
  lines = [_clipped(line) for line in _stacks_cut(lines)]
  while lines and not lines[-1].strip():
    lines.pop()
  cut = len(lines) - _SHOWN_LINES
  return '\n'.join([f'… {cut} lines before', *lines[cut:]] if cut > 0 else lines)


def _clipped(line: str) -> str:
  return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + '…'


def _stacks_cut(lines: list[str]) -> list[str]:
  found: list[str] = []
  stack: list[str] | None = None
  for line in lines:
    if _FRAME.match(line) or (stack is not None and line == '  ...'):
      stack = [*(stack or []), line]
      continue
    if stack is not None:
      found += _user_frames(stack)
      stack = None
    if not line.startswith(_MODULES) and _NO_GPU not in line:
      found.append(_ADDRESS.sub('', line))
  return found + _user_frames(stack or [])


def _user_frames(stack: list[str]) -> list[str]:
  """Returns the frames of a stack from the innermost to the user's outermost, with their code."""
  shown = []
  for frame in stack:
    match = _FRAME.match(frame)
    path = match['path'] if match else ''
    if path.startswith((_OWN_FOLDER, *_LOADERS)):
      continue
    shown.append(frame)
    code = linecache.getline(path, int(match['line'])).strip() if match else ''
    if code:
      shown.append(f'    {code}')
  return shown or stack
