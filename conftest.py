"""What holds for all of this repository's own tests.

They run with two logical CPU devices, as the command line does. And a test that starts a
Python process of its own says so, by the mark `starts_processes`: such tests do not run
beside others, since a process of TensorFlow takes a gigabyte (see `make test`).
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

_MARK = 'starts_processes'
_unmarked: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
  """Notes which test runs, where it may not start a process."""
  beside_others = 'PYTEST_XDIST_WORKER' in os.environ
  if beside_others and item.get_closest_marker(_MARK) is None:
    _unmarked.append(item.nodeid)
  try:
    return (yield)
  finally:
    _unmarked.clear()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
  if event == 'subprocess.Popen' and _unmarked and arguments[0] == sys.executable:
    raise RuntimeError(f'{_unmarked[0]} starts a process: give it the mark {_MARK}')


sys.addaudithook(_refuse)
