"""What a run shows while it goes on."""

import dataclasses
import enum
import itertools
import os
import re
import sys
import textwrap
import time
from collections.abc import Iterable
from typing import TextIO

from tf2verify import safe_text
from tf2verify.records.status import Status
from tf2verify.records.text_line import Role, TextLine, indented
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.records.verdict_text import (
  accepted_lines,
  blind_spot_lines,
  case_line,
  case_status_line,
  case_text,
  failure_lines,
  failure_text,
  ladder_line,
  ladder_lines,
  remark_lines,
  role_of,
  run_again_lines,
  stage_line,
)
from tf2verify.report.headline import further_causes, headline, message

# Where neither a terminal nor COLUMNS says how wide the output is.
_WIDTH = 80
_NARROWEST = 40
_LONGEST_REMINDER = 160
_LONGEST_ERROR = 400  # what it says of the fix comes last
_STYLES = {
  Role.PASSED: 'green',
  Role.FAILED: 'bold red',
  Role.UNDECIDED: 'yellow',
  Role.CAUSE: 'bold',
  Role.CODE: 'cyan',
  Role.REMARK: 'dim',
}
# A number and its unit.
_OF_ONE_PIECE = re.compile(r'(\d) (s\b|%|GiB\b|MiB\b)')


class Detail(enum.IntEnum):
  """How much of a case is shown."""

  BRIEF = -1
  QUIET = 0
  NORMAL = 1
  VERBOSE = 2


def say(line: str) -> None:
  """Prints a line to standard output at once."""
  safe_text.say(line)


def say_lines(lines: Iterable[TextLine]) -> None:
  """Prints lines to standard output, wrapped, and coloured where that is a terminal.

  They are as wide as the terminal, or as COLUMNS says, or 80 columns. NO_COLOR, FORCE_COLOR and
  TERM=dumb have their usual meanings.
  """
  # Imported here, since it takes 50 ms, and most of what a process does prints nothing.
  from rich.console import Console
  from rich.text import Text

  width = width_of(sys.stdout)
  console = Console(
    file=sys.stdout,
    color_system=None if os.environ.get('NO_COLOR') else 'auto',
    width=width,
    force_jupyter=False,
  )
  for line in itertools.chain.from_iterable(map(_single_lines, lines)):
    for row, role, start, end in _rows(line, width):
      styled = Text(row, end='')
      if role in _STYLES:
        styled.stylize(_STYLES[role], start, end)
      with console.capture() as shown:
        console.print(styled, soft_wrap=True, end='')
      safe_text.write(shown.get() + '\n', sys.stdout)


def _single_lines(line: TextLine) -> list[TextLine]:
  """Returns a line whose text has line feeds, which a user's text may have, as several."""
  first, *others = safe_text.safe(line.text, longest=None).expandtabs(2).split('\n')
  indent = ' ' * (len(first) - len(first.lstrip(' ')) + line.hanging)
  whole = dataclasses.replace(line, text=first)
  return [whole, *(dataclasses.replace(line, text=indent + other, start=0) for other in others)]


def _rows(line: TextLine, width: int) -> Iterable[tuple[str, Role, int, int]]:
  """Yields the rows of a line, each with the part that has the line's role."""
  text = line.text.replace('\u00a0', ' ')
  end = len(text) if line.end is None else line.end
  if line.verbatim or len(text) <= width:
    yield text, line.role, line.start, end
    return
  indent = len(text) - len(text.lstrip(' '))
  hanging = ' ' * min(indent + line.hanging, width // 2)
  # Words that are too long stay whole: paths and names are copied.
  rows = textwrap.wrap(
    _OF_ONE_PIECE.sub('\\1\u00a0\\2', text.lstrip(' ')),
    width,
    initial_indent=' ' * indent,  # as part of the text it is lost before a word that is too long
    subsequent_indent=hanging,
    break_long_words=False,
    break_on_hyphens=False,
  )
  position = 0
  for number, row in enumerate(one.replace('\u00a0', ' ') for one in rows):
    before = len(hanging) if number else 0
    at = text.index(row[before:], position)
    position = at + len(row) - before
    start = max(line.start - at, 0) + before
    yield row, line.role, start, max(min(end - at + before, len(row)), start)


def width_of(stream: TextIO) -> int:
  """Returns how many columns a stream has: as COLUMNS says, or its terminal, or 80."""
  given = os.environ.get('COLUMNS', '')
  if given.isdecimal() and int(given) > 0:
    return max(int(given), _NARROWEST)
  try:
    columns = os.get_terminal_size(stream.fileno()).columns
  except (AttributeError, OSError, ValueError):
    return _WIDTH
  return max(columns, _NARROWEST) if columns else _WIDTH


def show_over(text: str) -> None:
  """Shows a line on the terminal of standard error, over the one shown last; '' for none."""
  sys.stderr.write('\r\033[K')
  text = safe_text.safe_line(text)
  width = width_of(sys.stderr)
  safe_text.say(text if len(text) < width else f'{text[: width - 2]}…', sys.stderr, end='')


class StageProgress:
  """Shows on a terminal what a long stage is at; silent where there is none.

  Args:
    label: what stands before every step: which case it is, of how many.
  """

  def __init__(self, label: str = '') -> None:
    self._terminal = sys.stderr.isatty()
    self._start = time.perf_counter()
    self._label = f'{label}: ' if label else ''

  def __call__(self, step: str) -> None:
    """Shows the step that begins now, over the one before."""
    if self._terminal:
      seconds = time.perf_counter() - self._start
      show_over(f'  … {self._label}{step} ({seconds:.0f} s)')

  def clear(self) -> None:
    """Takes the shown step away."""
    if self._terminal:
      show_over('')


class CaseShown:
  """Shows a case as its stages end, a failure as soon as its stage does.

  The stages after a failure may take most of the time. Brief, a case has one line, and one for each
  of its failures. Quiet, a case that passes shows nothing.
  Verbose, every stage has its line, its tables and its notes; else blocked stages in a row share a
  line, and blind spots are shown where no stage has failed: where one has, its cause is what to
  look at.

  Args:
    name: what the case is called: its class, and its file where another has the same name.
    progress: what is shown while a stage runs.
    detail: how much is shown.
  """

  def __init__(self, name: str, progress: StageProgress, detail: Detail = Detail.NORMAL) -> None:
    self._progress = progress
    self._detail = detail
    self._name = safe_text.safe_line(name)
    self._ended: list[StageVerdict] = []
    self._blocked: list[StageVerdict] = []
    if detail > Detail.QUIET:
      say(self._name)

  def stage(self, verdict: StageVerdict) -> None:
    """Shows what a stage found, over the step shown last."""
    self._progress.clear()
    verdict = safe_text.safe_values(verdict)
    self._ended.append(verdict)
    if self._detail > Detail.QUIET:
      self._say_line(verdict)
    if verdict.status.is_failure and self._detail > Detail.BRIEF:
      known = CaseVerdict(self._name, '', tuple(self._ended), ())
      say_lines([TextLine(''), *failure_lines(known, verdict), TextLine('')])

  def _say_line(self, verdict: StageVerdict) -> None:
    if verdict.status is Status.BLOCKED and self._detail < Detail.VERBOSE:
      self._blocked.append(verdict)
      return
    self._say_blocked()
    say_lines(indented([ladder_line(verdict, above_report=self._detail > Detail.BRIEF)]))
    if self._detail is Detail.VERBOSE and not verdict.differences:
      say_lines(indented(remark_lines(verdict), 3))

  def outcome(self, verdict: CaseVerdict) -> None:
    """Shows what follows the stages: failures that were not shown, and the case in one line."""
    self._progress.clear()
    self._say_blocked()
    verdict = dataclasses.replace(safe_text.safe_values(verdict), case=self._name)
    if self._detail is Detail.BRIEF:
      say_lines([_with_blind_spots(verdict), *reminder_lines(verdict)])
      return
    is_wrong = any(one.status is not Status.INCONCLUSIVE for one in verdict.failures)
    if self._detail is Detail.NORMAL and not is_wrong:
      say_lines(indented(accepted_lines(verdict.stages)))
      say_lines(indented(blind_spot_lines(verdict.stages)))
    ended = [one.stage for one in self._ended]
    late = [failure for failure in verdict.failures if failure.stage not in ended]
    for failure in late:  # of a stage that did not come back
      say_lines([TextLine(''), *failure_lines(verdict, failure), TextLine('')])
    if verdict.failures[:1] != tuple(late[:1]):
      if not self._is_just_above() and self._detail > Detail.QUIET:
        own = (one for one in verdict.failures if verdict.same_error(one) is None)
        say_lines(indented(map(_reminder, own)))
      say_lines(indented(run_again_lines(verdict)))
    if self._detail > Detail.QUIET or verdict.failures:
      say_lines([case_status_line(verdict)])

  def _is_just_above(self) -> bool:
    """Whether nothing but what is blocked followed the report of a failure, and of that alone."""
    left = [one.status for one in self._ended if one.status is not Status.BLOCKED]
    failures = sum(status.is_failure for status in left)
    return not left or (
      left[-1].is_failure and (failures == 1 or self._ended[-1].status.is_failure)
    )

  def _say_blocked(self) -> None:
    say_lines(indented(ladder_lines(self._blocked)))
    self._blocked.clear()


def _with_blind_spots(case: CaseVerdict) -> TextLine:
  """Returns the case in one line, with how many blind spots it has: nothing else tells of them."""
  line, count = case_status_line(case), sum(len(stage.blind_spots) for stage in case.stages)
  said = f', {count} blind spot{"" if count == 1 else "s"}' if count else ''
  return dataclasses.replace(line, text=line.text + said)


def reminder_lines(verdict: CaseVerdict) -> list[TextLine]:
  """Returns the failures of a case that are not shown here, each with its causes on one line."""
  verdict = safe_text.safe_values(verdict)
  return indented(_reminder(failure, message(failure)) for failure in verdict.failures)


def _reminder(failure: StageVerdict, said: str = '') -> TextLine:
  """Returns a failure on one line; by default as one that was shown whole."""
  start = f'{failure.stage} {failure.status.value}: '
  longest = _LONGEST_REMINDER if failure.error is None else _LONGEST_ERROR
  if not said:
    said = textwrap.shorten(headline(failure), longest, placeholder=' …') + further_causes(failure)
  return TextLine(start + said, role_of(failure.status), start=0, end=len(start) - 2, hanging=2)


def say_failures(verdict: CaseVerdict) -> None:
  """Shows every stage that is not well of itself."""
  verdict = safe_text.safe_values(verdict)
  for failure in verdict.failures:
    say_lines([TextLine(''), *failure_lines(verdict, failure)])
  if verdict.failures:
    say('')


__all__ = [
  'CaseShown',
  'Detail',
  'StageProgress',
  'case_line',
  'case_text',
  'failure_text',
  'reminder_lines',
  'say',
  'say_failures',
  'say_lines',
  'show_over',
  'stage_line',
  'test_text',
  'width_of',
]


def exception_text(
  case: CaseVerdict, stage: StageVerdict, tested: StageVerdict | None = None
) -> str:
  """Returns what a test that fails raises: the report of a stage below the finding on one line.

  absl writes all of it as the message of the test, and lists of failures show its first line.

  Args:
    case: the case.
    stage: the stage that failed.
    tested: as of `test_text`.
  """
  return f'{message(stage)}\n{test_text(case, stage, stage if tested is None else tested)}'


def test_text(case: CaseVerdict, stage: StageVerdict, tested: StageVerdict) -> str:
  """Returns the report of a stage, and first, which other stage was to be tested and is blocked.

  Args:
    case: the case.
    stage: the stage that failed.
    tested: the stage of the test; blocked by the other one if it is not the same.
  """
  text = failure_text(case, stage)
  return text if tested.stage == stage.stage else f'{tested.stage} is {tested.reason}\n{text}'
