"""What a run shows while it goes on."""

import sys
import time
from collections.abc import Callable

from tf2verify import safe_text
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.records.verdict_text import (
  case_line,
  case_text,
  failure_text,
  notes_text,
  stage_line,
)


def say(line: str) -> None:
  """Prints a line to standard output at once."""
  safe_text.say(line)


def show_over(text: str) -> None:
  """Shows a line on the terminal of standard error, over the one shown last; '' for none."""
  sys.stderr.write('\r\033[K')
  safe_text.say(safe_text.safe_line(text), sys.stderr, end='')


class StageProgress:
  """Shows on a terminal what a long stage is at; silent where there is none."""

  def __init__(self) -> None:
    self._terminal = sys.stderr.isatty()
    self._start = time.perf_counter()

  def __call__(self, step: str) -> None:
    """Shows the step that begins now, over the one before."""
    if self._terminal:
      seconds = time.perf_counter() - self._start
      show_over(f'  … {step} ({seconds:.0f} s)')

  def clear(self) -> None:
    """Takes the shown step away."""
    if self._terminal:
      show_over('')


def stage_sayer(progress: StageProgress) -> Callable[[StageVerdict], None]:
  """Returns a function that shows a verdict's line, over the step shown last."""

  def show(verdict: StageVerdict) -> None:
    progress.clear()
    verdict = safe_text.safe_values(verdict)
    say(f'  {stage_line(verdict)}')
    if verdict.compared.blind_spots:
      for note in notes_text(verdict):
        say(f'      {note}')

  return show


def say_outcome(verdict: CaseVerdict) -> None:
  """Shows what comes behind the lines of the stages: first failure, case."""
  verdict = safe_text.safe_values(verdict)
  if verdict.first_failure is not None:
    say('\n' + failure_text(verdict, verdict.first_failure) + '\n')
  say(case_line(verdict))


__all__ = [
  'StageProgress',
  'case_line',
  'case_text',
  'failure_text',
  'say',
  'say_outcome',
  'show_over',
  'stage_line',
  'stage_sayer',
]
