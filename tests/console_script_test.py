"""`tf2verify ...` and `python -m tf2verify ...` are the same, and quick without TensorFlow."""

import os
import pathlib
import subprocess
import sys

import pytest
from absl.testing import absltest, parameterized

import tf2verify
from tests import console

pytestmark = pytest.mark.starts_processes

_SCRIPT = (
  'import sys; sys.argv[0] = "/bin/tf2verify"; import tf2verify.__main__ as m; sys.exit(m.main())'
)


class ConsoleScriptTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)

  @parameterized.parameters('--version', '--help', ('run', '--help'), ('recorder',))
  def test_without_tensorflow(self, *words):
    for start in (['-m', 'tf2verify'], ['-c', _SCRIPT]):
      done = console.run(*start, *words, folder=self.folder, PYTHONPROFILEIMPORTTIME='1')
      self.assertEqual(done.returncode, 0, done.stderr)
      self.assertNotRegex(done.stderr, r'\|\s+tensorflow\b')
      self.assertNotIn('oneDNN', done.stderr)
      self.assertNotEmpty(done.stdout)

  def test_version_and_name(self):
    for start, name in (
      (['-m', 'tf2verify'], 'python -m tf2verify'),
      (['-c', _SCRIPT], 'tf2verify'),
    ):
      version = console.run(*start, '--version', folder=self.folder).stdout
      self.assertEqual(version, f'tf2verify {tf2verify.__version__}\n')
      said = console.run(*start, '--help', folder=self.folder).stdout
      self.assertStartsWith(said, f'usage: {name} [-h]')

  def test_the_script_runs_cases(self):
    console.write_files(self.folder, cases_test=console.CASES)
    words = ['run', 'cases_test.py::RightCase', '--stages', 'zero_randomness']
    script = pathlib.Path(sys.executable).with_name('tf2verify')
    start = [str(script)] if script.exists() else [sys.executable, '-c', _SCRIPT]
    environment = {**os.environ, 'PYTHONPATH': str(console.REPOSITORY), 'TF_CPP_MIN_LOG_LEVEL': '3'}
    done = subprocess.run(
      [*start, *words],
      cwd=self.folder,
      env=environment,
      capture_output=True,
      text=True,
      check=False,
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('1 of 1 cases passed', done.stdout)


if __name__ == '__main__':
  absltest.main()
