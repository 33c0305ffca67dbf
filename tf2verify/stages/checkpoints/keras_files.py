"""The files of Keras itself: `.weights.h5` and `.keras`, written and read again."""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.errors import UserCodeError
from tf2verify.numerics.restored_values import same
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.wording import listed
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.files import model_files
from tf2verify.sides.tf2.layers.port import Port, array_of
from tf2verify.stages.checkpoints.error_line import telling_line
from tf2verify.stages.checkpoints.loading import Loaded
from tf2verify.stages.checkpoints.restoring import (
  called_port,
  compare_restored,
  with_sentinels,
)
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest
from tf2verify.tensorflow_internals import keras3

_WEIGHTS = '.weights.h5 file'
_MODEL = '.keras file'
_UNREAD = (
  'the file of Keras does not bring it back: keep the layer that owns the variable in an '
  'attribute of the model, or in a list or dictionary that is one, and make it in __init__ or build'
)


def check_keras_files(
  case: CaseUnderTest,
  loaded: Loaded,
  values: Mapping[str, np.ndarray],
  folder: str,
  comparison: Comparison,
  with_outputs: bool,
) -> frozenset[str]:
  """Writes a port of Keras 3 to its own files, reads them and compares values and outputs.

  A layer that is no model has no `.keras` file; its weights are saved by a model that holds it.

  Args:
    case: the case.
    loaded: the port that is saved.
    values: of its variables, by name, in the shapes of tf1.
    folder: where to.
    comparison: takes the findings.
    with_outputs: whether the outputs tell anything: the model draws no random numbers.

  Returns:
    The names of the variables that the `.weights.h5` file restores.
  """
  layer = loaded.port.layer
  if not keras3.is_layer(layer):
    return frozenset()
  restored: frozenset[str] = frozenset()
  path = os.path.join(folder, 'port.weights.h5')
  try:
    model_files.save_weights(layer, path)
  except UserCodeError as error:
    comparison.blind_spots.append(f'no {_WEIGHTS} was compared: {telling_line(error)}')
  else:
    now = tf2_checkpoint.values_of(check_weights(case, values, path, comparison))
    restored = frozenset(name for name, value in values.items() if same(now[name], value))
  if not keras3.is_model(layer):
    return restored
  path = os.path.join(folder, 'port.keras')
  try:
    model_files.save_model(layer, path)
    model = model_files.load_model(layer, path)
  except UserCodeError as error:
    comparison.blind_spots.append(f'no {_MODEL} was compared: {telling_line(error)}')
    return restored
  unlike = check_model(case, loaded, values, model, comparison, with_outputs)
  if unlike:
    comparison.blind_spots.append(f'no {_MODEL} was compared: {unlike}')
  return restored


def check_weights(
  case: CaseUnderTest, values: Mapping[str, np.ndarray], path: str, comparison: Comparison
) -> Port:
  """Reads a `.weights.h5` file into a fresh layer, which it returns, and compares the values."""
  fresh = called_port(case)
  with_sentinels(fresh, values)
  model_files.load_weights(fresh.layer, path)
  now = tf2_checkpoint.values_of(fresh)
  for name, value in values.items():
    _compare(comparison, _WEIGHTS, name, value, now[name])
  return fresh


def check_model(
  case: CaseUnderTest,
  loaded: Loaded,
  values: Mapping[str, np.ndarray],
  model: Any,
  comparison: Comparison,
  with_outputs: bool,
) -> str:
  """Compares a model that was read with the one that was saved.

  Returns:
    Why nothing was compared; '' where it was.
  """
  own = model_files.inner_paths(loaded.port.layer)
  found = model_files.inner_paths(model)
  others = [path for path in own if path not in found]
  if others or len({len(own), len(found), len(model.weights)}) > 1:
    by_place = _by_place(loaded.port, model, values)
    if by_place is None:
      return _unread(loaded.port.layer, others) or (
        f'the model that was read has variables of other names, {listed(others or sorted(found))}'
      )
    found = by_place
  read = Port(model, loaded.port.layouts)
  read.expect(values)
  names = {model_files.name_of(variable): path for path, variable in own.items()}
  now = read.shown({name: array_of(found[path]) for name, path in names.items()})
  for name, value in values.items():
    _compare(comparison, _MODEL, name, value, now[name])
  if loaded.outputs is None or not with_outputs:
    return ''
  with randomness.seeded(randomness.CONSTANT):
    outputs = case.tf2.call(read, loaded.inputs, loaded.training, f'the call of the {_MODEL}')
  run = f"the port's {_MODEL} (as tf2) against the port (as tf1)"
  expected = dataclasses.replace(loaded.outputs, run=run)
  comparison.outputs(expected, tf2_checkpoint.observed(outputs, run), case.tolerance)
  return ''


def _unread(layer: Any, missing: Sequence[str]) -> str:
  """Returns what to do where the model that was read has not got all weights; '' where it has."""
  if not missing:
    return ''
  needed = model_files.needed_to_build(layer)
  return (
    f'load_model did not restore {len(missing)} weights, and Keras only warns: '
    f'{listed(missing)}{f": {needed}" if needed else ""}'
  )


def _by_place(port: Port, model: Any, values: Mapping[str, np.ndarray]) -> dict[str, Any] | None:
  """Returns the weights of a model that was read by the inner paths of those that were saved.

  Where their names differ, they are taken in their order, if all have the saved values then: what
  differs might be a weight in another place as well as one that was not read.
  """
  found = model_files.in_order(port.layer, model)
  if found is None:
    return None
  own = model_files.inner_paths(port.layer)
  names = {model_files.name_of(variable): path for path, variable in own.items()}
  read = Port(model, port.layouts)
  read.expect(values)
  now = read.shown({name: array_of(found[path]) for name, path in names.items()})
  return found if all(same(now[name], value) for name, value in values.items()) else None


def _compare(
  comparison: Comparison, file: str, name: str, expected: np.ndarray, actual: np.ndarray
) -> None:
  hinted = functools.partial(dataclasses.replace, hint=_UNREAD)
  key = TensorKey(f"value restored from the port's {file}", name)
  compare_restored(comparison, key, expected, actual, hinted)
