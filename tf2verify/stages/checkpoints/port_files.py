"""Files of a port read into a fresh layer, with proof that every variable has been read."""

import os
import tempfile
import zipfile

import numpy as np

from tf2verify.errors import CheckpointError, UserCodeError
from tf2verify.numerics.restored_values import same
from tf2verify.records.difference import Aspect, Difference
from tf2verify.sides.tf1.checkpoint import CheckpointFile
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.files import model_files
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.stages.checkpoints.error_line import telling_line
from tf2verify.stages.checkpoints.restoring import called_port, with_sentinels
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest

_WEIGHTS, _MODEL = '.weights.h5', '.keras'
# In a `.keras` file, which is a zip archive.
_WEIGHTS_IN_MODEL = 'model.weights.h5'


def check_file(path: str) -> None:
  """Raises `CheckpointError` where a path is not a file, or checkpoint, of a port."""
  if path.endswith((_WEIGHTS, _MODEL)):
    if not os.path.isfile(path):
      raise CheckpointError(f'--to_tf1: there is no file {path}')
    if path.endswith(_MODEL) and not zipfile.is_zipfile(path):
      raise CheckpointError(
        f'--to_tf1: {path} is not a .keras file, which is a zip archive: maybe it was not copied '
        'whole, or is a SavedModel or an HDF5 file of Keras 2'
      )
    return
  try:
    found = CheckpointFile(path)
  except CheckpointError as error:
    raise CheckpointError(f'--to_tf1: {error}') from error.__cause__
  if not found.is_object_based:
    raise CheckpointError(
      f'--to_tf1: {path} is a name-based checkpoint, as a `Saver` of TF1 writes it. For the way '
      f'to the port use --tf1_checkpoint {path}'
    )


def read_port(
  case: CaseUnderTest, path: str, comparison: Comparison
) -> tuple[Port, dict[str, np.ndarray]]:
  """Reads a file into a fresh layer.

  It is read twice, and each time the variables hold other values before: one that is not
  in the file keeps them, and is a difference.

  Returns:
    The layer, and the values of its variables, by name, in the shapes of tf1.

  Raises:
    CheckpointError: the file is damaged, or of another model.
  """
  port = called_port(case)
  with_sentinels(port, {})
  _load(case, port, path)
  values = {n: np.array(value) for n, value in tf2_checkpoint.values_of(port).items()}
  with_sentinels(port, values)
  _load(case, port, path)
  again = tf2_checkpoint.values_of(port)
  for name, value in values.items():
    if same(value, again[name]):
      comparison.agreed(value)
      continue
    comparison.lost(
      Difference(
        'value of the port',
        name,
        Aspect.PRESENCE,
        f'wanted from {path}',
        'kept its value: not in the file',
        hint='the file was written by a model without this variable, or one that does not track '
        'it: write it from the port of this case',
      )
    )
  return port, values


def _load(case: CaseUnderTest, port: Port, path: str) -> None:
  try:
    if path.endswith(_WEIGHTS):
      model_files.load_weights(port.layer, path)
    elif path.endswith(_MODEL):
      with tempfile.TemporaryDirectory(prefix='tf2verify_') as folder:
        with zipfile.ZipFile(path) as archive:
          inner = archive.extract(_WEIGHTS_IN_MODEL, folder)
        model_files.load_weights(port.layer, inner)
    else:
      tf2_checkpoint.load(case.declaration, port.layer, path)
  except UserCodeError as error:
    raise CheckpointError(
      f'--to_tf1: {path} cannot be read into the port: {telling_line(error)}. Usually the file is '
      'of a model of a different size, or was not copied whole'
    ) from error
  except (zipfile.BadZipFile, KeyError) as error:
    raise CheckpointError(
      f'--to_tf1: {path} holds no {_WEIGHTS_IN_MODEL} that can be read ({error}): usually it was '
      'not copied whole'
    ) from error
