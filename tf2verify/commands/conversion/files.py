"""The files of a port written, and read again, for a conversion."""

import contextlib
import dataclasses
import gc
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tf2verify.commands.conversion.reading import Reading, model_lines, verified_reading
from tf2verify.commands.conversion.target import Format, Target
from tf2verify.errors import Tf2VerifyError, UsageError, UserCodeError
from tf2verify.records.verdict_text import SIDES, Sides, differences_text
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.files import model_files
from tf2verify.stages.checkpoints.error_line import telling_line
from tf2verify.stages.checkpoints.keras_files import check_model, check_weights
from tf2verify.stages.checkpoints.loading import Loaded
from tf2verify.stages.checkpoints.optimizer_transfer import (
  NOT_READ_BY_KERAS,
  WRITTEN_AND_READ,
  OptimizerTransfer,
  check_written,
  variables_of,
)
from tf2verify.stages.checkpoints.restoring import called_port
from tf2verify.stages.checkpoints.saving import check_outputs, check_restored, draws_numbers
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest

# What may be written where a format cannot be.
_INSTEAD = {
  Format.WEIGHTS: 'the weights (--out FILE.weights.h5)',
  Format.CHECKPOINT: 'a checkpoint (--out PREFIX, without a suffix)',
}


class Refused(Tf2VerifyError):
  """Something cannot be written, or not verified; the message says why."""


@dataclasses.dataclass(frozen=True)
class Written:
  """What was written.

  Attributes:
    path: of the file, or the prefix of the checkpoint.
    reading: how a program reads it.
  """

  path: str
  reading: Reading


def refuse(comparison: Comparison, sides: Sides = SIDES) -> None:
  """Raises `Refused` where something differs, or nothing can be told.

  Args:
    comparison: what was found.
    sides: what was compared: TF1 and the port, or `WRITTEN_AND_READ`.
  """
  if comparison.differences:
    raise Refused('\n'.join(differences_text(comparison.differences, sides)))
  if comparison.inconclusive:
    raise Refused(comparison.inconclusive)


def write_and_read(
  case: CaseUnderTest,
  loaded: Loaded,
  path: str,
  target: Target,
  comparison: Comparison,
  transfer: OptimizerTransfer | None,
) -> Written:
  """Saves the port, and reads what was written into another one."""
  tf2_checkpoint.assign(loaded.port, loaded.values)
  values = tf2_checkpoint.values_of(loaded.port)
  layer = loaded.port.layer
  optimizer = None if transfer is None else transfer.optimizer_for(case, loaded.port)
  if target.format is Format.CHECKPOINT:
    written = tf2_checkpoint.save(case.declaration, layer, path, optimizer)
    if os.path.dirname(written) != os.path.dirname(path):
      raise UsageError(
        f'save_tf2_checkpoint was given {path} and has written {written}: it has to write to '
        'the given path, so that nothing is left behind if an error occurs'
      )
    check_restored(case, loaded, values, written, comparison)
    if optimizer is not None:
      fresh = called_port(case)
      other = tf2_checkpoint.made_optimizer(case.declaration, fresh.layer)
      tf2_checkpoint.load_all(fresh.layer, other, written)
      check_written(variables_of(optimizer), variables_of(other), comparison)
    return _written(case, target, written, values, optimizer, comparison)
  _check_model(layer, target)
  try:
    if target.format is Format.WEIGHTS:
      model_files.save_weights(layer, path)
      known = len(comparison.differences)
      fresh = check_weights(case, values, path, comparison)
      if len(comparison.differences) == known and loaded.outputs is not None:
        check_outputs(case, loaded, values, fresh, comparison)
      return _written(case, target, path, values, None, comparison)
    if optimizer is not None:
      model_files.compiled(layer, optimizer)
    model_files.save_model(layer, path)
    model = model_files.load_model(layer, path, optimizer is not None)
  except UserCodeError as error:
    raise Refused(
      f'--out {target.path}: {type(layer).__name__} cannot be written, or read again, as a '
      f'{target.format.suffix} file: {_way_out(case, loaded, target, path, transfer)}\n'
      f'Keras: {_said(error)}'
    ) from error
  unlike = check_model(case, loaded, values, model, comparison, not draws_numbers(loaded))
  if unlike:
    raise Refused(
      f'--out {target.path}: what was written cannot be verified: {unlike}\n'
      f'{_other_formats(case, loaded, target, path, transfer)}'
    )
  if optimizer is not None:
    _check_optimizer(optimizer, model, comparison)
  return Written(path, Reading((), model_lines(layer)))


def _check_optimizer(optimizer: Any, model: Any, comparison: Comparison) -> None:
  """Compares the optimizer of a model that was read from a `.keras` file."""
  read = getattr(model, 'optimizer', None)
  if read is None:
    raise Refused(f'the model that was read has no optimizer\n{NOT_READ_BY_KERAS}')
  check_written(variables_of(optimizer, model), variables_of(read, model), comparison)


def _written(
  case: CaseUnderTest,
  target: Target,
  path: str,
  values: Mapping[str, np.ndarray],
  optimizer: Any | None,
  comparison: Comparison,
) -> Written:
  """Returns what was written with the lines that read it; where anything differs, it is refused."""
  refuse(comparison, WRITTEN_AND_READ)
  reading, why = verified_reading(case, target.format, path, values, optimizer)
  if reading is None:
    raise Refused(
      f'--out {target.path}: what was written cannot be read back into a fresh layer that was '
      f'called once: {why}'
    )
  return Written(path, reading)


def _check_model(layer: object, target: Target) -> None:
  if model_files.library_of(layer) is None:
    raise Refused(
      f'--out {target.path}: make_tf2_layer returns a {type(layer).__name__}, which is not a '
      f'keras.Model, and Keras writes only models to {target.format.suffix} files\n'
      'put the layer into a model (keras.Sequential([layer]), or a subclass of keras.Model), or '
      'write a checkpoint: --out PREFIX without a suffix'
    )


def _said(error: UserCodeError) -> str:
  """Returns what Keras said on one line, and on another why, which it quotes at the end."""
  lines = [line.strip() for line in str(error.__cause__).splitlines()]
  quoted = [line for line in lines if line.startswith('Exception encountered:')]
  return '\n'.join([telling_line(error), *quoted[-1:]])


def _way_out(
  case: CaseUnderTest,
  loaded: Loaded,
  target: Target,
  path: str,
  transfer: OptimizerTransfer | None,
) -> str:
  needed: list[str] = []
  if target.format is Format.MODEL:
    layer = loaded.port.layer
    needed = [model_files.needed_to_make(layer), model_files.needed_to_build(layer)]
  needed = [*filter(None, needed)]
  others = _other_formats(case, loaded, target, path, transfer, 'or ' if needed else '')
  return '; '.join([*needed, others])


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Hides what TensorFlow says of a checkpoint, at the latest when what was read of it ends."""
  log = logging.getLogger('tensorflow')
  before = log.level
  log.setLevel(logging.ERROR)
  try:
    yield
    gc.collect()
  finally:
    log.setLevel(before)


def _other_formats(
  case: CaseUnderTest,
  loaded: Loaded,
  target: Target,
  path: str,
  transfer: OptimizerTransfer | None,
  beginning: str = '',
) -> str:
  """Returns in which other formats the port can be written, of which each is tried.

  Args:
    case: both sides.
    loaded: the port with the values of the checkpoint.
    target: what cannot be written.
    path: where it was to be written.
    transfer: of the optimizer's state.
    beginning: of the sentence.
  """
  works, fails = [], []
  for other, said in _INSTEAD.items():
    if other is target.format:
      continue
    with _quiet(), tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
      tried = Target(os.path.join(folder, f'tried{other.suffix}'), other)
      comparison = Comparison()
      try:
        write_and_read(case, loaded, tried.path, tried, comparison, transfer)
        refuse(comparison, WRITTEN_AND_READ)
        works.append(said)
      except Tf2VerifyError:
        fails.append(said)
  if works:
    return f'{beginning}write {" or ".join(works)}: this was tried, and works'
  return f'{" and ".join(fails)} cannot be written either'
