"""A line of a report, and what it is: what a terminal needs to colour and wrap it."""

import dataclasses
import enum
from collections.abc import Iterable

_STEP = '  '


class Role(enum.Enum):
  """What a line, or the marked part of it, is."""

  PLAIN = 'plain'
  PASSED = 'passed'
  FAILED = 'failed'
  UNDECIDED = 'undecided'
  CAUSE = 'cause'
  CODE = 'code'
  REMARK = 'remark'


@dataclasses.dataclass(frozen=True)
class TextLine:
  """One line.

  Attributes:
    text: the whole line, with its indentation.
    role: what the marked part is.
    start: where the marked part begins.
    end: where it ends; None for the end of the line.
    hanging: columns by which a terminal indents what does not fit on the first row, more
      than the line itself.
    verbatim: whether a terminal shows it on one row however long it is: what is copied,
      as a command, or reads badly when it is wrapped, as code.
  """

  text: str
  role: Role = Role.PLAIN
  start: int = 0
  end: int | None = None
  hanging: int = 2
  verbatim: bool = False


def indented(lines: Iterable[TextLine], steps: int = 1) -> list[TextLine]:
  """Returns the lines, further to the right."""
  by = _STEP * steps
  return [
    dataclasses.replace(
      line,
      text=by + line.text,
      start=line.start + len(by),
      end=None if line.end is None else line.end + len(by),
    )
    for line in lines
  ]


def joined(lines: Iterable[TextLine]) -> str:
  """Returns the lines as a text, as wide as they are."""
  return '\n'.join(line.text for line in lines)
