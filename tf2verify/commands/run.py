"""`python -m tf2verify run`: verifies cases one after the other, in this process."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from tf2verify.commands import defaults
from tf2verify.environment import diagnose_option
from tf2verify.errors import CaseDefinitionError, Tf2VerifyError, UsageError
from tf2verify.safe_text import safe, say

if TYPE_CHECKING:
  from tf2verify.case import EquivalenceCase
  from tf2verify.commands.report import Pages
  from tf2verify.discovery import FoundCase
  from tf2verify.records.verdict import CaseVerdict
  from tf2verify.report.terminal import CaseShown

EXIT_STUCK = 124  # as timeout(1) has it


def run(arguments: argparse.Namespace, project: str = '') -> int:
  """Verifies the cases that are named.

  Args:
    arguments: the command line, with the defaults of pyproject.toml.
    project: the path of pyproject.toml, if the stages are of it.

  Returns:
    0 all passed, 1 some did not. After Ctrl-C, what is known is written before it goes on.

  Raises:
    Tf2VerifyError: arguments or files cannot be used.
  """
  # Imported here, since these need an environment that works, and other commands do not.
  from tf2verify.discovery import find_all
  from tf2verify.records.status import Status
  from tf2verify.report import terminal

  pages = pages_of(arguments)
  pages.require()
  diagnose_option.set_for_process(arguments.diagnose)
  stages = _chosen_stages(arguments.stages, project)
  cases = find_all(arguments.targets)
  verdicts: list[CaseVerdict] = []
  try:
    for number, found in enumerate(cases, 1):
      count = f' {number} of {len(cases)}' if len(cases) > 1 else ''
      verdicts.append(_verified(arguments, found, stages, count, verdicts, len(cases)))
  except KeyboardInterrupt:
    if verdicts:
      _write_all(arguments, pages, verdicts)
      terminal.say(f'interrupted: {len(verdicts)} of {len(cases)} cases have a verdict')
    raise
  _write_all(arguments, pages, verdicts)
  passed = sum(verdict.status is Status.PASSED for verdict in verdicts)
  terminal.say(f'{passed} of {len(verdicts)} cases passed')
  return 0 if passed == len(verdicts) else 1


def _chosen_stages(given: Sequence[str] | None, project: str) -> tuple[str, ...] | None:
  from tf2verify.selection import stage_names

  try:
    return None if given is None else stage_names(given)
  except CaseDefinitionError as error:
    if not project:
      raise
    raise UsageError(f'{project}: [{defaults.TABLE}] stages: {error}') from error


def _verified(
  arguments: argparse.Namespace,
  found: FoundCase,
  stages: tuple[str, ...] | None,
  count: str,
  before: Sequence[CaseVerdict],
  total: int,
) -> CaseVerdict:
  """Runs one case of several, shows and writes what came of it, and returns it."""
  from tf2verify.case import verify
  from tf2verify.report import github, terminal
  from tf2verify.report.report_dir import write_case
  from tf2verify.tensorflow_internals import deprecations

  progress = terminal.StageProgress(f'{found.name}{count}')
  shown = terminal.CaseShown(found.name, progress, terminal.Detail[arguments.detail])
  said = deprecations.asked() if arguments.deprecations else deprecations.unsaid()
  with found.importable(), said:
    try:
      verdict = verify(
        found.case,
        stages,
        shown.stage,
        progress,
        arguments.timeout,
        functools.partial(_give_up, arguments, before, total, shown),
        arguments.reuse_reference,
      )
    except CaseDefinitionError as error:  # it does not keep the other cases from running
      verdict = _refusal(found.case, error)
      shown.stage(verdict.stages[0])
  shown.outcome(verdict)
  if arguments.reuse_reference:
    terminal.say(f'reference: {dict(verdict.environment).get("reference", "not kept")}')
  if github.is_wanted(arguments.github_annotations):
    for line in github.annotation_lines([verdict]):
      terminal.say(line)
  if arguments.report_dir:
    write_case(verdict, arguments.report_dir)
  return verdict


def _write_all(arguments: argparse.Namespace, pages: Pages, verdicts: list[CaseVerdict]) -> None:
  """Writes the files about all cases that were asked for."""
  from tf2verify.report import terminal
  from tf2verify.report.report_dir import write_summary
  from tf2verify.report.tensorboard import writing

  if arguments.report_dir:
    terminal.say(f'summary: {write_summary(verdicts, arguments.report_dir)}')
  pages.write(verdicts)
  if pages.tensorboard_dir:
    writing.write_cases(pages.tensorboard_dir, verdicts)
    terminal.say(writing.how_to_look(pages.tensorboard_dir))


def _give_up(
  arguments: argparse.Namespace,
  before: Sequence[CaseVerdict],
  count: int,
  shown: CaseShown,
  verdict: CaseVerdict,
) -> NoReturn:
  """Ends the process where a case does not come back from native code; keeps what is known."""
  from tf2verify.report import terminal
  from tf2verify.report.report_dir import write_case, write_summary

  verdicts = [*before, verdict]
  try:
    shown.outcome(verdict)
    if arguments.report_dir:
      write_case(verdict, arguments.report_dir)
      terminal.say(f'summary: {write_summary(verdicts, arguments.report_dir)}')
    pages_of(arguments).write(verdicts)
    if len(verdicts) < count:
      terminal.say(
        f'{count - len(verdicts)} cases after it were not run: python -m tf2verify fleet runs each '
        'in a process of its own'
      )
  except Tf2VerifyError as error:
    say(f'tf2verify: {safe(str(error))}', sys.stderr)
  finally:
    os._exit(EXIT_STUCK)


def _refusal(case: type[EquivalenceCase], error: CaseDefinitionError) -> CaseVerdict:
  """Returns the verdict of a class that is not a complete case."""
  from tf2verify.records.status import Status
  from tf2verify.records.verdict import CaseVerdict, ErrorRecord, StageVerdict
  from tf2verify.stages import STAGES

  record = ErrorRecord('case', str(error))
  first = StageVerdict(STAGES[0].name, 1, Status.ERROR, error=record)
  return CaseVerdict(case.__name__, case.__module__, (first,))


def pages_of(arguments: argparse.Namespace) -> Pages:
  """Returns the files that are to be written of all verdicts."""
  from tf2verify.commands.report import Pages

  names = ('html', 'junit', 'markdown', 'tensorboard_dir', 'sarif')
  return Pages(*(getattr(arguments, name) for name in names))
