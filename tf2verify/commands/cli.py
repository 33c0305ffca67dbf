"""The command line: `python -m tf2verify run`, `report`, `adequacy`, `recorder`, `repeat`, …"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tf2verify.commands import defaults, repeating_scripts, run
from tf2verify.commands.arguments import parser
from tf2verify.commands.loading import load
from tf2verify.environment import doctor, startup_log
from tf2verify.errors import Tf2VerifyError, UsageError, UserCodeError
from tf2verify.reference.hidden_arguments import hidden_arguments
from tf2verify.safe_text import safe, say

if TYPE_CHECKING:
  from tf2verify.discovery import FoundCase
  from tf2verify.report.terminal import StageProgress

EXIT_PASSED, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
  """Runs one command.

  Args:
    argv: the arguments; `sys.argv[1:]` by default.

  Returns:
    0 all passed, 1 some did not, 2 usage or environment. `run` ends its process with 124 where a
    case does not come back from native code after its time.
  """
  own, script_arguments = _without_script_arguments(sys.argv[1:] if argv is None else list(argv))
  with hidden_arguments():
    return _command(own, script_arguments)


def _command(own: list[str], script_arguments: list[str]) -> int:
  script = os.path.basename(sys.argv[0])
  prog = script if script == 'tf2verify' else 'python -m tf2verify'
  try:
    known = _run_defaults(own)
    arguments = parser(prog, known).parse_args(own)
    if arguments.command == 'repeat':
      return _repeat(arguments, script_arguments)
    if arguments.command == 'doctor':
      with startup_log.held_back():
        return doctor.main()
    if arguments.command == 'new':
      return _new(arguments.function, arguments.out)
    if arguments.command in ('fleet', 'report', 'history'):
      return _without_tensorflow(arguments)
    if arguments.command == 'recorder':
      return _recorder()
    if arguments.command == 'recording':
      return _recording(arguments.folder)
    loud = getattr(arguments, 'detail', '') == 'VERBOSE'
    with contextlib.nullcontext() if loud else startup_log.held_back():
      load()
    if arguments.command == 'watch':
      return _watch(arguments.target, arguments.stages, arguments.rounds)
    if arguments.command == 'adequacy':
      return _adequacy(arguments.targets, arguments.limit, arguments.seed, arguments.report_dir)
    if arguments.command == 'prove':
      return _prove(arguments.targets, arguments.report_dir)
    if arguments.command == 'convert':
      return _convert(arguments)
    if arguments.command == 'map':
      return _map(arguments.target, arguments.out)
    if arguments.command == 'inspect':
      return _inspect(arguments.prefix, arguments.case)
    by_project = arguments.stages is not None and arguments.stages is known.get('stages')
    return run.run(arguments, defaults.nearest(os.getcwd()) if by_project else '')
  except Tf2VerifyError as error:
    say(f'tf2verify: {safe(str(error))}', sys.stderr)
    if isinstance(error, UserCodeError):
      say(safe(error.traceback_text), sys.stderr)
    return EXIT_USAGE


def _run_defaults(argv: Sequence[str]) -> dict[str, Any]:
  """Returns what pyproject.toml says of `run`; what is wrong with it is said by `run` alone."""
  asks_for_help = {'-h', '--help'} & set(argv)
  return defaults.run_defaults(os.getcwd()) if argv[:1] == ['run'] and not asks_for_help else {}


def _without_tensorflow(arguments: argparse.Namespace) -> int:
  """Runs a command that imports no TensorFlow into this process."""
  from tf2verify.commands import fleet, report
  from tf2verify.report import terminal

  if arguments.command == 'fleet':
    fields = {field.name for field in dataclasses.fields(fleet.Arguments)}
    given = {name: value for name, value in vars(arguments).items() if name in fields}
    return fleet.fleet(fleet.Arguments(**given))
  if arguments.command == 'history':
    well = report.history(arguments.journals)
  else:
    files, pages = arguments.files, run.pages_of(arguments)
    detail = terminal.Detail[arguments.detail]
    well = report.report(files, arguments.rtol, arguments.atol, pages, arguments.merge, detail)
  return EXIT_PASSED if well else EXIT_FAILED


def _new(function: str, out: str | None) -> int:
  from tf2verify.commands.new_case import write_new

  say(write_new(function, out))
  return EXIT_PASSED


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


def _without_script_arguments(argv: list[str]) -> tuple[list[str], list[str]]:
  """Splits off what `repeat` passes on to the script: all after `--`."""
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


def _watch(target: str, stages: Sequence[str] | None, rounds: int | None) -> int:
  from tf2verify.commands.watch import watch
  from tf2verify.selection import stage_names

  chosen = None if stages is None else stage_names(stages)
  return EXIT_PASSED if watch(target, chosen, rounds) else EXIT_FAILED


def _adequacy(targets: Sequence[str], limit: int, seed: int, report_dir: str | None) -> int:
  from tf2verify.commands.adequacy import adequacy
  from tf2verify.discovery import find_all
  from tf2verify.report import terminal
  from tf2verify.report.report_dir import write_adequacy

  for found in find_all(targets):
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


def _prove(targets: Sequence[str], report_dir: str | None) -> int:
  from tf2verify.commands.proof import prove_case
  from tf2verify.discovery import find_all
  from tf2verify.report import terminal
  from tf2verify.report.proof_report import proof_lines
  from tf2verify.report.report_dir import write_proof

  well = True
  for found in find_all(targets):
    with _quietly(found, progress := terminal.StageProgress()):
      proof = prove_case(found.case, progress)
    well = well and proof.is_whole
    terminal.say_lines(proof_lines(proof))
    if report_dir:
      terminal.say(f'report: {write_proof(proof, report_dir)}')
  return EXIT_PASSED if well else EXIT_FAILED


def _single_case(target: str) -> FoundCase:
  from tf2verify.discovery import find_cases

  found = find_cases(target)
  if len(found) != 1:
    names = ', '.join(one.case.__name__ for one in found)
    raise UsageError(f'{target} has {len(found)} cases ({names}); name one: PATH::Case')
  return found[0]


@contextlib.contextmanager
def _quietly(found: FoundCase, progress: StageProgress) -> Iterator[None]:
  """Lets a case be imported and run without deprecation warnings of its TF1 code."""
  from tf2verify.tensorflow_internals import deprecations

  try:
    with found.importable(), deprecations.unsaid():
      yield
  finally:
    progress.clear()


def _convert(arguments: argparse.Namespace) -> int:
  from tf2verify.commands.conversion.target import target_of
  from tf2verify.commands.conversion.to_port import convert
  from tf2verify.commands.conversion.to_tf1 import convert_to_tf1
  from tf2verify.report import terminal

  if arguments.to_tf1 is not None and arguments.ema:
    raise UsageError('--ema chooses keys of a TF1 checkpoint, and --to_tf1 reads none')
  out = target_of(arguments.out, arguments.format, arguments.overwrite)
  found = _single_case(arguments.target)
  progress = terminal.StageProgress()
  with _quietly(found, progress):
    if arguments.to_tf1 is not None:
      conversion = convert_to_tf1(found.case, arguments.to_tf1, out, progress)
    else:
      conversion = convert(
        found.case,
        arguments.tf1_checkpoint,
        out,
        progress,
        arguments.ema,
        not arguments.no_optimizer,
      )
  terminal.say(conversion.to_text(arguments.verbose))
  return EXIT_FAILED if conversion.refusal else EXIT_PASSED


def _map(target: str, out: str | None) -> int:
  from tf2verify.commands.variable_map import check_out, derived_of
  from tf2verify.report import terminal

  check_out(out)
  found = _single_case(target)
  progress = terminal.StageProgress()
  with _quietly(found, progress):
    derived = derived_of(found.case, progress)
  if out is None:
    terminal.say(derived.variable_map.to_text().rstrip())
  else:
    derived.variable_map.write(out)
    terminal.say(f'written: {out}')
  terminal.say(f'{found.case.__name__}: {derived.summary()}')
  for doubt in derived.doubts:
    terminal.say(f'  note: {doubt}')
  return EXIT_PASSED if derived.outputs_agree else EXIT_FAILED


def _inspect(prefix: str, target: str | None) -> int:
  from tf2verify.commands.inspection import inspect
  from tf2verify.report import terminal

  progress = terminal.StageProgress()
  if target is None:
    terminal.say(inspect(prefix, None, progress).text)
    return EXIT_PASSED
  found = _single_case(target)
  with _quietly(found, progress):
    inspection = inspect(prefix, found.case, progress)
  terminal.say(inspection.text)
  return EXIT_PASSED if inspection.fits else EXIT_FAILED
