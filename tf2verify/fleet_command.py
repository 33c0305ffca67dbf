"""`python -m tf2verify fleet`: many cases, each in a process of its own."""

import os
import sys
import time
from collections.abc import Sequence

from tf2verify.errors import UsageError
from tf2verify.fleet.fleet import Options, passed, run_fleet, verdicts
from tf2verify.fleet.journal import Journal, Result
from tf2verify.fleet.local_engine import Limits, LocalEngine
from tf2verify.records.verdict import Status
from tf2verify.report import terminal
from tf2verify.report.report_dir import write_case, write_summary

# What of the machine's memory all jobs may take together, where nothing is said.
_SHARE_OF_MEMORY = 0.9
_CGROUP_LIMITS = ('/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes')


def memory_of_machine() -> int:
  """Returns the bytes of memory that this machine, or the container, has."""
  found = [os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')]
  for path in _CGROUP_LIMITS:
    try:
      with open(path, encoding='ascii') as file:
        text = file.read().strip()
    except OSError:
      continue
    if text.isdecimal():
      found.append(int(text))
  return min(found)


class Progress:
  """Shows each verdict, and on a terminal what is under way."""

  def __init__(self) -> None:
    self._terminal = sys.stderr.isatty()
    self._start = time.monotonic()
    self._to_run = self._done = 0
    self._under_way: list[str] = []

  def planned(self, to_run: int, kept: int) -> None:
    """Says how much there is to do."""
    self._to_run, self._start = to_run, time.monotonic()
    if kept:
      terminal.say(f'{kept} cases are unchanged since the journal has their verdicts')
    terminal.say(f'{to_run} cases to run')

  def started(self, target: str) -> None:
    """Notes a case that begins."""
    self._under_way.append(target)
    self._show()

  def ended(self, result: Result) -> None:
    """Shows a case that has ended."""
    if result.target in self._under_way:
      self._under_way.remove(result.target)
      self._done += 1
    self.clear()
    verdict = result.verdict
    if verdict.first_failure is not None and verdict.status is not Status.PASSED:
      terminal.say('\n' + terminal.failure_text(verdict, verdict.first_failure) + '\n')
    terminal.say(terminal.case_line(verdict))
    self._show()

  def clear(self) -> None:
    """Takes the line of progress away."""
    if self._terminal:
      print('\r\033[K', end='', file=sys.stderr, flush=True)

  def text(self) -> str:
    """How far it is: `17 of 200, 1.4 cases/s, 2 min left; running model_case.py::A`."""
    seconds = time.monotonic() - self._start
    rate = self._done / seconds if self._done else 0.0
    parts = [f'{self._done} of {self._to_run}']
    if rate:
      parts += [_rate_text(rate), f'{_duration((self._to_run - self._done) / rate)} left']
    names = ', '.join(os.path.basename(target) for target in self._under_way)
    return ', '.join(parts) + (f'; running {names}' if names else '')

  def _show(self) -> None:
    if self._terminal:
      print(f'\r\033[K  … {self.text()}', end='', file=sys.stderr, flush=True)


def _rate_text(rate: float) -> str:
  return f'{rate:.1f} cases/s' if rate >= 1 else f'{1 / rate:.0f} s a case'


def _duration(seconds: float) -> str:
  if seconds < 90:
    return f'{seconds:.0f} s'
  return f'{seconds / 60:.0f} min' if seconds < 5400 else f'{seconds / 3600:.1f} h'


def fleet(
  targets: Sequence[str],
  journal: str,
  jobs: int | None,
  timeout: float | None,
  memory: float | None,
  stages: Sequence[str] | None,
  resume: bool,
  retry: bool,
  report_dir: str | None,
) -> bool:
  """Runs a fleet and says what came of it.

  Args:
    targets: as of `run`.
    journal: path of the SQLite file.
    jobs: how many cases at once; as many as there are processors by default.
    timeout: seconds that a case may take.
    memory: GiB that a case may take; by default an even share of nine tenths of all.
    stages: only these, and those that they need.
    resume: go on with the last run of the journal.
    retry: run cases again that ended with ERROR.
    report_dir: folder for JSON files and the summary.

  Returns:
    Whether all cases passed.

  Raises:
    UsageError: targets or journal cannot be used.
  """
  workers = jobs or len(os.sched_getaffinity(0))
  share = memory_of_machine() * _SHARE_OF_MEMORY / workers
  limits = Limits(timeout, int(share if memory is None else memory * 2**30))
  if os.path.exists(journal) and not resume and not retry:
    with Journal(journal) as opened:
      unfinished = [run for run in opened.runs() if not run.ended][-1:]
    if unfinished:
      terminal.say(f'{journal} has a run that was cut off: --resume would go on with it')
  progress = Progress()
  options = Options(tuple(targets), tuple(stages or ()), resume or retry, retry)
  with Journal(journal) as opened, LocalEngine(workers, limits) as engine:
    try:
      results = run_fleet(options, opened, engine, progress)
    finally:
      progress.clear()
  if not results:
    raise UsageError(
      f'{", ".join(targets)}: no complete EquivalenceCase: a case overrides build_tf1_graph, '
      'make_tf2_layer and make_inputs'
    )
  if report_dir:
    for verdict in verdicts(results):
      write_case(verdict, report_dir)
    terminal.say(f'summary: {write_summary(verdicts(results), report_dir)}')
  _say_outcome(results)
  return passed(results) == len(results)


def _say_outcome(results: Sequence[Result]) -> None:
  others = [result for result in results if result.verdict.status is not Status.PASSED]
  for result in others:
    terminal.say(f'{result.verdict.status.value}: {result.target}')
  terminal.say(f'{passed(results)} of {len(results)} cases passed')
