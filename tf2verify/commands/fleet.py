"""`python -m tf2verify fleet`: many cases, each in a process of its own."""

import dataclasses
import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType

from tf2verify.commands.report import Pages, cases_of
from tf2verify.errors import UsageError
from tf2verify.fleet.fleet import Options, Outcome, run_fleet
from tf2verify.fleet.journal import Journal
from tf2verify.fleet.local_engine import Limits, LocalEngine
from tf2verify.fleet.machine import memory_for_jobs, processors
from tf2verify.fleet.places import places_of
from tf2verify.fleet.plan import Plan
from tf2verify.fleet.ray_engine import Cluster, RayEngine
from tf2verify.fleet.results import Result
from tf2verify.fleet.server_process import MODULE
from tf2verify.fleet.sharding import Shard, hide_from_jobs
from tf2verify.fleet.shipping import roots_of
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict
from tf2verify.report import github, terminal
from tf2verify.report.report_dir import write_case, write_summary

# The endings of the files of a journal.
_OF_JOURNAL = ('', '-wal', '-shm')
# As a shell reports a program that a signal ended.
_BY_SIGNAL = 128
_SHOWN_FILES = 5


class _Interrupter:
  """Ends the fleet by `KeyboardInterrupt` when a signal asks for it.

  Attributes:
    number: the signal; not in the exception, in whose place Ray may raise its own.
  """

  def __init__(self) -> None:
    self.number: int = signal.SIGINT

  def __call__(self, number: int, _: FrameType | None) -> None:
    self.number = number
    raise KeyboardInterrupt


class Progress:
  """Shows each verdict, and on a terminal what is under way."""

  def __init__(self) -> None:
    self._terminal = sys.stderr.isatty()
    self._start = time.monotonic()
    self._to_run = self._done = self._kept = 0
    self._alike: set[str] = set()
    self._under_way: list[str] = []

  def so_far(self) -> str:
    """How many verdicts there are: `2 verdicts of this run`."""
    said = f'{_count(self._done, "verdict")} of this run'
    return said + (f' and {self._kept} of earlier runs' if self._kept else '')

  def planned(self, plan: Plan, to_run: int, kept: int) -> None:
    """Says how much there is to do."""
    self._to_run, self._kept, self._start = to_run, kept, time.monotonic()
    names = [unit.key.partition('::')[2] for unit in plan.units]
    self._alike = {name for name in names if names.count(name) > 1}
    said = f'{_count(len(plan.units), "case")} in {_count(len(plan.files), "file")}'
    if plan.empty:
      more = ', …' if len(plan.empty) > _SHOWN_FILES else ''
      said += f' ({len(plan.empty)} without: {", ".join(plan.empty[:_SHOWN_FILES])}{more})'
    said += f': {kept} unchanged since the verdict in the journal, ' if kept else ', '
    said += f'{to_run} to run'
    terminal.say(said)

  def damaged(self, how: str) -> None:
    """Says what of the journal does not count."""
    terminal.say(how)

  def not_kept(self, changes: list[str]) -> None:
    """Says why the verdicts of the run before do not count."""
    terminal.say(f'no verdict of the last run is kept: {", ".join(changes)}')

  def again(self, why: Mapping[str, str]) -> None:
    """Says which cases with a verdict run again, and why."""
    for target, reason in list(why.items())[:_SHOWN_FILES]:
      terminal.say(f'  again: {target}, since {reason}')
    if len(why) > _SHOWN_FILES:
      terminal.say(f'  again: {len(why) - _SHOWN_FILES} more')

  def started(self, target: str) -> None:
    """Notes a case that begins."""
    self._under_way.append(target)
    self._show()

  def ended(self, result: Result) -> None:
    """Shows a case that has ended."""
    if result.entry.target in self._under_way:
      self._under_way.remove(result.entry.target)
    self._done += 1
    self.clear()
    verdict = result.verdict
    terminal.say_failures(verdict)
    line = terminal.case_line(verdict)
    if verdict.case in self._alike:
      line = line.replace(verdict.case, result.entry.target, 1)
    spots = len({text for stage in verdict.stages for text in stage.blind_spots})
    spotted = f'; {spots} blind spot{"" if spots == 1 else "s"}' if spots else ''
    terminal.say(f'[{self._done}/{self._to_run}] {line}{spotted}')
    self._show()

  def clear(self) -> None:
    """Takes the line of progress away."""
    if self._terminal:
      terminal.show_over('')

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
      terminal.show_over(f'  … {self.text()}')


def _count(number: int, noun: str) -> str:
  return f'{number} {noun}{"" if number == 1 else "s"}'


def _rate_text(rate: float) -> str:
  return f'{rate:.1f} cases/s' if rate >= 1 else f'{1 / rate:.0f} s a case'


def _duration(seconds: float) -> str:
  if seconds < 90:
    return f'{seconds:.0f} s'
  return f'{seconds / 60:.0f} min' if seconds < 5400 else f'{seconds / 3600:.1f} h'


@dataclasses.dataclass(frozen=True)
class Arguments:
  """The command line.

  Attributes:
    targets: as of `run`.
    journal: path of the SQLite file.
    jobs: how many cases at once; as many as there are processors by default.
    timeout: seconds that a case may take; 0 for no limit.
    memory: GiB that a case may take; by default an even share of nine tenths of all.
    stages: only these, and those that they need.
    resume: keep the verdicts whose case is unchanged.
    retry: but run cases again that ended with ERROR.
    report_dir: folder for JSON files and the summary.
    html: path of a page.
    junit: path of JUnit's XML.
    markdown: path of the summary.
    tensorboard_dir: folder of TensorBoard's events.
    sarif: path of the findings in SARIF.
    engine: `local` or `ray`.
    ray_address: HOST:PORT of a Ray cluster.
    github_annotations: whether to print annotations of GitHub Actions: auto, on or off.
  """

  targets: Sequence[str]
  journal: str
  jobs: int | None = None
  timeout: float = 3600.0
  memory: float | None = None
  stages: Sequence[str] = ()
  resume: bool = False
  retry: bool = False
  report_dir: str | None = None
  html: str | None = None
  junit: str | None = None
  markdown: str | None = None
  tensorboard_dir: str | None = None
  sarif: str | None = None
  engine: str = 'local'
  ray_address: str | None = None
  github_annotations: str = 'auto'

  @property
  def pages(self) -> Pages:
    """What is to be written of the journal."""
    return Pages(self.html, self.junit, self.markdown, self.tensorboard_dir, self.sarif)


def fleet(arguments: Arguments, module: str = MODULE) -> int:
  """Runs a fleet and says what came of it.

  Args:
    arguments: the command line.
    module: the program of the process that is copied for every case.

  Returns:
    The exit status: 0 all passed, 1 some did not, 130 after Ctrl-C, 143 after SIGTERM.

  Raises:
    UsageError: targets or journal cannot be used.
    EnvironmentProblem: TF1-style code cannot run here, or what makes a page is not installed.
  """
  arguments.pages.require()
  options = Options(
    tuple(arguments.targets),
    tuple(arguments.stages),
    arguments.resume or arguments.retry,
    arguments.retry,
    Shard.from_environment(os.environ),
  )
  hide_from_jobs()
  progress = Progress()
  interrupter = _Interrupter()
  before = [
    (number, signal.signal(number, interrupter)) for number in (signal.SIGINT, signal.SIGTERM)
  ]
  try:
    with Journal(arguments.journal, writable=True) as journal:
      if not options.resume:
        _say_of_a_run_cut_off(journal)
      with _engine(arguments, module) as engine:
        outcome = run_fleet(options, journal, engine, progress)
      progress.clear()
      if arguments.report_dir:
        _write_reports(journal, outcome, arguments.report_dir)
      if github.is_wanted(arguments.github_annotations):
        _annotate(journal, outcome)
      failed = _failed(journal, outcome)
    _write_pages(arguments)
    _say_outcome(outcome, arguments, failed)
    return 0 if outcome.passed == len(outcome.statuses) else 1
  except KeyboardInterrupt:
    progress.clear()
    terminal.say(
      f'interrupted: {arguments.journal} has {progress.so_far()}; continue with: '
      f'{_resume_command()}'
    )
    return _BY_SIGNAL + interrupter.number
  finally:
    progress.clear()
    for number, handler in before:
      signal.signal(number, handler)


def _engine(arguments: Arguments, module: str) -> LocalEngine | RayEngine:
  seconds = arguments.timeout or None
  memory = None if arguments.memory is None else int(arguments.memory * 2**30)
  if arguments.engine == 'ray':
    without = tuple(os.path.abspath(arguments.journal) + end for end in _OF_JOURNAL)
    cluster = Cluster(arguments.ray_address, roots_of(places_of(arguments.targets)), without)
    return RayEngine(cluster, Limits(seconds, memory), arguments.jobs, module)
  if arguments.ray_address is not None:
    raise UsageError('--ray_address names a cluster for --engine ray, which was not given')
  workers = arguments.jobs or processors()
  memory_of_all = memory_for_jobs()
  share = memory_of_all // workers if memory is None else memory
  return LocalEngine(workers, Limits(seconds, share, memory_of_all), module)


def _resume_command() -> str:
  words = ['python', *sys.orig_argv[1:]]
  return shlex.join(words if '--resume' in words else [*words, '--resume'])


def _say_of_a_run_cut_off(journal: Journal) -> None:
  runs = journal.runs()
  if runs and not runs[-1].ended:
    terminal.say(f'{journal.path} has a run that was interrupted: --resume would continue it')


def _write_reports(journal: Journal, outcome: Outcome, folder: str) -> None:
  slim = []
  for entry in journal.entries(outcome.run):
    if entry.target in outcome.statuses:
      write_case(journal.verdict(entry, deviations=True), folder)
      slim.append(journal.verdict(entry))
  terminal.say(f'summary: {write_summary(slim, folder)}')


def _annotate(journal: Journal, outcome: Outcome) -> None:
  for entry in journal.entries(outcome.run):
    if outcome.statuses.get(entry.target, Status.PASSED) is not Status.PASSED:
      for line in github.annotation_lines([journal.verdict(entry)]):
        terminal.say(line)


def _write_pages(arguments: Arguments) -> None:
  """Writes what `report` would write of the journal."""
  pages, files = arguments.pages, [arguments.journal]
  pages.write(list(cases_of(files, deviations=pages.html is not None)))
  pages.write_events(files)


def _failed(journal: Journal, outcome: Outcome) -> dict[str, CaseVerdict]:
  """Returns the verdicts of the cases that did not pass, by target, also those that were kept."""
  return {
    entry.target: journal.verdict(entry)
    for entry in journal.entries(outcome.run)
    if outcome.statuses.get(entry.target, Status.PASSED) is not Status.PASSED
  }


def _say_outcome(outcome: Outcome, arguments: Arguments, failed: Mapping[str, CaseVerdict]) -> None:
  for target, status in outcome.statuses.items():
    if status is not Status.PASSED:
      terminal.say(f'{status.value}: {target}')
      terminal.say_lines(terminal.reminder_lines(failed[target]) if target in failed else [])
  if failed and outcome.kept:
    terminal.say(f'in full: python -m tf2verify report {shlex.quote(arguments.journal)} -q')
  errors = sum(status is Status.ERROR for status in outcome.statuses.values())
  if errors and outcome.kept and not arguments.retry:
    terminal.say(
      f'{_count(errors, "ERROR")}, some of them from an earlier run: --retry runs those again'
    )
  terminal.say(f'{outcome.passed} of {len(outcome.statuses)} cases passed')
