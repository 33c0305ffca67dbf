"""What holds for all of this repository's own tests.

They run with two logical CPU devices, as the command line does. A test that starts a Python
process of its own says so, by the mark `starts_processes`: its worker waits for that process,
which is no worker itself. One that keeps several busy, or whose outcome depends on seconds,
has the mark `runs_alone` (see `make test`).
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import tf2verify  # noqa: F401 - before TensorFlow: it chooses the Keras

# isort: split
from tf2verify.sides.process import logical_devices

logical_devices.ask_for_two_cpus()

# Failures that the tests plant are no findings for the workflow that runs them.
os.environ.pop('GITHUB_ACTIONS', None)

_MARK, _ALONE = 'starts_processes', 'runs_alone'
# What pytest-xdist tells its workers; other processes have none of it.
_OF_A_WORKER = ('PYTEST_XDIST_WORKER', 'PYTEST_XDIST_WORKER_COUNT', 'PYTEST_XDIST_TESTRUNUID')
_BESIDE_OTHERS = _OF_A_WORKER[0] in os.environ
_unmarked: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
  """Notes which test runs, where it may not start a process; what one starts is no worker."""
  if not _BESIDE_OTHERS:
    return (yield)
  inherited = {}
  if item.get_closest_marker(_MARK) or item.get_closest_marker(_ALONE):
    inherited = {name: os.environ.pop(name) for name in _OF_A_WORKER}
  else:
    _unmarked.append(item.nodeid)
  try:
    return (yield)
  finally:
    os.environ.update(inherited)
    _unmarked.clear()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
  if event == 'subprocess.Popen' and _unmarked and arguments[0] == sys.executable:
    raise RuntimeError(f'{_unmarked[0]} starts a process: give it the mark {_MARK}')


sys.addaudithook(_refuse)
