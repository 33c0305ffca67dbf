"""A folder of reports that the workers of pytest-xdist write to together.

Tests of one case may run in different workers, each of which climbs the ladder as far as
its own tests need. The files in the folder are those of all workers.
"""

import contextlib
import dataclasses
import fcntl
import glob
import json
import os
import sys
from collections.abc import Iterator, Sequence

from tf2verify.errors import UsageError
from tf2verify.records.verdict import CaseVerdict
from tf2verify.report.report_dir import case_file_name, read_case, write_case, write_summary

# Set by pytest-xdist in its workers, and inherited by what they start.
_RUN = 'PYTEST_XDIST_TESTRUNUID'
_PLUGIN = 'xdist'
_INDEX = '.xdist-'


def run_of_workers() -> str:
  """Returns what identifies the test run that this process is a worker of; '' for none."""
  return os.environ.get(_RUN, '') if _PLUGIN in sys.modules else ''


def write_reports(verdict: CaseVerdict, climbed: Sequence[CaseVerdict], directory: str) -> None:
  """Writes one case's JSON and the summary of the run.

  Args:
    verdict: of the case.
    climbed: of all cases that this process has run.
    directory: gets the files.

  Raises:
    UsageError: it cannot be written.
  """
  run = run_of_workers()
  if not run:
    write_case(verdict, directory)
    write_summary(climbed, directory)
    return
  with _written_by_run(directory, run) as names:
    name = case_file_name(verdict)
    if name in names:
      verdict = merged(read_case(os.path.join(directory, name)), verdict)
    write_case(verdict, directory)
    names.append(name)
    names[:] = sorted(set(names))
    write_summary([read_case(os.path.join(directory, name)) for name in names], directory)


def merged(before: CaseVerdict, verdict: CaseVerdict) -> CaseVerdict:
  """Returns what two workers found for one case: every stage once."""
  stages = {stage.stage: stage for stage in (*before.stages, *verdict.stages)}
  in_order = tuple(sorted(stages.values(), key=lambda stage: stage.number))
  whole = CaseVerdict(verdict.case, verdict.module, in_order, verdict.environment)
  failed = _failed(whole)
  again = next((one.run_again for one in (verdict, before) if _failed(one) == failed), '')
  return dataclasses.replace(whole, run_again=again)


def _failed(verdict: CaseVerdict) -> str:
  first = verdict.first_failure
  return '' if first is None else first.stage


@contextlib.contextmanager
def _written_by_run(directory: str, run: str) -> Iterator[list[str]]:
  """Yields the files that the workers of a run have written, and keeps what is added to them."""
  path = os.path.join(directory, f'{_INDEX}{run}')
  try:
    os.makedirs(directory, exist_ok=True)
    file = open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), 'r+', encoding='utf-8')  # noqa: SIM115
  except OSError as error:
    raise UsageError(
      f'could not write the report {path}: {error.strerror}; TF2VERIFY_REPORT_DIR names a folder '
      'that can be made and written'
    ) from error
  with file:
    fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
    for other in glob.glob(os.path.join(glob.escape(directory), f'{_INDEX}*')):
      if other != path:  # of a run before
        with contextlib.suppress(OSError):
          os.remove(other)
    names: list[str] = json.loads(file.read() or '[]')
    yield names
    file.seek(0)
    file.truncate()
    file.write(json.dumps(names))
