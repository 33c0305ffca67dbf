"""The command line: `python -m tf2verify run`, `report`, `adequacy`, `recorder`, `repeat`, …"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tf2verify import doctor, legacy_keras, repeating_scripts
from tf2verify.errors import Tf2VerifyError, UsageError, UserCodeError

if TYPE_CHECKING:
  from tf2verify.discovery import FoundCase

EXIT_PASSED, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog='python -m tf2verify',
    description='Verifies that a TF2 port of a TensorFlow 1 model is still the same model.',
  )
  commands = parser.add_subparsers(dest='command', required=True, metavar='COMMAND')
  run = commands.add_parser(
    'run',
    help='climb the ladder with the cases of files, folders or modules',
    epilog='exit status: 0 all passed, 1 some did not, 2 usage or environment',
  )
  run.add_argument(
    'targets',
    nargs='+',
    metavar='PATH[::Case]',
    help='a file, a folder (its test_*.py, *_test.py and *_case.py) or a module',
  )
  run.add_argument(
    '--stages', nargs='+', metavar='STAGE', help='only these stages, and those that they need'
  )
  run.add_argument(
    '--report_dir', metavar='DIR', help='write one JSON file per case and summary.md there'
  )
  run.add_argument('--html', metavar='FILE', help='write a page to look at there')
  _add_fleet(commands)
  _add_report(commands)
  adequacy = commands.add_parser(
    'adequacy',
    help='plant faults into the port of a case, and count those that the case would show',
    epilog='exit status: 0 the faults were run, 2 the case does not pass, usage or environment',
  )
  adequacy.add_argument(
    'targets', nargs='+', metavar='PATH[::Case]', help='as of run; mostly a single case'
  )
  adequacy.add_argument(
    '--limit', type=_positive, default=50, metavar='N', help='how many faults to run (50)'
  )
  adequacy.add_argument('--seed', type=int, default=0, metavar='S', help='which faults (0)')
  adequacy.add_argument('--report_dir', metavar='DIR', help='write one JSON file per case there')
  _add_repeat(commands)
  _add_checkpoint_commands(commands)
  _add_recording_commands(commands)
  commands.add_parser('doctor', help='show versions, what was mended, and a fix per problem')
  return parser


def _add_fleet(commands: Any) -> None:
  fleet = commands.add_parser(
    'fleet',
    help='run many cases, each in a process of its own, and keep the verdicts in a journal',
    description='TEST_TOTAL_SHARDS and TEST_SHARD_INDEX choose a part of the cases, for one of '
    'several machines.',
    epilog='exit status: 0 all passed, 1 some did not, 2 usage or environment, 130 after Ctrl-C',
  )
  fleet.add_argument('targets', nargs='+', metavar='PATH[::Case]', help='as of run')
  fleet.add_argument(
    '--journal', required=True, metavar='RUN.sqlite', help='gets a verdict the moment its case ends'
  )
  fleet.add_argument(
    '--jobs', type=_positive, metavar='N', help='cases at once (as many as there are processors)'
  )
  fleet.add_argument(
    '--timeout',
    type=_not_negative,
    default=3600.0,
    metavar='S',
    help='seconds that a case may take (3600); 0 for no limit',
  )
  fleet.add_argument(
    '--memory',
    type=_not_negative,
    metavar='GB',
    help='GiB that a case may take (an even share of nine tenths of all)',
  )
  fleet.add_argument(
    '--stages', nargs='+', default=(), metavar='STAGE', help='only these, and those that they need'
  )
  fleet.add_argument(
    '--resume', action='store_true', help='run only what has no verdict yet, or has changed since'
  )
  fleet.add_argument(
    '--retry', action='store_true', help='as --resume, and run cases again that ended with ERROR'
  )
  fleet.add_argument(
    '--report_dir', metavar='DIR', help='write one JSON file per case and summary.md there'
  )


def _add_report(commands: Any) -> None:
  report = commands.add_parser(
    'report',
    help='show stored reports and journals, judged by other tolerances where some are given',
    epilog='exit status: 0 all passed, 1 some did not, 2 a file that is no report',
  )
  report.add_argument(
    'files',
    nargs='+',
    metavar='FILE',
    help='written by --report_dir, or its folder; or a journal: its last run',
  )
  for name in ('rtol', 'atol'):
    report.add_argument(
      f'--{name}', type=float, metavar='X', help=f'judge all values by this {name} instead'
    )
  report.add_argument('--html', metavar='FILE', help='write a page to look at there')
  report.add_argument('--junit', metavar='FILE.xml', help="write JUnit's XML there")
  report.add_argument('--markdown', metavar='FILE.md', help='write the summary there')
  report.add_argument(
    '--merge', metavar='OUT.sqlite', help='write the journals of several shards there as one'
  )
  history = commands.add_parser(
    'history',
    help='show how the cases of journals fared across runs and versions',
    epilog='exit status: 0 no case has got worse since the run before, 1 some have, 2 usage',
  )
  history.add_argument('journals', nargs='+', metavar='RUN.sqlite', help='written by fleet')


def _add_repeat(commands: Any) -> None:
  repeat = commands.add_parser(
    'repeat',
    help='run a training script several times: do its metrics repeat, and at what price',
    description='A metric is what the script prints to standard output as name=value; the last '
    'value of each name counts. Arguments of the script stand behind --.',
    epilog='exit status: 0 every metric repeats under the last setting, 1 some do not, 2 usage, or '
    'the script failed',
  )
  repeat.add_argument('script', metavar='SCRIPT', help='the path of a Python script')
  repeat.add_argument(
    '--runs', type=_positive, default=10, metavar='N', help='runs under each setting (10)'
  )
  repeat.add_argument('--seed', type=int, default=0, metavar='S', help='of all seeds (0)')
  repeat.add_argument(
    '--settings',
    nargs='+',
    default=repeating_scripts.DEFAULT_SETTINGS,
    metavar='NAME',
    help=f'of {", ".join(setting.name for setting in repeating_scripts.SETTINGS)} (all but the '
    'third)',
  )
  repeat.add_argument(
    '--metrics', nargs='+', default=(), metavar='NAME', help='only these of what it prints'
  )


def _add_checkpoint_commands(commands: Any) -> None:
  convert = commands.add_parser(
    'convert',
    help='turn a TF1 checkpoint into one of the port, if everything about it can be verified',
    epilog='exit status: 0 written, 1 refused, nothing written, 2 usage or environment',
  )
  convert.add_argument('target', metavar='PATH::Case', help='as of run; a single case')
  convert.add_argument(
    '--tf1_checkpoint', required=True, metavar='PREFIX', help='as given to Saver.restore'
  )
  convert.add_argument(
    '--out', required=True, metavar='PREFIX', help='where to write; nothing is overwritten'
  )
  inspect = commands.add_parser(
    'inspect',
    help='list the keys of a checkpoint, beside the variables of a case where one is given',
    epilog='exit status: 0 listed, 2 a checkpoint that cannot be read, usage or environment',
  )
  inspect.add_argument('prefix', metavar='PREFIX', help='as given to Saver.restore')
  inspect.add_argument('--case', metavar='PATH::Case', help='as of run; a single case')


def _add_recording_commands(commands: Any) -> None:
  commands.add_parser(
    'recorder',
    help='print the one file that records a reference where TensorFlow 1.x is',
    epilog='python -m tf2verify recorder > tf1_recorder.py',
  )
  recording = commands.add_parser(
    'recording',
    help='verify a recording, and tell what is in it',
    epilog='exit status: 0 all of it is as it was recorded, 2 it is not, or is no recording',
  )
  recording.add_argument('folder', metavar='DIR', help='written by tf1_recorder.py --out DIR')


def _positive(text: str) -> int:
  if not text.isdecimal() or int(text) < 1:
    raise argparse.ArgumentTypeError(f'{text!r} is no whole number from 1 on')
  return int(text)


def _not_negative(text: str) -> float:
  try:
    number = float(text)
  except ValueError:
    number = -1.0
  if not 0.0 <= number < float('inf'):
    raise argparse.ArgumentTypeError(f'{text!r} is no number from 0 on')
  return number


def main(argv: Sequence[str] | None = None) -> int:
  """Runs one command.

  Args:
    argv: the arguments; `sys.argv[1:]` by default.

  Returns:
    The exit status: 0 all passed, 1 some did not, 2 usage or environment.
  """
  own, script_arguments = _without_script_arguments(sys.argv[1:] if argv is None else list(argv))
  arguments = _parser().parse_args(own)
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
    return _run(arguments.targets, arguments.stages, arguments.report_dir, arguments.html)
  except Tf2VerifyError as error:
    print(f'tf2verify: {error}', file=sys.stderr)
    if isinstance(error, UserCodeError):
      print(error.traceback_text, file=sys.stderr)
    return EXIT_USAGE


def _without_tensorflow(arguments: argparse.Namespace) -> int:
  """Runs a command that imports no TensorFlow into this process."""
  from tf2verify import fleet_command, report_command

  if arguments.command == 'fleet':
    fields = {field.name for field in dataclasses.fields(fleet_command.Arguments)}
    given = {name: value for name, value in vars(arguments).items() if name in fields}
    return fleet_command.fleet(fleet_command.Arguments(**given))
  if arguments.command == 'history':
    well = report_command.history(arguments.journals)
  else:
    well = report_command.report(
      arguments.files,
      arguments.rtol,
      arguments.atol,
      arguments.html,
      arguments.junit,
      arguments.markdown,
      arguments.merge,
    )
  return EXIT_PASSED if well else EXIT_FAILED


def _recorder() -> int:
  from tf2verify.recording_command import recorder_text
  from tf2verify.report import terminal

  terminal.say(recorder_text().removesuffix('\n'))
  return EXIT_PASSED


def _recording(folder: str) -> int:
  from tf2verify.recording_command import recording_text
  from tf2verify.report import terminal

  terminal.say(recording_text(folder))
  return EXIT_PASSED


def _divide_the_cpu() -> None:
  """Gives this process the devices that the execution mode of two replicas needs."""
  from tf2verify.sides import logical_devices

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


def _run(
  targets: Sequence[str],
  stages: Sequence[str] | None,
  report_dir: str | None,
  html: str | None,
) -> int:
  # Imported here, since these need an environment that works, and doctor does not.
  from tf2verify.case import verify
  from tf2verify.discovery import find_cases
  from tf2verify.records.verdict import Status
  from tf2verify.report import terminal
  from tf2verify.report.html import page
  from tf2verify.report.report_dir import write_case, write_summary
  from tf2verify.selection import check_stage_name

  if html:
    page.require()
  for name in stages or ():
    check_stage_name(name)
  cases = [found for target in targets for found in find_cases(target)]
  verdicts = []
  for found in cases:
    progress = terminal.StageProgress()
    terminal.say(found.case.__name__)
    with found.importable():
      verdict = verify(found.case, stages, terminal.stage_sayer(progress), progress)
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
  terminal.say(f'{passed} of {len(verdicts)} cases passed')
  return EXIT_PASSED if passed == len(verdicts) else EXIT_FAILED


def _adequacy(targets: Sequence[str], limit: int, seed: int, report_dir: str | None) -> int:
  from tf2verify.adequacy import adequacy
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
  from tf2verify.conversion import convert
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
  from tf2verify.inspection import inspect
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
