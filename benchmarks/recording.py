"""What recording a model costs, against a plain TensorFlow 1.x run of the same stages.

    python -m benchmarks.recording --python .venv-tf1/bin/python [--model MODULE:FUNCTION]
        [--shape 1 299 299 3] [--folder DIR] [--repeats 1]

Both run under the Python that is given (or that TF1_PYTHON names), which has
TensorFlow 1.x, one after the other. The plain run is a script that hashes, stores and
measures nothing: it builds both graphs for each mode of seeds, runs them from their own
initial values, from given ones, and with gradients, and takes three training steps (RMSProp)
of which it fetches loss, gradients and variables. Prints wall and processor time of
both, and the size of the recording; exits with 1 where the recording takes more than 1.5
times the plain run, or more than 50 MB.
"""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

from examples.recorded_models.recording_run import recorder_file

_ROOT = pathlib.Path(__file__).parents[1]
_PLAIN = _ROOT / 'benchmarks' / 'plain_tf1_run.py'
# A module that both import.
_OPTIMIZER = """
import tensorflow as tf


def optimizer():
  return tf.train.RMSPropOptimizer(0.01, decay=0.9, momentum=0.9, epsilon=1.0)
"""
_MOST_TIME = 1.5
_MOST_BYTES = 50e6


def measure(command: list[str], folder: str, path: str) -> tuple[float, float]:
  """Returns wall and processor seconds of a command.

  Args:
    command: the command.
    folder: where to run it.
    path: Python's, beside the folder.

  Raises:
    RuntimeError: it failed.
  """
  before = resource.getrusage(resource.RUSAGE_CHILDREN)
  start = time.perf_counter()
  environment = {**os.environ, 'PYTHONPATH': f'{folder}:{path}', 'TF_CPP_MIN_LOG_LEVEL': '2'}
  done = subprocess.run(
    command, cwd=folder, env=environment, capture_output=True, text=True, check=False
  )
  wall = time.perf_counter() - start
  after = resource.getrusage(resource.RUSAGE_CHILDREN)
  if done.returncode:
    raise RuntimeError(f'{command} failed:\n{done.stderr[-3000:]}')
  used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
  return wall, used


def main() -> int:
  """Measures and prints."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--python', default=os.environ.get('TF1_PYTHON'))
  parser.add_argument('--model', default='inception_resnet_v2:build')
  parser.add_argument('--folder', default=str(_ROOT / 'examples' / 'recorded_models' / 'tf1'))
  parser.add_argument('--shape', type=int, nargs='+', default=[1, 299, 299, 3])
  parser.add_argument('--repeats', type=int, default=1)
  told = parser.parse_args()
  if not told.python:
    parser.error('give --python, or set TF1_PYTHON: a Python that has TensorFlow 1.x')
  plain, recorded, size = [], [], 0
  with tempfile.TemporaryDirectory() as scratch:
    inputs = os.path.join(scratch, 'inputs.npz')
    out = os.path.join(scratch, 'recording')
    pathlib.Path(scratch, 'rmsprop.py').write_text(_OPTIMIZER, encoding='utf-8')
    recorder = pathlib.Path(scratch, 'tf1_recorder.py')
    recorder.write_bytes(recorder_file())
    np.savez(inputs, np.random.RandomState(0).standard_normal(told.shape).astype(np.float32))
    for _ in range(told.repeats):
      by_hand = [told.python, str(_PLAIN), told.model, inputs]
      plain.append(measure(by_hand, told.folder, scratch))
      options = [
        '--optimizer',
        'rmsprop:optimizer',
        '--builder',
        told.model,
        '--inputs',
        inputs,
        '--out',
        out,
        '--overwrite',
      ]
      recorded.append(measure([told.python, str(recorder), *options], told.folder, scratch))
    size = sum(path.stat().st_size for path in pathlib.Path(out).iterdir())
  ratios = [ours[0] / theirs[0] for ours, theirs in zip(recorded, plain, strict=True)]
  for (wall, used), (plain_wall, plain_used), ratio in zip(recorded, plain, ratios, strict=True):
    print(
      f'recording {wall:6.1f} s ({used:6.1f} s of processors)   plain run {plain_wall:6.1f} s '
      f'({plain_used:6.1f} s)   {ratio:.2f} times'
    )
  print(f'the recording has {size / 1e6:.1f} MB')
  return int(min(ratios) > _MOST_TIME or size > _MOST_BYTES)


if __name__ == '__main__':
  sys.exit(main())
