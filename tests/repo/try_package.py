"""Runs the README's case in an environment into which the wheel was installed.

    ENVIRONMENT/bin/python tests/repo/try_package.py

`make test-package` does. Nothing is imported from the repository. The case fails as the README
shows it, passes with the two changes that the README names, and is a test of pytest.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
from importlib import metadata

import pages  # beside this file, which alone is on Python's path

_FIXES = (
  ('LeakyReLU()', 'LeakyReLU(alpha=0.2)'),
  ('tf.keras.optimizers.Adam(0.01)', 'tf.keras.optimizers.Adam(0.01, epsilon=1e-8)'),
)
_CAUSE = 'the slope of the leaky relu is 0.2 in tf1 and 0.3 in the port'


def _run(folder: str, *words: str, status: int) -> str:
  """Returns the words that a command prints; raises where it ends with another status."""
  environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
  done = subprocess.run(
    words, cwd=folder, env=environment, capture_output=True, text=True, check=False
  )
  print(f'{done.returncode} {" ".join(words[-3:])}', flush=True)
  if done.returncode != status:
    raise SystemExit(f'{done.stdout}{done.stderr}\nended with {done.returncode}, not {status}')
  return ' '.join(done.stdout.split())


def _expect(found: bool, what: str) -> None:
  if not found:
    raise SystemExit(f'{what}: not so')


def main() -> None:
  """Raises where the package does not do what the README says."""
  python = sys.executable
  script = str(pathlib.Path(python).with_name('tf2verify'))
  case = next(block for block in pages.blocks('README.md') if block.file_name == 'leaky_test.py')
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, case.file_name)
    path.write_text(case.text)
    where = _run(folder, python, '-c', 'import tf2verify; print(tf2verify.__file__)', status=0)
    _expect('site-packages' in where, 'the installed package is the one that is tried')
    version = _run(folder, script, '--version', status=0)
    _expect(version == f'tf2verify {metadata.version("tf2verify")}', 'the script knows its version')
    _expect('No problems' in _run(folder, script, 'doctor', status=0), 'the doctor is content')
    said = _run(folder, script, 'run', case.file_name, status=1)
    _expect(_CAUSE in said, 'the case fails with the cause of the README')
    fixed = case.text
    for before, after in _FIXES:
      _expect(fixed.count(before) == 1, f'{before} is in the README once')
      fixed = fixed.replace(before, after)
    path.write_text(fixed)
    said = _run(folder, python, '-m', 'tf2verify', 'run', case.file_name, status=0)
    _expect('1 of 1 cases passed' in said, 'the case passes as the README says')
    said = _run(folder, python, '-m', 'pytest', case.file_name, status=0)
    _expect('11 passed' in said, 'each stage is a test')


if __name__ == '__main__':
  main()
