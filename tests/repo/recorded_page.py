"""Makes the recording of docs/recordings.md under TensorFlow 1.x: what its commands write.

    python -m tests.repo.recorded_page --python .venv-tf1/bin/python

Where no TensorFlow 1.x is, the test of the page takes the one that is committed.
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from tests.repo import pages
from tf2verify.commands.recorder import recorder_text

PAGE = 'docs/recordings.md'
COMMITTED = pages.REPOSITORY / 'tests' / 'recorded' / 'docs'
RECORDER = 'tf1_recorder.py'


def record(words: Sequence[str], python: str, folder: pathlib.Path) -> None:
  """Runs a command of the recorder in a folder, by a Python that has TensorFlow 1.x.

  Raises:
    subprocess.CalledProcessError: it fails.
  """
  environment = {name: text for name, text in os.environ.items() if name != 'PYTHONPATH'}
  subprocess.run(
    [os.path.abspath(python), *words[1:]],
    cwd=folder,
    env=environment,
    check=True,
    stdout=sys.stderr,
  )


def take_committed(words: Sequence[str], folder: pathlib.Path) -> None:
  """Puts the committed recording where a command of the recorder would write one."""
  out = words[words.index('--out') + 1]
  shutil.copytree(COMMITTED / out, folder / out)


def main() -> None:
  """Follows the page up to the recorder, and keeps what that writes."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--python', required=True, help='the Python that has TensorFlow 1.x')
  python = parser.parse_args().python
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / RECORDER).write_text(recorder_text(), encoding='utf-8')
    for block in pages.blocks(PAGE):
      if block.language == 'python' and block.file_name:
        (folder / block.file_name).write_text(block.text, encoding='utf-8')
      for command in block.commands if block.language == 'sh' else ():
        words = shlex.split(command)
        if words[:2] == ['python', '-c']:
          subprocess.run([sys.executable, *words[1:]], cwd=folder, check=True)
        elif words[:2] == ['python', RECORDER]:
          record(words, python, folder)
          out = words[words.index('--out') + 1]
          shutil.rmtree(COMMITTED / out, ignore_errors=True)
          shutil.copytree(folder / out, COMMITTED / out)


if __name__ == '__main__':
  main()
