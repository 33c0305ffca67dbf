"""Records the models of this folder under TensorFlow 1.x.

    python -m examples.recorded_models.record --python .venv-tf1/bin/python --out DIR [NAME ...]

writes a recording of each model that is named into DIR; without a name, of all of them but
Inception-ResNet-v2.
"""

import argparse
import pathlib
import sys

from examples.recorded_models import recording_run
from examples.recorded_models.models import FLAGSHIP, MODELS


def main() -> int:
  """Records; exits with 1 where the recorder fails."""
  known = {model.name: model for model in (*MODELS, FLAGSHIP)}
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--python', required=True, help='the Python that has TensorFlow 1.x')
  parser.add_argument('--out', required=True, type=pathlib.Path)
  parser.add_argument('names', nargs='*', metavar='NAME', help=', '.join(known))
  arguments = parser.parse_args()
  names = arguments.names or [model.name for model in MODELS]
  for name in names:
    if name not in known:
      parser.error(f'{name!r} is no model; there are {", ".join(known)}')
  try:
    recording_run.record_all([known[name] for name in names], arguments.python, arguments.out)
  except recording_run.RecordingFailed as error:
    print(error, file=sys.stderr)
    return 1
  return 0


if __name__ == '__main__':
  sys.exit(main())
