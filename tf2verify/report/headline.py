"""A finding on one line, and the line of code that it is about: for lists of failures."""

import dataclasses
import os
import re
import textwrap

from tf2verify.records.verdict import StageVerdict
from tf2verify.records.verdict_text import outcome_text
from tf2verify.reference.user_files import is_file_of_user
from tf2verify.safe_text import safe_line

# Causes say what to write in the place of what is there: most of them fit.
_LONGEST = 300
# As Python's own traceback has it.
_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Place:
  """A line of the user's code."""

  path: str  # the file, as Python names it
  line: int  # from 1


def headline(stage: StageVerdict) -> str:
  """Returns the cause of a failure, or what was found where none is known, on one line."""
  causes = stage.diagnosis.causes if stage.diagnosis is not None else ()
  hints = [difference.hint for difference in stage.differences if difference.hint]
  known = [*(cause.text for cause in causes), *hints]
  return safe_line(known[0].replace('\n', ' ') if known else outcome_text(stage))


def message(stage: StageVerdict) -> str:
  """Returns the headline, on one line of at most 300 characters, for lists of tests.

  Where no cause is known: what differs first, and the line of the port where it begins to.
  """
  line = headline(stage)
  causes = stage.diagnosis.causes if stage.diagnosis is not None else ()
  if causes or any(difference.hint for difference in stage.differences):
    return textwrap.shorten(line, _LONGEST, placeholder=' …')
  if stage.differences:
    line += f': {stage.differences[0].quantity} {stage.differences[0].subject}'
  found = place(stage)
  where = '' if found is None else f'; first at {os.path.basename(found.path)}:{found.line}'
  return textwrap.shorten(safe_line(line), _LONGEST - len(where), placeholder=' …') + where


def place(stage: StageVerdict) -> Place | None:
  """Returns the line of the port where both sides first differ, or the user's line that raised."""
  sources = stage.diagnosis.sources if stage.diagnosis is not None else ()
  for source in sources:
    if source.tf2_source is not None:
      # What a layer of Keras computes is settled where it is constructed.
      line = next(iter(source.tf2_source.made), source.tf2_source)
      return Place(line.path, line.line)
  if stage.error is None:
    return None
  frames = _FRAME.findall(stage.error.traceback_text)
  own = [Place(path, int(line)) for path, line in frames if _is_own(path)]
  return own[-1] if own else None


def _is_own(path: str) -> bool:
  return is_file_of_user(path, ()) and f'{os.sep}site-packages{os.sep}' not in path
