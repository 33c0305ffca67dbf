"""What a session of pytest that runs cases shows and writes; see `pytest_tf2verify`, which uses it.

Imported from there alone, and so the one module that needs pytest.
"""

import contextlib
import dataclasses
import inspect
import os
from collections.abc import Generator, Iterable, Sequence
from typing import Any

import pytest
from _pytest._code.code import (
  ReprEntryNative,
  ReprExceptionInfo,
  ReprFileLocation,
  ReprTraceback,
)

from tf2verify.blocked_tests import shown_by_test
from tf2verify.case import EquivalenceCase, stage_of_test, verdict_of
from tf2verify.commands.report import Pages
from tf2verify.environment.case_files import place_of
from tf2verify.errors import CaseDefinitionError, Tf2VerifyError
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.records.verdict_json import case_from_json
from tf2verify.reference.hidden_arguments import hidden_arguments
from tf2verify.report import github, headline, junit, terminal
from tf2verify.report.report_dir import ENVIRONMENT_VARIABLE, case_file_name
from tf2verify.report.shared_report_dir import merged
from tf2verify.safe_text import safe
from tf2verify.sides.kept.sources import REUSE_VARIABLE
from tf2verify.tensorflow_internals import deprecations

# As in `pytest_tf2verify`, which reads it.
_PROPERTY = 'tf2verify'
_MAY_NOT_FAIL = ('skip', 'skipif', 'xfail')


class PytestSession:
  """Hooks of pytest that are about cases.

  In a worker of pytest-xdist it sends what was found, and the process that has started the
  workers writes it.
  """

  def __init__(self, config: pytest.Config) -> None:
    """Makes sure that what is asked for can be written.

    Raises:
      pytest.UsageError: it cannot.
    """
    options = config.option
    self._config = config
    self._classes: dict[type[EquivalenceCase], None] = {}
    self._taken: dict[str, CaseVerdict] = {}
    self._pages = Pages(
      html=options.tf2verify_html,
      markdown=options.tf2verify_markdown,
      sarif=options.tf2verify_sarif,
    )
    self._written: list[str] = []
    self._is_worker = hasattr(config, 'workerinput')
    try:
      if not self._is_worker:
        self._pages.require()
    except Tf2VerifyError as error:
      raise pytest.UsageError(f'tf2verify: {error}') from error
    wanted = {ENVIRONMENT_VARIABLE: options.tf2verify_report_dir or ''}
    wanted[deprecations.VARIABLE] = '1' if options.tf2verify_deprecations else ''
    wanted[REUSE_VARIABLE] = options.tf2verify_reuse_reference or ''
    # Workers of pytest-xdist, and cases, read them from the environment.
    self._before = {name: os.environ.get(name) for name, value in wanted.items() if value}
    os.environ.update({name: value for name, value in wanted.items() if value})

  def pytest_unconfigure(self) -> None:
    """Puts the environment back."""
    for name, value in self._before.items():
      if value is None:
        del os.environ[name]
      else:
        os.environ[name] = value

  @pytest.hookimpl(wrapper=True)
  def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
    """Hides the arguments of pytest from the code of a case, which reads its own flags."""
    with contextlib.nullcontext() if _case_of(item) is None else hidden_arguments():
      return (yield)

  @pytest.hookimpl(wrapper=True)
  def pytest_runtest_makereport(
    self, item: pytest.Item, call: pytest.CallInfo[None]
  ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows the finding of a stage in place of the frames that have led to it."""
    cls = _case_of(item) if call.when == 'call' else None
    found = None if cls is None else _verdict_of_test(cls, item.name)
    if found is not None:  # a property of the test, in the JUnit file of pytest, too
      item.user_properties += [(_PROPERTY, safe(text)) for text in junit.remarks(found[1])]
    report = yield
    if cls is not None:
      self._classes[cls] = None
      is_finding = call.excinfo is not None and isinstance(call.excinfo.value, cls.failureException)
      if report.failed and found is not None and is_finding:
        report.longrepr = _finding(cls, *found)
      elif call.excinfo is not None and isinstance(call.excinfo.value, CaseDefinitionError):
        report.longrepr = _without_frames(cls, str(call.excinfo.value))
      elif report.skipped and found is not None and isinstance(report.longrepr, tuple):
        # Where it is skipped is the same line of tf2verify for all.
        report.longrepr = (found[0].module, _first_line(cls), report.longrepr[2])
    return report

  def pytest_collection_finish(self, session: pytest.Session) -> None:
    """Tells each case which of its stages are tested; workers of pytest-xdist collect the same."""
    found: dict[type[EquivalenceCase], set[str]] = {}
    for item in session.items:
      cls = getattr(item, 'cls', None)
      if not isinstance(cls, type) or not issubclass(cls, EquivalenceCase):
        continue
      # A test with such a mark may not fail, so that it shows nothing.
      if not any(item.get_closest_marker(mark) for mark in _MAY_NOT_FAIL):
        found.setdefault(cls, set()).add(stage_of_test(item.name))
    for cls, stages in found.items():
      cls._shown.to_run = frozenset(stages)

  def take(self, cases: Iterable[str]) -> None:
    """Takes over the cases of a worker, as JSON; a case may come from several workers."""
    for text in cases:
      case = case_from_json(text)
      before = self._taken.get(case_file_name(case))
      self._taken[case_file_name(case)] = case if before is None else merged(before, case)

  def pytest_sessionfinish(self, session: pytest.Session) -> None:
    """Writes what was asked for; in a worker, sends it to where it is written."""
    verdicts = [found for cls in self._classes if (found := verdict_of(cls)) is not None]
    annotations = github.annotation_lines(verdicts) if self._annotates() else []
    if self._is_worker:
      wanted = self._pages != Pages()
      sent: dict[str, Sequence[str]] = {
        'cases': [verdict.to_json() for verdict in verdicts if wanted],
        'annotations': annotations,
      }
      output: dict[str, Any] = self._config.workeroutput  # type: ignore[attr-defined]
      output['tf2verify'] = sent
      return
    self._written = annotations
    verdicts += self._taken.values()
    paths = [path for path in dataclasses.astuple(self._pages) if path is not None]
    if not verdicts:
      self._written += [f'tf2verify: {path} was not written: no case was run' for path in paths]
      return
    try:
      self._pages.write_files(verdicts)
      self._written += [f'tf2verify: wrote {path}' for path in paths]
    except Tf2VerifyError as error:
      self._written.append(f'tf2verify: {error}')
      session.exitstatus = pytest.ExitCode.USAGE_ERROR

  def pytest_terminal_summary(self, terminalreporter: Any) -> None:
    """Says what was written."""
    for line in self._written:
      terminalreporter.write_line(line)

  def _annotates(self) -> bool:
    return github.is_wanted(self._config.option.tf2verify_github_annotations)


def _case_of(item: pytest.Item) -> type[EquivalenceCase] | None:
  cls = getattr(item, 'cls', None)
  return cls if isinstance(cls, type) and issubclass(cls, EquivalenceCase) else None


def _verdict_of_test(
  cls: type[EquivalenceCase], test: str
) -> tuple[CaseVerdict, StageVerdict] | None:
  case = verdict_of(cls)
  name = stage_of_test(test)
  stage = None if case is None else next((s for s in case.stages if s.stage == name), None)
  return None if case is None or stage is None else (case, stage)


def _finding(
  cls: type[EquivalenceCase], case: CaseVerdict, tested: StageVerdict
) -> ReprExceptionInfo:
  """Returns what pytest shows of a failed stage: the report, and its cause in the summary."""
  stage = shown_by_test(case, tested)
  place = headline.place(stage)
  if place is None:
    place = headline.Place(case.module, _first_line(cls))
  crash = ReprFileLocation(place.path, place.line, headline.message(stage))
  return _shown(terminal.test_text(case, stage, tested), crash)


def _without_frames(cls: type[EquivalenceCase], said: str) -> ReprExceptionInfo:
  """Returns what pytest shows of a class that is no complete case: no line of ours is of use."""
  return _shown(said, ReprFileLocation(place_of(cls), _first_line(cls), said))


def _shown(text: str, crash: ReprFileLocation) -> ReprExceptionInfo:
  trace = ReprTraceback([ReprEntryNative([text + '\n'])], None, 'native')
  return ReprExceptionInfo(reprtraceback=trace, reprcrash=crash)


def _first_line(cls: type) -> int:
  try:
    return inspect.getsourcelines(cls)[1]
  except (OSError, TypeError):  # made by a call of type()
    return 1
