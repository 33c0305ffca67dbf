"""What finds Python 3.7 for TensorFlow 1.15 says what it needs where there is none."""

import os
import pathlib
import subprocess

from absl.testing import absltest

from tests import console

_SCRIPT = pathlib.Path(__file__).parents[2] / '.ci' / 'tf1_environment'


class Tf1EnvironmentTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)

  def _python(self, name, status):
    """Writes a stand-in for a Python, which ends with a status whatever it is asked."""
    path = self.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexit {status}\n')
    path.chmod(0o755)
    return str(path)

  def _find(self, **environment):
    known = {'PATH': f'{self.folder}:/usr/bin:/bin', 'PYENV_ROOT': str(self.folder / 'pyenv')}
    return subprocess.run(
      ['bash', str(_SCRIPT), '--find'],
      env={'HOME': os.devnull, **known, **environment},
      capture_output=True,
      text=True,
      check=False,
    )

  def test_none(self):
    self._python('python3.7', 1)  # as the shim of pyenv, where 3.7 is not selected
    found = self._find()
    self.assertEqual(found.returncode, 1)
    self.assertIn('TF1_PYTHON=/path/to/python3.7', found.stderr)

  def test_one_that_runs_on_the_path(self):
    python = self._python('python3.7', 0)
    self.assertEqual(self._find().stdout.strip(), python)

  def test_one_of_pyenv(self):
    self._python('python3.7', 1)
    python = self._python('pyenv/versions/3.7.17/bin/python', 0)
    self.assertEqual(self._find().stdout.strip(), python)

  def test_the_one_that_is_named(self):
    self._python('python3.7', 0)
    python = self._python('mine/python', 0)
    self.assertEqual(self._find(TF1_PYTHON=python).stdout.strip(), python)

  def test_one_that_is_named_and_does_not_fit(self):
    self._python('python3.7', 0)
    found = self._find(TF1_PYTHON=self._python('mine/python', 1))
    self.assertEqual(found.returncode, 1)
    self.assertIn('no TensorFlow 1.x, and is not Python 3.7', found.stderr)


if __name__ == '__main__':
  absltest.main()
