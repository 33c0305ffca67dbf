"""Errors of an execution mode, on one line."""

import re
import traceback

from tf2verify.safe_text import message_of
from tf2verify.sides.graphs.lines.source_lines import is_user_file, source_line

# `... on XLA_CPU_JIT: StringJoin (No registered 'StringJoin' OpKernel for ...)`.
_WITHOUT_XLA_KERNEL = re.compile(r"\b(\w+) \(No registered '\w+' OpKernel for XLA")
_AUTOGRAPH = 'in user code:'
_FRAME = re.compile(r'\s*File "([^"]+)", line (\d+), in (\w+)')
_LONGEST = 240


def one_line(error: BaseException) -> str:
  """Returns type, message and the user's line of an error that a mode raised."""
  text = message_of(error)
  missing = list(dict.fromkeys(_WITHOUT_XLA_KERNEL.findall(text)))
  if missing:
    return f'XLA has no kernel for {", ".join(missing)}'
  said = _message(text)
  if not text.lstrip().startswith(_AUTOGRAPH):
    said = f'{type(error).__name__}: {said}' if said else type(error).__name__
  said = said.split('. ')[0]
  if len(said) > _LONGEST:
    said = said[: _LONGEST - 1] + '…'
  place = _place(error, text)
  return f'{said} ({place})' if place else said


def _message(text: str) -> str:
  """Returns the first line that says something, or the last of what autograph quotes."""
  lines = [line.strip() for line in text.splitlines() if line.strip()]
  if text.lstrip().startswith(_AUTOGRAPH):
    # The stack, then `Type: message`, then what Keras adds.
    last = max((n for n, line in enumerate(lines) if _FRAME.match(line)), default=0)
    said = [line for line in lines[last + 1 :] if re.match(r'\w+: ', line)]
    return said[0] if said else lines[-1]
  if len(lines) > 1 and lines[0].startswith('Exception encountered when calling'):
    return lines[1]
  return lines[0] if lines else ''


def _place(error: BaseException, text: str) -> str:
  """Returns the innermost line of the user's."""
  found = [
    (frame.filename, frame.lineno or 0, frame.name)
    for frame in traceback.extract_tb(error.__traceback__)
  ]
  if text.lstrip().startswith(_AUTOGRAPH):
    frames = (_FRAME.match(line) for line in text.splitlines())
    found = [(m.group(1), int(m.group(2)), m.group(3)) for m in frames if m is not None]
  own = [frame for frame in found if is_user_file(frame[0])]
  return str(source_line(*own[-1])) if own else ''
