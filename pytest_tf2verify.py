"""The pytest plugin of tf2verify: cases behave under pytest as under `python -m tf2verify run`.

pytest loads it wherever tf2verify is installed. So it imports nothing of tf2verify, which would
import TensorFlow and choose Keras 2, before a test file does, or the user asks for it: in any
other project it costs nothing and changes nothing. That is why it is not in the package.
"""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import os
import re
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
  from tf2verify.commands.pytest_session import PytestSession

# The ladder, without importing it: the markers are there before TensorFlow is.
STAGES = (
  'no_new_variables',
  'variable_inventory',
  'zero_randomness',
  'seeded_constant',
  'seeded_num_random_ops',
  'gradients',
  'loss',
  'training_steps',
  'checkpoint',
  'execution_modes',
  'determinism',
)
_WHEN = ('auto', 'on', 'off')
_FILES = ('html', 'markdown', 'sarif', 'report_dir')
_IMPORTS_TF2VERIFY = re.compile(rb'^[ \t]*(?:import|from)[ \t]+tf2verify\b', re.MULTILINE)
# A file that `run` and `fleet` find in a folder, and pytest only if `python_files` says so.
_CASE_FILE = '*_case.py'
_HAS_CASE = re.compile(rb'^class \w+\([^)]*\bEquivalenceCase\b', re.MULTILINE)
_SESSION = 'tf2verify-session'
# The name of a property of a test: what it has to say besides its finding.
_PROPERTY = 'tf2verify'
_OLDEST_PYTEST = (8, 0)
# With it, `import tf2verify` leaves TensorFlow alone.
_SUPERVISES = 'TF2VERIFY_SUPERVISES'
# How like a stage a word has to be that is meant for one.
_ALIKE = 0.75
# How many files that were not collected are named.
_SHOWN = 3
_LEFT_OUT_OF_WORKER = 'tf2verify-left-out'
_IS_PREPARED = pytest.StashKey[bool]()
_ANNOTATIONS = pytest.StashKey[list[str]]()
_FILES_OF_CASES = pytest.StashKey[set[Path]]()
_LEFT_OUT = pytest.StashKey[dict[Path, None]]()


def pytest_addoption(parser: pytest.Parser) -> None:
  """Adds the options, which all begin with --tf2verify, and the setting `tf2verify`."""
  group = parser.getgroup('tf2verify', 'equivalence of TF2 ports (tf2verify)')
  group.addoption('--tf2verify-html', metavar='FILE', help='write an HTML report to FILE')
  group.addoption('--tf2verify-markdown', metavar='FILE.md', help='write a summary in Markdown')
  group.addoption('--tf2verify-sarif', metavar='FILE.sarif', help='write SARIF, for code scanning')
  group.addoption(
    '--tf2verify-report-dir', metavar='DIR', help='write one JSON file per case and summary.md'
  )
  group.addoption(
    '--tf2verify-deprecations',
    action='store_true',
    help="show TensorFlow's deprecation warnings in cases, which are mostly about the TF1 code",
  )
  group.addoption(
    '--tf2verify-reuse-reference',
    nargs='?',
    const='1',
    metavar='DIR',
    help='reuse the reference graphs of an earlier run if nothing that they depend on has '
    "changed (DIR: the folder that stores them; default: the user's cache)",
  )
  group.addoption(
    '--tf2verify-github-annotations',
    choices=_WHEN,
    default='auto',
    help='print findings as annotations of GitHub Actions (auto: in GitHub Actions only)',
  )
  parser.addini(
    'tf2verify',
    'when to prepare TensorFlow for cases: auto (before the first test file that imports '
    'tf2verify), on (before any conftest.py), off',
    default='auto',
  )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
  """Prepares the environment before any code of the user, where that is asked for."""
  when = early_config.getini('tf2verify')
  if when not in _WHEN:
    raise pytest.UsageError(
      f'tf2verify is {when!r} in the settings; it must be one of {", ".join(_WHEN)}'
    )
  if when == 'on' or _wanted_files(early_config):
    _prepare(early_config)


def pytest_configure(config: pytest.Config) -> None:
  """Declares the markers."""
  config.addinivalue_line('markers', 'tf2verify: a stage of an EquivalenceCase of tf2verify')
  for stage in STAGES:
    config.addinivalue_line('markers', f'{stage}: the stage {stage} of an EquivalenceCase')
  if _wanted_files(config):
    if pytest.version_tuple < _OLDEST_PYTEST:
      raise pytest.UsageError(
        f'the options --tf2verify-... need pytest 8, not {pytest.__version__}'
      )
    _start(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> None:
  """Notes a file of cases in a folder that is collected, and that `python_files` leaves out."""
  config = parent.config
  named = [Path(os.path.abspath(str(arg).partition('::')[0])) for arg in config.args]
  if not fnmatch.fnmatch(file_path.name, _CASE_FILE) or file_path in named:
    return
  if not any(folder in file_path.parents for folder in named):
    return
  if any(fnmatch.fnmatch(file_path.name, one) for one in config.getini('python_files')):
    return
  with contextlib.suppress(OSError):
    if _HAS_CASE.search(file_path.read_bytes()):
      config.stash.setdefault(_LEFT_OUT, {})[file_path] = None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
  """Prepares the environment before a test file that uses tf2verify is imported."""
  if parent.config.getini('tf2verify') == 'off':
    return
  try:
    source = module_path.read_bytes()
  except OSError:
    return  # pytest says so
  if not _IMPORTS_TF2VERIFY.search(source):
    return
  parent.config.stash.setdefault(_FILES_OF_CASES, set()).add(module_path)
  if parent.config.getini('tf2verify') == 'auto' and _IS_PREPARED not in parent.config.stash:
    _prepare(parent.config)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, None, None]:
  """Hides the arguments of pytest from models that a file of cases imports."""
  of_cases = collector.config.stash.get(_FILES_OF_CASES, set())
  if not isinstance(collector, pytest.Module) or collector.path not in of_cases:
    yield
    return
  from tf2verify.reference.hidden_arguments import hidden_arguments

  with hidden_arguments():
    yield


def pytest_itemcollected(item: pytest.Item) -> None:
  """Marks the tests of a case by their stages, and looks after cases from the first one on."""
  module = sys.modules.get('tf2verify.case')
  cls = getattr(item, 'cls', None)
  if module is None or not isinstance(cls, type) or not issubclass(cls, module.EquivalenceCase):
    return
  _start(item.config)
  item.add_marker('tf2verify')
  stage = module.stage_of_test(getattr(item, 'originalname', None) or item.name)
  if stage:
    item.add_marker(stage)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
  """Takes over what a worker of pytest-xdist has found; a worker that has crashed has no output."""
  output = getattr(node, 'workeroutput', {})
  left_out = node.config.stash.setdefault(_LEFT_OUT, {})
  left_out.update({Path(path): None for path in output.get(_LEFT_OUT_OF_WORKER, ())})
  sent: dict[str, Sequence[str]] = output.get('tf2verify', {})
  if not sent:
    return
  session = _session(node.config)
  if session is not None:
    session.take(sent['cases'])
  node.config.stash.setdefault(_ANNOTATIONS, []).extend(sent['annotations'])


def pytest_sessionfinish(session: pytest.Session) -> None:
  """Forgets the files of cases that a test has imported, and in a worker sends the others."""
  left_out = session.config.stash.get(_LEFT_OUT, {})
  if not left_out:
    return
  files = [getattr(module, '__file__', None) for module in list(sys.modules.values())]
  for used in {Path(file) for file in files if isinstance(file, str)} & left_out.keys():
    del left_out[used]
  if hasattr(session.config, 'workerinput'):
    session.config.workeroutput[_LEFT_OUT_OF_WORKER] = [str(path) for path in left_out]  # type: ignore[attr-defined]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
  """Prints what tests have to say, annotations, what was not collected, and what `-m` may mean."""
  for line in _not_collected(config):
    terminalreporter.write_line(line, yellow=True)
  for line in (*_remarks(terminalreporter, config), *config.stash.get(_ANNOTATIONS, [])):
    terminalreporter.write_line(line)
  # In the process that starts the workers, only they have seen the cases.
  if _session(config) is not None or _ANNOTATIONS in config.stash:
    for line in _slips(config.option.markexpr, config.getini('markers')):
      terminalreporter.write_line(line)


def _remarks(terminalreporter: Any, config: pytest.Config) -> list[str]:
  """Returns lines on what tests of cases have to say besides their findings; none with `-q`."""
  tests = [test for tests in terminalreporter.stats.values() for test in tests]
  calls = [test for test in tests if getattr(test, 'when', '') == 'call']
  said = [text for test in calls for name, text in test.user_properties if name == _PROPERTY]
  said = list(dict.fromkeys(said))
  if not said or config.option.verbose < 0:
    return []
  if config.option.verbose > 0:
    return [f'tf2verify: {text}' for text in said]
  more = f'{len(said)} accepted causes and blind spots'
  counted = more if len(said) > 1 else 'an accepted cause or blind spot'
  return [f'tf2verify: {counted} of stages that passed: -v shows what they are']


def _not_collected(config: pytest.Config) -> list[str]:
  """Returns a line on the files of cases that were not collected; none without such a file."""
  found: dict[Path, None] = config.stash.get(_LEFT_OUT, {})
  left_out = [os.path.relpath(path) for path in sorted(found)]
  if not left_out:
    return []
  patterns = ', '.join(f'"{one}"' for one in (*config.getini('python_files'), _CASE_FILE))
  shown = ', '.join(left_out[:_SHOWN])
  if len(left_out) > _SHOWN:
    shown += f' and {len(left_out) - _SHOWN} more'
  has = 'has cases and was' if len(left_out) == 1 else 'have cases and were'
  return [
    f"tf2verify: {shown} {has} not collected: set python_files = [{patterns}] in pytest's "
    'settings, or name the file on the command line'
  ]


def _slips(expression: str, markers: Sequence[str]) -> list[str]:
  """Returns a line for each word of `-m` that is no marker, and similar to that of a stage."""
  known = {re.split(r'[:(]', line, maxsplit=1)[0].strip() for line in markers}
  words = dict.fromkeys(re.findall(r'\w+', expression))
  found = {
    word: difflib.get_close_matches(word, STAGES, 1, _ALIKE) for word in words if word not in known
  }
  return [
    f'tf2verify: -m {word}: there is no such marker; did you mean {stages[0]}?'
    for word, stages in found.items()
    if stages
  ]


def _wanted_files(config: pytest.Config) -> bool:
  return any(getattr(config.known_args_namespace, f'tf2verify_{name}', None) for name in _FILES)


def _prepare(config: pytest.Config) -> None:
  """Sets the process up as `run` does; where that cannot be, the first use of tf2verify says so."""
  config.stash[_IS_PREPARED] = True
  legacy_keras, startup_log = _imported_without_tensorflow()
  from tf2verify.errors import EnvironmentProblem

  with contextlib.suppress(EnvironmentProblem), startup_log.held_back():
    legacy_keras.require()
    from tf2verify.sides.process import logical_devices

    logical_devices.ask_for_two_cpus()


def _imported_without_tensorflow() -> tuple[Any, Any]:
  """Imports what prepares TensorFlow, but not TensorFlow, whose log is to be held back."""
  before = os.environ.get(_SUPERVISES)
  os.environ[_SUPERVISES] = '1'
  try:
    from tf2verify.environment import legacy_keras, startup_log
  finally:
    if before is None:
      del os.environ[_SUPERVISES]
    else:
      os.environ[_SUPERVISES] = before
  return legacy_keras, startup_log


def _session(config: pytest.Config) -> PytestSession | None:
  found: PytestSession | None = config.pluginmanager.get_plugin(_SESSION)
  return found


def _start(config: pytest.Config) -> None:
  if _session(config) is None and pytest.version_tuple >= _OLDEST_PYTEST:
    from tf2verify.environment import legacy_keras
    from tf2verify.errors import EnvironmentProblem

    try:
      legacy_keras.require()
    except EnvironmentProblem as error:
      raise pytest.UsageError(f'tf2verify: {error}') from error
    from tf2verify.commands.pytest_session import PytestSession

    config.pluginmanager.register(PytestSession(config), _SESSION)
