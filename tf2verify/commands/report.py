"""`python -m tf2verify report` and `history`: what was found, without running a model."""

import contextlib
import dataclasses
import itertools
import traceback
from collections.abc import Iterator, Sequence

from tf2verify.environment import collection
from tf2verify.errors import UsageError
from tf2verify.fleet.history import histories, history_lines
from tf2verify.fleet.journal import Journal
from tf2verify.fleet.journal_file import is_journal
from tf2verify.fleet.merging import merge
from tf2verify.records.status import Status
from tf2verify.records.text_line import TextLine
from tf2verify.records.verdict import CaseVerdict
from tf2verify.report import terminal
from tf2verify.report.html import page
from tf2verify.report.junit import junit_text
from tf2verify.report.rejudging import Rejudged, rejudged
from tf2verify.report.report_dir import case_files, read_case, summary_text, write_whole
from tf2verify.report.sarif import sarif_text
from tf2verify.report.tensorboard import writing
from tf2verify.report.tensorboard.names import target_of


@dataclasses.dataclass(frozen=True)
class Pages:
  """What is to be written, besides what is shown."""

  html: str | None = None  # path of the page
  junit: str | None = None  # path of JUnit's XML
  markdown: str | None = None  # path of the summary
  tensorboard_dir: str | None = None  # folder of TensorBoard's events
  sarif: str | None = None  # path of the findings in SARIF

  def require(self) -> None:
    """Checks that all of them can be made, before models are run.

    Raises:
      EnvironmentProblem: what makes one is not installed.
      UsageError: the folder cannot be made.
    """
    if self.html is not None:
      page.require()
    if self.tensorboard_dir is not None:
      writing.require(self.tensorboard_dir)

  def write(self, cases: Sequence[CaseVerdict], changes: Sequence[Sequence[str]] = ()) -> None:
    """Writes those of one run; see `write_events` for TensorBoard's.

    Args:
      cases: with deviations, for the page.
      changes: what other tolerances changed, of each case; empty where none were given.

    Raises:
      UsageError: a file cannot be written.
    """
    self.write_files(cases, changes)
    written = (
      *(('page', self.html), ('JUnit', self.junit)),
      *(('summary', self.markdown), ('SARIF', self.sarif)),
    )
    for what, path in written:
      if path is not None:
        terminal.say(f'{what}: {path}')

  def write_files(
    self, cases: Sequence[CaseVerdict], changes: Sequence[Sequence[str]] = ()
  ) -> None:
    """Does what `write` does, and says nothing."""
    if self.html is not None:
      page.write_page(self.html, cases, changes)
    texts = ((self.junit, junit_text), (self.markdown, summary_text), (self.sarif, sarif_text))
    for path, text_of in texts:
      if path is not None:
        write_whole(path, text_of(cases), 'name a file')

  def write_events(
    self, files: Sequence[str], rtol: float | None = None, atol: float | None = None
  ) -> None:
    """Writes TensorBoard's events of reports and journals, of these all runs.

    Args:
      files: JSON reports and journals.
      rtol: judge all values by this instead.
      atol: likewise.

    Raises:
      UsageError: a file cannot be read or written.
    """
    if self.tensorboard_dir is not None:
      writing.write_runs(self.tensorboard_dir, _runs(files, rtol, atol))
      terminal.say(writing.how_to_look(self.tensorboard_dir))


def report(
  files: Sequence[str],
  rtol: float | None = None,
  atol: float | None = None,
  pages: Pages | None = None,
  merged: str | None = None,
  detail: terminal.Detail = terminal.Detail.NORMAL,
) -> bool:
  """Shows stored verdicts.

  Args:
    files: JSON reports, folders of them, and journals; of a journal, its last run.
    rtol: judge all values by this instead.
    atol: likewise.
    pages: what is to be written.
    merged: path of a journal to be written, of the journals in `files`, and shown.
    detail: how much is shown of each case.

  Returns:
    Whether all cases passed, and none is without a verdict.

  Raises:
    UsageError: a file cannot be read or written.
    CaseDefinitionError: a tolerance is none.
    EnvironmentProblem: what makes a page is not installed.
  """
  pages = pages or Pages()
  pages.require()
  with _told_of_changes(files):
    return _shown(files, rtol, atol, pages, merged, detail)


@contextlib.contextmanager
def _told_of_changes(files: Sequence[str]) -> Iterator[None]:
  """Turns what contents lead to that fit the format, and make no sense, into a `UsageError`."""
  try:
    yield
  except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
    place = traceback.extract_tb(error.__traceback__)[-1]
    raise UsageError(
      f'{", ".join(files)} cannot be shown ({type(error).__name__}: {error!s:.200}, in '
      f'{place.name}): changed after it was written; if it was not, that is a mistake of tf2verify'
    ) from error


def _shown(
  files: Sequence[str],
  rtol: float | None,
  atol: float | None,
  pages: Pages,
  merged: str | None,
  detail: terminal.Detail,
) -> bool:
  if merged is not None:
    for note in merge(merged, files):
      terminal.say(note)
    files = [merged]
  files = case_files(files)
  judge = rtol is not None or atol is not None
  missing = list(itertools.chain.from_iterable(map(_without_verdict, files)))
  shown: list[CaseVerdict] = []
  whole = pages.html is not None
  found = []
  with collection.paused():  # verdicts have no cycles; to look for some takes half the reading
    for case in cases_of(files, judge or whole):
      judged = rejudged(case, rtol, atol)
      found.append(judged if whole else _slim(judged))
  for judged in found:
    _show(judged, detail)
    shown.append(judged.case)
  for target in missing:
    terminal.say(f'{target}: no verdict, the run was interrupted before it')
  for path in filter(is_journal, files):
    terminal.say_lines(TextLine(line) for line in _of_last_run_alone(path))
  passed = sum(case.status is Status.PASSED for case in shown)
  pages.write(shown, [judged.changes for judged in found])
  pages.write_events(files, rtol, atol)
  terminal.say(f'{passed} of {len(shown) + len(missing)} cases passed')
  return passed == len(shown) + len(missing)


def _slim(judged: Rejudged) -> Rejudged:
  """Leaves the deviations out: they are many, and of use only to judge again."""
  stages = tuple(dataclasses.replace(stage, deviations=()) for stage in judged.case.stages)
  return dataclasses.replace(judged, case=dataclasses.replace(judged.case, stages=stages))


def _runs(
  files: Sequence[str], rtol: float | None, atol: float | None
) -> Iterator[tuple[str, int, CaseVerdict]]:
  """Yields target, run and verdict: of a journal every run of the targets of the last one."""
  for path in files:
    if not is_journal(path):
      case = rejudged(read_case(path), rtol, atol).case
      yield target_of(case.module, case.case), 1, case
      continue
    with Journal(path) as journal:
      runs = journal.runs()
      shown = {entry.target for run in runs[-1:] for entry in journal.entries(run.number)}
      for run in runs:
        for entry in journal.entries(run.number):
          if entry.target in shown and entry.kept_from == entry.run:
            found = rejudged(journal.verdict(entry, deviations=True), rtol, atol)
            yield entry.target, run.number, found.case


def cases_of(files: Sequence[str], deviations: bool) -> Iterator[CaseVerdict]:
  """Yields the verdicts of reports and journals, of these the last run.

  Args:
    files: JSON reports and journals.
    deviations: whether with those, of journals: they take memory and time.

  Raises:
    UsageError: a file cannot be read.
  """
  for path in files:
    if not is_journal(path):
      yield read_case(path)
      continue
    with Journal(path) as journal:
      for run in journal.runs()[-1:]:
        for entry in journal.entries(run.number):
          yield journal.verdict(entry, deviations)


def _without_verdict(path: str) -> list[str]:
  """Returns what the last run of a journal was to have a verdict for, and has none."""
  if not is_journal(path):
    return []
  with Journal(path) as journal:
    runs = journal.runs()
    if not runs:
      raise UsageError(f'{path} has no run yet')
    there = {entry.target for entry in journal.entries(runs[-1].number)}
    return [target for target in runs[-1].planned if target not in there]


def _of_last_run_alone(path: str) -> list[str]:
  """Returns a line that says that a journal has more cases than its last run; else none."""
  with Journal(path) as journal:
    *before, last = [frozenset(run.planned) for run in journal.runs()]
  every = last.union(*before)
  if every == last:
    return []
  return [f'the last run of {path}: {len(last)} of the {len(every)} cases of this journal']


def _show(judged: Rejudged, detail: terminal.Detail) -> None:
  shown = terminal.CaseShown(judged.case.case, terminal.StageProgress(), detail)
  for stage in judged.case.stages:
    shown.stage(stage)
  shown.outcome(judged.case)
  for change in judged.changes:
    terminal.say(f'  {change}')


def history(paths: Sequence[str]) -> bool:
  """Shows how cases fared across runs.

  Args:
    paths: journals.

  Returns:
    Whether no case has got worse since the run before.

  Raises:
    UsageError: a journal cannot be read.
  """
  with _told_of_changes(paths), contextlib.ExitStack() as stack:
    found = histories([stack.enter_context(Journal(path)) for path in paths])
    for line in history_lines(found):
      terminal.say(line)
  return not any(case.got_worse for case in found)
