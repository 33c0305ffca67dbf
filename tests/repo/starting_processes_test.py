"""A test without the mark `starts_processes` cannot start one beside other tests."""

import pathlib
import tempfile

import pytest
from absl.testing import absltest

from tests import console

pytestmark = pytest.mark.starts_processes

_TESTS = """
import subprocess
import sys

import pytest


@pytest.mark.starts_processes
def test_marked():
  subprocess.run([sys.executable, '-c', ''], check=True)


@pytest.mark.runs_alone
def test_marked_otherwise():
  subprocess.run([sys.executable, '-c', ''], check=True)


@pytest.mark.starts_processes
def test_what_is_started_is_no_worker():
  code = "import os; assert not [name for name in os.environ if 'XDIST' in name]"
  subprocess.run([sys.executable, '-c', code], check=True)


def test_unmarked():
  subprocess.run([sys.executable, '-c', ''], check=True)


def test_of_another_program():
  subprocess.run(['true'], check=True)
"""


class StartingProcessesTest(absltest.TestCase):
  def run_tests(self, *arguments):
    with tempfile.TemporaryDirectory() as name:
      folder = pathlib.Path(name)
      folder.joinpath('some_test.py').write_text(_TESTS)
      of_this_repository = ('-p', 'conftest', '-p', 'no:cacheprovider', '-q')
      run = console.run('-m', 'pytest', *of_this_repository, *arguments, folder=folder)
    return run.returncode, run.stdout

  def test_refused_beside_others(self):
    status, said = self.run_tests('--numprocesses', '1')
    self.assertEqual(status, 1, said)
    self.assertIn('1 failed, 4 passed', said)
    self.assertIn('test_unmarked starts a process: give it the mark starts_processes', said)

  def test_allowed_alone(self):
    status, said = self.run_tests()
    self.assertEqual(status, 0, said)
    self.assertIn('5 passed', said)


if __name__ == '__main__':
  absltest.main()
