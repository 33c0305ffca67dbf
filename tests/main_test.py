"""Tests of `python -m tf2verify` as a process: where nobody reads what it says any more."""

import contextlib
import os
import subprocess
import sys

import pytest
from absl.testing import absltest

from tests import console
from tests.fleet import made_results
from tf2verify.fleet.journal import Journal
from tf2verify.records.status import Status

pytestmark = pytest.mark.starts_processes

_CLOSED = 141  # what a shell says of a process that SIGPIPE has ended


class ClosedOutputTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    with Journal(str(self.folder / 'run.sqlite'), writable=True) as journal:
      run = journal.begin_run([], {}, '', ['a.py::A'])
      journal.write(made_results.result(run, 'a.py::A', Status.PASSED))

  def run_command(self, *arguments, closed=('stdout',)):
    """Runs a command with pipes whose readers are gone."""
    streams = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE}
    with contextlib.ExitStack() as stack:
      for name in closed:
        reader, streams[name] = os.pipe()
        os.close(reader)
        stack.callback(os.close, streams[name])
      return subprocess.run(
        [sys.executable, '-m', 'tf2verify', *arguments],
        cwd=self.folder,
        env={**os.environ, 'PYTHONPATH': str(console.REPOSITORY)},
        text=True,
        check=False,
        **streams,
      )

  def test_it_ends_quietly(self):
    for arguments in (
      ['report', 'run.sqlite'],
      ['history', 'run.sqlite'],
      ['recorder'],
    ):
      with self.subTest(arguments):
        done = self.run_command(*arguments)
        self.assertEqual((done.returncode, done.stderr), (_CLOSED, ''))

  def test_help_is_quiet(self):
    # Its status is of the Python: from 3.11 on argparse passes over such an error.
    done = self.run_command('report', '--help')
    self.assertEqual(done.stderr, '')
    self.assertIn(done.returncode, (0, _CLOSED))

  def test_with_both_outputs_closed(self):
    self.assertEqual(
      self.run_command('report', 'run.sqlite', closed=('stdout', 'stderr')).returncode, _CLOSED
    )

  def test_one_that_is_read_has_its_own_status(self):
    done = self.run_command('report', 'run.sqlite', closed=())
    self.assertEqual((done.returncode, done.stderr), (0, ''))
    self.assertEndsWith(done.stdout, '1 of 1 cases passed\n')
    self.assertEqual(self.run_command('report', 'absent.sqlite').returncode, 2)

  def test_a_broken_pipe_of_something_else_is_not_hidden(self):
    code = (
      'from unittest import mock; from tf2verify import __main__ as program\n'
      "with mock.patch.object(program.cli, 'main', side_effect=BrokenPipeError('of a worker')):\n"
      '  program.main()'
    )
    done = console.run('-c', code, folder=self.folder)
    self.assertEqual(done.returncode, 1)
    self.assertIn('BrokenPipeError: of a worker', done.stderr)


if __name__ == '__main__':
  absltest.main()
