"""The command line: `python -m tf2verify run`, `report`, `adequacy`, `recorder`, `repeat`, …"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from tf2verify.commands import repeating_scripts
from tf2verify.commands.arguments import parser
from tf2verify.environment import doctor, legacy_keras
from tf2verify.errors import CaseDefinitionError, Tf2VerifyError, UsageError, UserCodeError
from tf2verify.safe_text import safe, say

if TYPE_CHECKING:
  from tf2verify.case import EquivalenceCase
  from tf2verify.discovery import FoundCase
  from tf2verify.records.verdict import CaseVerdict

EXIT_PASSED, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
# As timeout(1) has it.
EXIT_STUCK = 124


def main(argv: Sequence[str] | None = None) -> int:
  """Runs one command.

  Args:
    argv: the arguments; `sys.argv[1:]` by default.

  Returns:
    The exit status: 0 all passed, 1 some did not, 2 usage or environment. `run` ends its
    process with 124 where a case does not come back from native code after its time.
  """
  own, script_arguments = _without_script_arguments(sys.argv[1:] if argv is None else list(argv))
  script = os.path.basename(sys.argv[0])
  prog = script if script == 'tf2verify' else 'python -m tf2verify'
  arguments = parser(prog).parse_args(own)
  try:
    if arguments.command == 'repeat':
      return _repeat(arguments, script_arguments)
    if arguments.command == 'doctor':
      return doctor.main()
    if arguments.command in ('fleet', 'report', 'history'):
      return _without_tensorflow(arguments)
    if arguments.command == 'recorder':
      return _recorder()
    if arguments.command == 'recording':
      return _recording(arguments.folder)
    legacy_keras.require()
    _divide_the_cpu()
    if arguments.command == 'adequacy':
      return _adequacy(arguments.targets, arguments.limit, arguments.seed, arguments.report_dir)
    if arguments.command == 'convert':
      return _convert(arguments.target, arguments.tf1_checkpoint, arguments.out)
    if arguments.command == 'inspect':
      return _inspect(arguments.prefix, arguments.case)
    return _run(arguments)
  except Tf2VerifyError as error:
    say(f'tf2verify: {safe(str(error))}', sys.stderr)
    if isinstance(error, UserCodeError):
      say(safe(error.traceback_text), sys.stderr)
    return EXIT_USAGE


def _without_tensorflow(arguments: argparse.Namespace) -> int:
  """Runs a command that imports no TensorFlow into this process."""
  from tf2verify.commands import fleet, report

  if arguments.command == 'fleet':
    fields = {field.name for field in dataclasses.fields(fleet.Arguments)}
    given = {name: value for name, value in vars(arguments).items() if name in fields}
    return fleet.fleet(fleet.Arguments(**given))
  if arguments.command == 'history':
    well = report.history(arguments.journals)
  else:
    pages = report.Pages(
      arguments.html, arguments.junit, arguments.markdown, arguments.tensorboard_dir
    )
    well = report.report(arguments.files, arguments.rtol, arguments.atol, pages, arguments.merge)
  return EXIT_PASSED if well else EXIT_FAILED


def _recorder() -> int:
  from tf2verify.commands.recorder import recorder_text
  from tf2verify.report import terminal

  terminal.say(recorder_text().removesuffix('\n'))
  return EXIT_PASSED


def _recording(folder: str) -> int:
  from tf2verify.commands.recording import recording_text
  from tf2verify.report import terminal

  terminal.say(recording_text(folder))
  return EXIT_PASSED


def _divide_the_cpu() -> None:
  """Gives this process the devices that the execution mode of two replicas needs."""
  from tf2verify.sides.process import logical_devices

  logical_devices.ask_for_two_cpus()


def _without_script_arguments(argv: list[str]) -> tuple[list[str], list[str]]:
  """Splits off what `repeat` passes on to the script: all behind `--`."""
  if argv[:1] != ['repeat'] or '--' not in argv:
    return argv, []
  end = argv.index('--')
  return argv[:end], argv[end + 1 :]


def _repeat(arguments: argparse.Namespace, script_arguments: Sequence[str]) -> int:
  from tf2verify.report import terminal

  progress = terminal.StageProgress()
  try:
    measured = repeating_scripts.repeat(
      arguments.script,
      script_arguments,
      repeating_scripts.settings_named(arguments.settings),
      arguments.runs,
      arguments.seed,
      arguments.metrics,
      progress,
    )
  finally:
    progress.clear()
  for line in repeating_scripts.report_lines(measured):
    terminal.say(line)
  last = measured[-1]
  said = 'every metric repeats' if last.repeatable else 'not every metric repeats'
  terminal.say(f'{said} with {last.setting.name}')
  return EXIT_PASSED if last.repeatable else EXIT_FAILED


def _run(arguments: argparse.Namespace) -> int:
  # Imported here, since these need an environment that works, and doctor does not.
  from tf2verify.case import verify
  from tf2verify.discovery import find_cases
  from tf2verify.records.status import Status
  from tf2verify.report import terminal
  from tf2verify.report.html import page
  from tf2verify.report.report_dir import write_case, write_summary
  from tf2verify.report.tensorboard import writing
  from tf2verify.selection import check_stage_name
  from tf2verify.tensorflow_internals import deprecations

  stages, report_dir, html = arguments.stages, arguments.report_dir, arguments.html
  tensorboard_dir = arguments.tensorboard_dir
  if html:
    page.require()
  if tensorboard_dir:
    writing.require(tensorboard_dir)
  for name in stages or ():
    check_stage_name(name)
  cases = [found for target in arguments.targets for found in find_cases(target)]
  verdicts: list[CaseVerdict] = []
  for found in cases:
    progress = terminal.StageProgress()
    terminal.say(found.case.__name__)
    said = contextlib.nullcontext() if arguments.deprecations else deprecations.unsaid()
    with found.importable(), said:
      try:
        verdict = verify(
          found.case,
          stages,
          terminal.stage_sayer(progress),
          progress,
          arguments.timeout,
          functools.partial(_give_up, arguments, verdicts, len(cases)),
        )
      except CaseDefinitionError as error:  # it does not keep the other cases from running
        verdict = _refusal(found.case, error)
        terminal.say(terminal.stage_line(verdict.stages[0]))
    verdicts.append(verdict)
    terminal.say_outcome(verdict)
    if report_dir:
      write_case(verdict, report_dir)
  passed = sum(verdict.status is Status.PASSED for verdict in verdicts)
  if report_dir:
    terminal.say(f'summary: {write_summary(verdicts, report_dir)}')
  if html:
    page.write_page(html, verdicts)
    terminal.say(f'page: {html}')
  if tensorboard_dir:
    writing.write_cases(tensorboard_dir, verdicts)
    terminal.say(writing.how_to_look(tensorboard_dir))
  terminal.say(f'{passed} of {len(verdicts)} cases passed')
  return EXIT_PASSED if passed == len(verdicts) else EXIT_FAILED


def _give_up(
  arguments: argparse.Namespace, before: Sequence[CaseVerdict], count: int, verdict: CaseVerdict
) -> NoReturn:
  """Ends the process where a case does not come back from native code; keeps what is known."""
  from tf2verify.report import terminal
  from tf2verify.report.html import page
  from tf2verify.report.report_dir import write_case, write_summary

  verdicts = [*before, verdict]
  try:
    terminal.say_outcome(verdict)
    if arguments.report_dir:
      write_case(verdict, arguments.report_dir)
      terminal.say(f'summary: {write_summary(verdicts, arguments.report_dir)}')
    if arguments.html:
      page.write_page(arguments.html, verdicts)
      terminal.say(f'page: {arguments.html}')
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
  """Returns the verdict of a class that is no complete case."""
  from tf2verify.records.status import Status
  from tf2verify.records.verdict import CaseVerdict, ErrorRecord, StageVerdict
  from tf2verify.stages import STAGES

  record = ErrorRecord('case', str(error))
  first = StageVerdict(STAGES[0].name, 1, Status.ERROR, error=record)
  return CaseVerdict(case.__name__, case.__module__, (first,))


def _adequacy(targets: Sequence[str], limit: int, seed: int, report_dir: str | None) -> int:
  from tf2verify.commands.adequacy import adequacy
  from tf2verify.discovery import find_cases
  from tf2verify.report import terminal
  from tf2verify.report.report_dir import write_adequacy

  for found in [case for target in targets for case in find_cases(target)]:
    progress = terminal.StageProgress()
    try:
      with found.importable():
        report = adequacy(found.case, limit, seed, progress)
    finally:
      progress.clear()
    terminal.say(report.to_text())
    if report_dir:
      terminal.say(f'report: {write_adequacy(report, report_dir)}')
  return EXIT_PASSED


def _single_case(target: str) -> FoundCase:
  from tf2verify.discovery import find_cases

  found = find_cases(target)
  if len(found) != 1:
    names = ', '.join(one.case.__name__ for one in found)
    raise UsageError(f'{target} has {len(found)} cases ({names}); name one: PATH::Case')
  return found[0]


def _convert(target: str, source: str, out: str) -> int:
  from tf2verify.commands.conversion import convert
  from tf2verify.report import terminal

  found = _single_case(target)
  progress = terminal.StageProgress()
  try:
    with found.importable():
      conversion = convert(found.case, source, out, progress)
  finally:
    progress.clear()
  terminal.say(conversion.to_text())
  return EXIT_FAILED if conversion.refusal else EXIT_PASSED


def _inspect(prefix: str, target: str | None) -> int:
  from tf2verify.commands.inspection import inspect
  from tf2verify.report import terminal

  progress = terminal.StageProgress()
  if target is None:
    terminal.say(inspect(prefix, None, progress))
    return EXIT_PASSED
  found = _single_case(target)
  try:
    with found.importable():
      said = inspect(prefix, found.case, progress)
  finally:
    progress.clear()
  terminal.say(said)
  return EXIT_PASSED
