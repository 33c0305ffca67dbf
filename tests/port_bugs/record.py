"""Records the TF1 sides of the pairs under TensorFlow 1.x.

python -m tests.port_bugs.record --python .venv-tf1/bin/python [--out DIR] [NAME ...]
"""

import argparse
import pathlib
import sys

from examples.recorded_models import recording_run
from tests.port_bugs import recorded


def main() -> int:
  """Records; exits with 1 where the recorder fails."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--python', required=True, help='the Python that has TensorFlow 1.x')
  parser.add_argument('--out', type=pathlib.Path, default=recorded.FOLDER)
  parser.add_argument('names', nargs='*', metavar='NAME', help='of recordings; all by default')
  arguments = parser.parse_args()
  models = [
    recorded.model(pair)
    for pair in recorded.RECORDED_PAIRS
    if not arguments.names or pair.name in arguments.names
  ]
  try:
    recording_run.record_all(models, arguments.python, arguments.out)
  except recording_run.RecordingFailed as error:
    print(error, file=sys.stderr)
    return 1
  return 0


if __name__ == '__main__':
  sys.exit(main())
