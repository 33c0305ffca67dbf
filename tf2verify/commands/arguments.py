"""What the command line takes."""

import argparse
import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tf2verify.commands import repeating_scripts
from tf2verify.commands.checkpoint_arguments import add_checkpoint_commands
from tf2verify.commands.list_option import HOW_TO_END, Add
from tf2verify.commands.prove_arguments import add_prove
from tf2verify.commands.recording_arguments import add_recording_commands
from tf2verify.environment import diagnose_option
from tf2verify.environment.version import VERSION

_STAGES_HELP = 'run only these stages, by name or number (3, 1-6), and those that they depend on'


class _Command(argparse.ArgumentParser):
  """A command, which says itself what it does not know, with its own usage."""

  # The program's parser would show the program's usage, where none of the options stand.
  def parse_known_args(  # type: ignore[override]
    self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
  ) -> tuple[argparse.Namespace, list[str]]:
    known, unknown = super().parse_known_args(args, namespace)
    if unknown:
      self._refuse(unknown)
    return known, unknown

  def _refuse(self, unknown: Sequence[str]) -> NoReturn:
    options = [option for action in self._actions for option in action.option_strings]
    guesses = [difflib.get_close_matches(word.split('=')[0], options, 1) for word in unknown]
    close = [guess[0] for guess in guesses if guess]
    guess = f' (did you mean {", ".join(close)}?)' if close else ''
    self.error(f'unrecognized arguments: {" ".join(unknown)}{guess}')

  def error(self, message: str) -> NoReturn:
    """Says of a path that is missing where it may have gone."""
    if message.endswith('PATH[::Case]') and '--stages' in self._option_string_actions:
      message += f' ({HOW_TO_END})'
    super().error(message)


def parser(
  prog: str = 'python -m tf2verify', run_defaults: Mapping[str, Any] | None = None
) -> argparse.ArgumentParser:
  """Returns what reads the command line.

  Args:
    prog: what the user has typed, for messages.
    run_defaults: of options of `run`, in place of its own; see `commands.defaults`.
  """
  whole = argparse.ArgumentParser(
    prog=prog,
    description='Verifies that a TF2 port of a TensorFlow 1 model is still the same model.',
  )
  whole.add_argument('--version', action='version', version=f'tf2verify {VERSION}')
  commands = whole.add_subparsers(
    dest='command', required=True, metavar='COMMAND', parser_class=_Command
  )
  _add_run(commands, run_defaults or {})
  _add_watch(commands)
  _add_fleet(commands)
  _add_report(commands)
  add_prove(commands)
  _add_adequacy(commands)
  _add_new(commands)
  _add_repeat(commands)
  add_checkpoint_commands(commands)
  add_recording_commands(commands)
  commands.add_parser('doctor', help='show versions and patches, and how to fix each problem')
  return whole


def _add_run(commands: Any, defaults: Mapping[str, Any]) -> None:
  run = commands.add_parser(
    'run',
    help='verify the cases of files, folders or modules, stage by stage',
    description='The table [tool.tf2verify] in pyproject.toml sets defaults for these options.',
    epilog='exit status: 0 all passed, 1 some did not, 2 usage or environment, 124 a case could '
    'not be interrupted at its time limit, 130 after Ctrl-C',
  )
  run.add_argument(
    'targets',
    nargs='+',
    metavar='PATH[::Case]',
    help='a file, a folder (its test_*.py, *_test.py and *_case.py) or a module',
  )
  _add_stages(run, None)
  _add_report_dir(run)
  _add_pages(run)
  _add_timeout(run)
  run.add_argument(
    '--deprecations',
    action='store_true',
    help="show TensorFlow's deprecation warnings, which are mostly about the TF1 code",
  )
  run.add_argument(
    '--reuse_reference',
    nargs='?',
    const=True,
    default=False,
    metavar='DIR',
    help='reuse the reference graphs of an earlier run if nothing that they depend on has '
    "changed (DIR: the folder that stores them; default: the user's cache)",
  )
  run.add_argument(
    '--diagnose',
    choices=diagnose_option.CHOICES,
    default='',
    help='all (default): find all mistakes in a failed stage, by correcting each in a copy of the '
    "port's graph, in at most the time of the stages so far, and further ones in the stages that "
    'it blocks; stage: only those in the failed stage; first: only those of the first search',
  )
  _add_github_annotations(run)
  _add_detail(run)
  run.set_defaults(**defaults)


def _add_watch(commands: Any) -> None:
  watch = commands.add_parser(
    'watch',
    help='verify again whenever a file is saved; the reference graph is kept in memory',
    description='A round starts at the stage that failed last. See docs/loop.md.',
    epilog='exit status: 130 after Ctrl-C; with --rounds, 0 if the last round passed, 1 if not; 2 '
    'usage or environment',
  )
  watch.add_argument('target', metavar='PATH[::Case]', help='as for run')
  _add_stages(watch, None)
  watch.add_argument(
    '--rounds', type=_positive, metavar='N', help='stop after N rounds (default: never)'
  )


def _add_adequacy(commands: Any) -> None:
  adequacy = commands.add_parser(
    'adequacy',
    help='mutation testing: inject faults into the port, and count those that the case detects',
    epilog='exit status: 0 the faults were run, 2 the case does not pass, usage or environment',
  )
  adequacy.add_argument(
    'targets', nargs='+', metavar='PATH[::Case]', help='as for run; usually a single case'
  )
  adequacy.add_argument(
    '--limit',
    type=_positive,
    default=50,
    metavar='N',
    help='number of faults to inject (default: 50)',
  )
  adequacy.add_argument(
    '--seed', type=int, default=0, metavar='S', help='the seed that selects the faults (default: 0)'
  )
  adequacy.add_argument(
    '--report_dir', metavar='DIR', help='write one JSON file per case to this folder'
  )


def _add_fleet(commands: Any) -> None:
  fleet = commands.add_parser(
    'fleet',
    help='run many cases, each in its own process, and write the verdicts to a journal',
    description='To split the cases over several machines, set TEST_TOTAL_SHARDS and '
    'TEST_SHARD_INDEX on each.',
    epilog='exit status: 0 all passed, 1 some did not, 2 usage or environment, 130 after Ctrl-C',
  )
  fleet.add_argument('targets', nargs='+', metavar='PATH[::Case]', help='as for run')
  fleet.add_argument(
    '--journal',
    required=True,
    metavar='RUN.sqlite',
    help='SQLite file to which each verdict is written as soon as its case ends',
  )
  fleet.add_argument(
    '--jobs',
    type=_positive,
    metavar='N',
    help='number of cases that run in parallel (default: number of processors)',
  )
  _add_timeout(fleet)
  fleet.add_argument(
    '--memory',
    type=_not_negative,
    metavar='GB',
    help='GiB of memory that a case may take (default: 90 %% of the memory, divided by --jobs)',
  )
  _add_engine(fleet)
  _add_stages(fleet, ())
  fleet.add_argument(
    '--resume',
    action='store_true',
    help='continue an interrupted run: skip cases that have a verdict and have not changed since',
  )
  fleet.add_argument(
    '--retry', action='store_true', help='like --resume, and also rerun cases that ended with ERROR'
  )
  _add_report_dir(fleet)
  _add_pages(fleet)
  _add_github_annotations(fleet)


def _add_engine(fleet: argparse.ArgumentParser) -> None:
  fleet.add_argument(
    '--engine',
    choices=('local', 'ray'),
    default='local',
    help='where cases run: on this machine (local, the default) or on a Ray cluster',
  )
  fleet.add_argument(
    '--ray_address',
    metavar='HOST:PORT',
    help='address of the cluster (default: RAY_ADDRESS, else the cluster on this machine, else a '
    'new one for this run)',
  )


def _add_stages(command: argparse.ArgumentParser, default: tuple[()] | None) -> None:
  command.add_argument(
    '--stages', nargs='+', action=Add, default=default, metavar='STAGE', help=_STAGES_HELP
  )


def _add_report_dir(command: argparse.ArgumentParser) -> None:
  command.add_argument(
    '--report_dir', metavar='DIR', help='write one JSON file per case and summary.md to this folder'
  )


def _add_timeout(command: argparse.ArgumentParser) -> None:
  command.add_argument(
    '--timeout',
    type=_not_negative,
    default=3600.0,
    metavar='S',
    help='seconds that a case may take (default: 3600); 0 for no limit',
  )


def _add_github_annotations(command: argparse.ArgumentParser) -> None:
  command.add_argument(
    '--github_annotations',
    choices=('auto', 'on', 'off'),
    default='auto',
    help='print findings as annotations of GitHub Actions (auto: in GitHub Actions only)',
  )


def _add_pages(command: argparse.ArgumentParser) -> None:
  command.add_argument('--html', metavar='FILE', help='write an HTML report to FILE')
  command.add_argument('--junit', metavar='FILE.xml', help='write a JUnit XML report, for CI')
  command.add_argument('--markdown', metavar='FILE.md', help='write a summary in Markdown')
  command.add_argument('--sarif', metavar='FILE.sarif', help='write SARIF, for code scanning')
  command.add_argument(
    '--tensorboard_dir', metavar='DIR', help='write TensorBoard events to this folder'
  )


def _add_detail(command: argparse.ArgumentParser) -> None:
  one = command.add_mutually_exclusive_group()
  one.add_argument(
    '-v',
    '--verbose',
    dest='detail',
    action='store_const',
    const='VERBOSE',
    default='NORMAL',
    help='also show tables and notes of stages that passed, each blocked stage, and the log of '
    'TensorFlow',
  )
  one.add_argument(
    '-q',
    '--quiet',
    dest='detail',
    action='store_const',
    const='QUIET',
    help='only failures, each in full',
  )
  one.add_argument(
    '--brief',
    dest='detail',
    action='store_const',
    const='BRIEF',
    help='one line for each case, and one for the cause of each failure',
  )


def _add_report(commands: Any) -> None:
  report = commands.add_parser(
    'report',
    help='show stored reports and journals, optionally with different tolerances',
    epilog='exit status: 0 all passed, 1 some did not, 2 a file that is not a report',
  )
  report.add_argument(
    'files',
    nargs='+',
    metavar='FILE',
    help='a JSON report, a folder of JSON reports, or a journal (its last run)',
  )
  for name in ('rtol', 'atol'):
    report.add_argument(
      f'--{name}',
      type=float,
      metavar='X',
      help=f'use this {name} instead of the stored ones',
    )
  _add_pages(report)
  _add_detail(report)
  report.add_argument(
    '--merge', metavar='OUT.sqlite', help='merge the journals of several shards into this new file'
  )
  history = commands.add_parser(
    'history',
    help='show how the verdicts in journals changed across runs and versions',
    epilog='exit status: 0 no case is worse than in the previous run, 1 some are, 2 usage',
  )
  history.add_argument('journals', nargs='+', metavar='RUN.sqlite', help='written by fleet')


def _add_new(commands: Any) -> None:
  new = commands.add_parser(
    'new',
    help='write a first case for a TF1 function, and list the code that has to be replaced',
    description='The code is parsed, not imported. The port in the first case is the TF1 code '
    'itself under the shim, to be replaced step by step.',
    epilog='exit status: 0 written, 2 there is no such function, or the file exists already',
  )
  new.add_argument(
    'function',
    metavar='MODULE:FUNCTION',
    help='builds outputs from inputs; also FILE.py:FUNCTION, or FILE.py:Class.method',
  )
  new.add_argument('--out', metavar='FILE.py', help='write to this file (default: standard output)')


def _add_repeat(commands: Any) -> None:
  repeat = commands.add_parser(
    'repeat',
    help='run a training script several times: variance of its metrics, and cost of determinism',
    description='A metric is what the script prints to standard output as name=value; the last '
    'value of each name is used. Arguments for the script follow --.',
    epilog='exit status: 0 all metrics are repeatable under the last setting, 1 some are not, 2 '
    'usage, or the script failed',
  )
  repeat.add_argument('script', metavar='SCRIPT', help='the path of a Python script')
  repeat.add_argument(
    '--runs', type=_positive, default=10, metavar='N', help='runs per setting (default: 10)'
  )
  repeat.add_argument(
    '--seed', type=int, default=0, metavar='S', help='the value of all seeds (default: 0)'
  )
  repeat.add_argument(
    '--settings',
    nargs='+',
    action=Add,
    default=repeating_scripts.DEFAULT_SETTINGS,
    metavar='NAME',
    help=f'some of {", ".join(setting.name for setting in repeating_scripts.SETTINGS)} (default: '
    'all but the third)',
  )
  repeat.add_argument(
    '--metrics',
    nargs='+',
    action=Add,
    default=(),
    metavar='NAME',
    help='only these metrics, of all that the script prints',
  )


def _positive(text: str) -> int:
  if not text.isdecimal() or int(text) < 1:
    raise argparse.ArgumentTypeError(f'{text!r} is not a whole number of at least 1')
  return int(text)


def _not_negative(text: str) -> float:
  try:
    number = float(text)
  except ValueError:
    number = -1.0
  if not 0.0 <= number < float('inf'):
    raise argparse.ArgumentTypeError(f'{text!r} is not a number of at least 0')
  return number
