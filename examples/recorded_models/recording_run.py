"""Models to be recorded under another Python, which has TensorFlow 1.x."""

import concurrent.futures
import dataclasses
import functools
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_REPOSITORY = pathlib.Path(__file__).parents[2]
# TensorFlow itself uses several cores.
_AT_ONCE = 2


@dataclasses.dataclass(frozen=True)
class Model:
  """A model to record.

  Attributes:
    name: of the recording.
    folder: where it is recorded, relative to the root of the repository.
    module: where its functions are, importable from there.
    builder: the name of its function of inputs and training mode.
    inputs: a nest of arrays: an array, a tuple or a dictionary.
    labels: in the same forms; None for none.
    functions: further functions of the module, by the recorder's option: 'loss',
      'optimizer', 'train_op'.
    options: further options of the recorder, with their values.
  """

  name: str
  folder: str
  module: str
  builder: str
  inputs: Any
  labels: Any = None
  functions: Mapping[str, str] = dataclasses.field(default_factory=dict)
  options: Mapping[str, str] = dataclasses.field(default_factory=dict)


class RecordingFailed(Exception):
  """The recorder ended with an error."""


def save(path: pathlib.Path, arrays: Any) -> str:
  """Writes arrays as the recorder reads them, and returns the path."""
  if isinstance(arrays, Mapping):
    np.savez(path, **arrays)
  else:
    np.savez(path, *(arrays if isinstance(arrays, tuple) else (arrays,)))
  return str(path)


@functools.cache
def recorder_file() -> bytes:
  """Returns the recorder, printed by a process of its own.

  In this one TensorFlow 2 would be imported, which leaves TF2_BEHAVIOR in the environment:
  TensorFlow 1.x then makes other variables than the model has in production.
  """
  words = [sys.executable, '-m', 'tf2verify', 'recorder']
  done = subprocess.run(words, cwd=_REPOSITORY, stdout=subprocess.PIPE, check=True)
  return done.stdout


def command(model: Model, python: str, out: pathlib.Path, folder: pathlib.Path) -> list[str]:
  """Returns the command that records a model; writes what it needs into `folder`."""
  options = {
    'builder': f'{model.module}:{model.builder}',
    'inputs': save(folder / f'{model.name}-inputs.npz', model.inputs),
    'out': str(out / model.name),
    **{option: f'{model.module}:{name}' for option, name in model.functions.items()},
    **model.options,
  }
  if model.labels is not None:
    options['labels'] = save(folder / f'{model.name}-labels.npz', model.labels)
  words = [word for name, value in options.items() for word in (f'--{name}', value)]
  recorder = folder / 'tf1_recorder.py'
  recorder.write_bytes(recorder_file())
  return [*_found(shlex.split(python)), str(recorder), '--overwrite', *words]


def _found(python: list[str]) -> list[str]:
  """Returns a command whose program is found from another working folder as well."""
  path = shutil.which(python[0])
  return [os.path.abspath(path) if path else python[0], *python[1:]]


def record(model: Model, python: str, out: pathlib.Path) -> str:
  """Records one model and returns what the recorder said last.

  Raises:
    RecordingFailed: the recorder failed; with its output.
  """
  start = time.perf_counter()
  with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run(
      command(model, python, out.resolve(), pathlib.Path(folder)),
      cwd=_REPOSITORY / model.folder,
      env={**os.environ, 'PYTHONPATH': '', 'TF_CPP_MIN_LOG_LEVEL': '3'},
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      check=False,
    )
  if done.returncode != 0:
    raise RecordingFailed(f'{model.name} was not recorded:\n{done.stdout}')
  size = sum(path.stat().st_size for path in (out / model.name).iterdir())
  seconds = time.perf_counter() - start
  return f'{model.name:<32} {size / 1024:8.0f} KiB {seconds:8.1f} s'


def record_all(models: Sequence[Model], python: str, out: pathlib.Path) -> None:
  """Records models, two at a time, and prints a line for each."""
  out.mkdir(parents=True, exist_ok=True)
  with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
    for line in pool.map(lambda model: record(model, python, out), models):
      print(line, flush=True)
