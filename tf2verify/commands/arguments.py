"""What the command line takes."""

import argparse
import difflib
from collections.abc import Sequence
from typing import Any, NoReturn

from tf2verify.commands import repeating_scripts
from tf2verify.environment.version import VERSION


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


class _Add(argparse.Action):
  """Takes an option that is given twice for one list: `--stages a --stages b`."""

  def __call__(
    self,
    parser: argparse.ArgumentParser,
    namespace: argparse.Namespace,
    values: Any,
    option_string: str | None = None,
  ) -> None:
    given = getattr(namespace, self.dest)
    # The default is replaced, not added to.
    before = () if given is self.default else given
    setattr(namespace, self.dest, [*before, *values])


def parser(prog: str = 'python -m tf2verify') -> argparse.ArgumentParser:
  """Returns what reads the command line.

  Args:
    prog: what the user has typed, for messages.
  """
  whole = argparse.ArgumentParser(
    prog=prog,
    description='Verifies that a TF2 port of a TensorFlow 1 model is still the same model.',
  )
  whole.add_argument('--version', action='version', version=f'tf2verify {VERSION}')
  commands = whole.add_subparsers(
    dest='command', required=True, metavar='COMMAND', parser_class=_Command
  )
  run = commands.add_parser(
    'run',
    help='run the cases of files, folders or modules up the ladder',
    epilog='exit status: 0 all passed, 1 some did not, 2 usage or environment, 124 a case could '
    'not be interrupted at its time limit, 130 after Ctrl-C',
  )
  run.add_argument(
    'targets',
    nargs='+',
    metavar='PATH[::Case]',
    help='a file, a folder (its test_*.py, *_test.py and *_case.py) or a module',
  )
  run.add_argument(
    '--stages',
    nargs='+',
    action=_Add,
    metavar='STAGE',
    help='only these stages, and those that they need',
  )
  run.add_argument(
    '--report_dir', metavar='DIR', help='write one JSON file per case and summary.md there'
  )
  run.add_argument('--html', metavar='FILE', help='write an HTML report there')
  run.add_argument(
    '--timeout',
    type=_not_negative,
    default=3600.0,
    metavar='S',
    help='seconds that a case may take (3600); 0 for no limit',
  )
  run.add_argument(
    '--deprecations',
    action='store_true',
    help="show TensorFlow's deprecation warnings, which are mostly about the TF1 code",
  )
  _add_tensorboard_dir(run)
  _add_fleet(commands)
  _add_report(commands)
  adequacy = commands.add_parser(
    'adequacy',
    help='plant faults in the port of a case, and count those that the case catches',
    epilog='exit status: 0 the faults were run, 2 the case does not pass, usage or environment',
  )
  adequacy.add_argument(
    'targets', nargs='+', metavar='PATH[::Case]', help='as for run; usually a single case'
  )
  adequacy.add_argument(
    '--limit', type=_positive, default=50, metavar='N', help='how many faults to run (50)'
  )
  adequacy.add_argument(
    '--seed', type=int, default=0, metavar='S', help='the seed that selects the faults (0)'
  )
  adequacy.add_argument('--report_dir', metavar='DIR', help='write one JSON file per case there')
  _add_repeat(commands)
  _add_checkpoint_commands(commands)
  _add_recording_commands(commands)
  commands.add_parser('doctor', help='show versions, what was patched, and a fix per problem')
  return whole


def _add_fleet(commands: Any) -> None:
  fleet = commands.add_parser(
    'fleet',
    help='run many cases, each in its own process, and keep the verdicts in a journal',
    description='TEST_TOTAL_SHARDS and TEST_SHARD_INDEX select a share of the cases, for one of '
    'several machines.',
    epilog='exit status: 0 all passed, 1 some did not, 2 usage or environment, 130 after Ctrl-C',
  )
  fleet.add_argument('targets', nargs='+', metavar='PATH[::Case]', help='as for run')
  fleet.add_argument(
    '--journal',
    required=True,
    metavar='RUN.sqlite',
    help='gets each verdict as soon as its case ends',
  )
  fleet.add_argument(
    '--jobs', type=_positive, metavar='N', help='cases at once (the number of processors)'
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
    help='GiB that a case may take (an even share of nine tenths of the memory)',
  )
  fleet.add_argument(
    '--engine',
    choices=('local', 'ray'),
    default='local',
    help='this machine (local), or a Ray cluster',
  )
  fleet.add_argument(
    '--ray_address',
    metavar='HOST:PORT',
    help="the cluster's head (RAY_ADDRESS, else this machine's cluster, else one for this run)",
  )
  fleet.add_argument(
    '--stages',
    nargs='+',
    action=_Add,
    default=(),
    metavar='STAGE',
    help='only these stages, and those that they need',
  )
  fleet.add_argument(
    '--resume', action='store_true', help='run only what has no verdict yet, or has changed since'
  )
  fleet.add_argument(
    '--retry', action='store_true', help='like --resume, and also rerun cases that ended with ERROR'
  )
  fleet.add_argument(
    '--report_dir', metavar='DIR', help='write one JSON file per case and summary.md there'
  )
  _add_pages(fleet)


def _add_pages(command: argparse.ArgumentParser) -> None:
  command.add_argument('--html', metavar='FILE', help='write an HTML report there')
  command.add_argument('--junit', metavar='FILE.xml', help='write JUnit XML there')
  command.add_argument('--markdown', metavar='FILE.md', help='write the summary there')
  _add_tensorboard_dir(command)


def _add_tensorboard_dir(command: argparse.ArgumentParser) -> None:
  command.add_argument('--tensorboard_dir', metavar='DIR', help='write TensorBoard events there')


def _add_report(commands: Any) -> None:
  report = commands.add_parser(
    'report',
    help='show stored reports and journals, judged by different tolerances if given',
    epilog='exit status: 0 all passed, 1 some did not, 2 a file that is not a report',
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
  _add_pages(report)
  report.add_argument(
    '--merge', metavar='OUT.sqlite', help='write the journals of several shards there as one'
  )
  history = commands.add_parser(
    'history',
    help='show how the verdicts in journals changed across runs and versions',
    epilog='exit status: 0 no case has got worse since the previous run, 1 some have, 2 usage',
  )
  history.add_argument('journals', nargs='+', metavar='RUN.sqlite', help='written by fleet')


def _add_repeat(commands: Any) -> None:
  repeat = commands.add_parser(
    'repeat',
    help='run a training script several times: are its metrics repeatable, and at what cost',
    description='A metric is what the script prints to standard output as name=value; the last '
    'value of each name counts. Arguments for the script follow --.',
    epilog='exit status: 0 every metric repeats under the last setting, 1 some do not, 2 usage, or '
    'the script failed',
  )
  repeat.add_argument('script', metavar='SCRIPT', help='the path of a Python script')
  repeat.add_argument(
    '--runs', type=_positive, default=10, metavar='N', help='runs under each setting (10)'
  )
  repeat.add_argument('--seed', type=int, default=0, metavar='S', help='the value of all seeds (0)')
  repeat.add_argument(
    '--settings',
    nargs='+',
    action=_Add,
    default=repeating_scripts.DEFAULT_SETTINGS,
    metavar='NAME',
    help=f'out of {", ".join(setting.name for setting in repeating_scripts.SETTINGS)} (all but the '
    'third)',
  )
  repeat.add_argument(
    '--metrics',
    nargs='+',
    action=_Add,
    default=(),
    metavar='NAME',
    help='only these metrics, of those that it prints',
  )


def _add_checkpoint_commands(commands: Any) -> None:
  convert = commands.add_parser(
    'convert',
    help='convert a TF1 checkpoint for the port, if everything about it can be verified',
    epilog='exit status: 0 written, 1 refused, nothing written, 2 usage or environment',
  )
  convert.add_argument('target', metavar='PATH::Case', help='as for run; a single case')
  convert.add_argument(
    '--tf1_checkpoint', required=True, metavar='PREFIX', help='as passed to Saver.restore'
  )
  convert.add_argument(
    '--out', required=True, metavar='PREFIX', help='where to write; nothing is overwritten'
  )
  inspect = commands.add_parser(
    'inspect',
    help='list the keys of a checkpoint, next to the variables of a case if one is given',
    epilog='exit status: 0 listed, 2 a checkpoint that cannot be read, usage or environment',
  )
  inspect.add_argument('prefix', metavar='PREFIX', help='as passed to Saver.restore')
  inspect.add_argument('--case', metavar='PATH::Case', help='as for run; a single case')


def _add_recording_commands(commands: Any) -> None:
  commands.add_parser(
    'recorder',
    help='print the file that records a reference under TensorFlow 1.x',
    epilog='python -m tf2verify recorder > tf1_recorder.py',
  )
  recording = commands.add_parser(
    'recording',
    help='verify a recording, and list what is in it',
    epilog='exit status: 0 all of it is as it was recorded, 2 it is not, or is not a recording',
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
