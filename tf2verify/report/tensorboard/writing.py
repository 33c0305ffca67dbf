"""`--tensorboard_dir`: events of cases, a folder each."""

import importlib.util
import os
import shlex
from collections.abc import Iterable

from tf2verify.errors import EnvironmentProblem, UsageError
from tf2verify.records.verdict import CaseVerdict
from tf2verify.report.tensorboard.events import RunOfCase, folders_of, run_of_case
from tf2verify.report.tensorboard.names import folder_name, target_of

ENVIRONMENT_VARIABLE = 'TF2VERIFY_TENSORBOARD_DIR'


def default_directory() -> str:
  """Returns the folder that the environment names; '' without one."""
  return os.environ.get(ENVIRONMENT_VARIABLE, '')


def how_to_look(directory: str) -> str:
  """Returns the command that shows what was written."""
  return f'TensorBoard: tensorboard --logdir {shlex.quote(directory)}'


def require(directory: str) -> None:
  """Checks that events can be written, before models are run for them.

  Takes no TensorFlow.

  Args:
    directory: made where it is not there.

  Raises:
    EnvironmentProblem: TensorBoard is not installed.
    UsageError: the folder cannot be made or written.
  """
  if importlib.util.find_spec('tensorboard') is None:
    raise EnvironmentProblem(
      '--tensorboard_dir needs tensorboard, which this Python does not have: '
      "pip install 'tf2verify[tensorboard]'"
    )
  try:
    os.makedirs(directory, exist_ok=True)
  except OSError as error:
    raise UsageError(
      f'could not make the folder {directory}: {error.strerror}; --tensorboard_dir names a folder '
      'that can be made and written'
    ) from error
  if not os.access(directory, os.W_OK | os.X_OK):
    raise UsageError(f'{directory} cannot be written; --tensorboard_dir names a folder that can be')


def write_cases(directory: str, cases: Iterable[CaseVerdict]) -> None:
  """Writes the events of one run of some cases, as `write_runs` does."""
  write_runs(directory, ((target_of(case.module, case.case), 1, case) for case in cases))


def write_runs(directory: str, runs: Iterable[tuple[str, int, CaseVerdict]]) -> None:
  """Writes the events of cases, in place of what was written for them before.

  Args:
    directory: has a folder per case then; those of other cases stay as they are.
    runs: target (`path::Case`), number of the run, and verdict; of each target the oldest
      run first.

  Raises:
    EnvironmentProblem: TensorBoard is not installed.
    UsageError: the folder cannot be written.
  """
  require(directory)
  found: dict[str, list[RunOfCase]] = {}
  for target, number, case in runs:
    found.setdefault(target, []).append(run_of_case(case, number))
  # Only now, since it takes TensorFlow, which a report is else made without.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  from tf2verify.sides import event_files

  for target, known in found.items():
    event_files.write(os.path.join(directory, folder_name(target)), folders_of(known))
