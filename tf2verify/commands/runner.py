"""`main()` of a test binary: absl's runner, with the verdicts of the run collected."""

import itertools
import os
import sys
import unittest
from collections.abc import Sequence
from typing import Any, NoReturn

from absl import app, flags
from absl.testing import absltest

from tf2verify.case import EquivalenceCase, climbed_cases
from tf2verify.environment import startup_log
from tf2verify.errors import EnvironmentProblem, UsageError
from tf2verify.fleet.sharding import Shard, hide_from_jobs
from tf2verify.report import terminal
from tf2verify.report.html import page
from tf2verify.report.report_dir import (
  ENVIRONMENT_VARIABLE,
  default_report_dir,
  write_summary,
)
from tf2verify.report.tensorboard import writing
from tf2verify.safe_text import say
from tf2verify.sides.process import logical_devices

_REPORT_DIR = flags.DEFINE_string(
  'report_dir', None, 'Folder for one JSON file per case and a Markdown summary.'
)
_TENSORBOARD_DIR = flags.DEFINE_string(
  'tensorboard_dir', None, 'Folder for events of TensorBoard, a folder per case.'
)
# Names with a prefix, since the flags of absl are shared with the code under test.
_HTML = flags.DEFINE_string('tf2verify_html', None, 'File for an HTML report.')
_TEST_FILTER = flags.DEFINE_string(
  'test_filter', None, 'Runs only the tests whose Class.method matches: as of `bazel test`.'
)
# How Bazel hands its own --test_filter to a test, and where absl looks for it.
_FILTER_VARIABLE = 'TESTBRIDGE_TEST_ONLY'
USAGE = 2
NO_TESTS = 5  # as of unittest and pytest


class CaseLoader(absltest.TestLoader):  # type: ignore[misc]
  """Loads tests; under sharding whole cases, since the stages of a case share its graphs.

  Attributes:
    seen: whether a test was there to load, in this shard or in another.
  """

  def __init__(self, shard: int, shards: int) -> None:
    super().__init__()
    self.seen = False
    self._shard = shard
    self._buckets = itertools.cycle(range(shards))

  def getTestCaseNames(self, testCaseClass: type[unittest.TestCase]) -> Sequence[str]:
    """Returns the tests of a class: all of a case or none, other classes test by test."""
    names = list(super().getTestCaseNames(testCaseClass))
    self.seen = self.seen or bool(names)
    if not issubclass(testCaseClass, EquivalenceCase):
      return [name for name in names if next(self._buckets) == self._shard]
    return names if names and next(self._buckets) == self._shard else []

  def loadTestsFromNames(self, names: Sequence[str], module: Any = None) -> unittest.TestSuite:
    """Returns the tests named on the command line; one that does not exist fails by itself."""
    self.seen = True
    return super().loadTestsFromNames(names, module)  # type: ignore[no-any-return]


def _shard() -> tuple[int, int]:
  """Takes absl's sharding over: returns index and count, and hides them from absl."""
  try:
    found = Shard.from_environment(os.environ)
  finally:
    hide_from_jobs()
  return found.index, found.total


def _report() -> None:
  """Shows every case of the run on a line, and writes the summary where one is wanted."""
  verdicts = climbed_cases()
  for verdict in verdicts:
    terminal.say(terminal.case_line(verdict))
  directory = default_report_dir()
  if verdicts and directory:
    terminal.say(f'summary: {write_summary(verdicts, directory)}')
  if verdicts and _HTML.value:
    page.write_page(_HTML.value, verdicts)
    terminal.say(f'page: {_HTML.value}')
  if verdicts and writing.default_directory():
    terminal.say(writing.how_to_look(writing.default_directory()))


def _take_flags() -> None:
  if _REPORT_DIR.value:
    os.environ[ENVIRONMENT_VARIABLE] = _REPORT_DIR.value
  if _TENSORBOARD_DIR.value:
    os.environ[writing.ENVIRONMENT_VARIABLE] = _TENSORBOARD_DIR.value
  try:
    if _TENSORBOARD_DIR.value:
      writing.require(_TENSORBOARD_DIR.value)
    if _HTML.value:
      page.require()
  except (EnvironmentProblem, UsageError) as error:
    say(f'tf2verify: {error}', sys.stderr)
    sys.exit(USAGE)
  if _TEST_FILTER.value:
    os.environ[_FILTER_VARIABLE] = _TEST_FILTER.value


def main(argv: Sequence[str] | None = None, **arguments: Any) -> NoReturn:
  """Runs the cases of the main module as absl tests, then writes the reports.

  Takes absl's flags (`--xml_output_file`, ...), `--test_filter`, `--report_dir` and
  `--tf2verify_html`. Exits with 0 when all passed, 1 when some failed, 2 when the
  sharding variables make no sense, 5 when there was nothing to run.

  Args:
    argv: the command line; `sys.argv` by default.
    **arguments: for `absltest.main`.
  """
  try:
    shard, shards = _shard()
  except UsageError as error:
    say(f'tf2verify: {error}', sys.stderr)
    sys.exit(USAGE)
  with startup_log.held_back():  # that there is no CUDA is logged as an error
    logical_devices.ask_for_two_cpus()  # this program owns its process
  for holder in (_REPORT_DIR, _HTML, _TENSORBOARD_DIR, _TEST_FILTER):  # --help lists these
    flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[holder.name])
  loader = CaseLoader(shard, shards)
  app.call_after_init(_take_flags)
  if argv is not None:
    arguments['argv'] = list(argv)
  try:
    absltest.main(testLoader=loader, **arguments)
  except SystemExit as ended:
    _report()
    sys.exit(_exit_status(ended.code, loader.seen, shards))
  sys.exit(0)


def _exit_status(code: Any, seen: bool, shards: int) -> Any:
  """Returns absl's status, but for a run without tests, which absl judges by Python's version."""
  filtered_by_bazel = os.environ.get(_FILTER_VARIABLE) and not _TEST_FILTER.value
  if code in (0, NO_TESTS) and not seen and not filtered_by_bazel:
    where = f' whose name contains {_TEST_FILTER.value!r}' if _TEST_FILTER.value else ''
    terminal.say(f'no test was run: the main module has none{where}')
    return NO_TESTS
  # A shard beyond the number of cases is well.
  return 0 if code == NO_TESTS and shards > 1 else code
