"""The way back: files of the port turned into a TF1 checkpoint, if all of it can be verified."""

import contextlib
import dataclasses
import os

import numpy as np

from tf2verify.case import EquivalenceCase, new_ladder
from tf2verify.commands.conversion.files import Refused, refuse
from tf2verify.commands.conversion.target import Format, Target
from tf2verify.commands.conversion.to_port import Conversion, climbed
from tf2verify.errors import UsageError
from tf2verify.records.checkpoint import KeyAccount
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.verdict_text import compared_text
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.fill import RecordedFill
from tf2verify.sides.process import state as process_state
from tf2verify.sides.recorded import references
from tf2verify.sides.side import Progress, RunSpec
from tf2verify.sides.tf1.sessions.saver import GraphSaver
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.files import model_files
from tf2verify.stages.checkpoints.conversion_account import tf1_alone
from tf2verify.stages.checkpoints.loading import Loaded, compare_outputs
from tf2verify.stages.checkpoints.port_files import check_file, read_port
from tf2verify.stages.checkpoints.restoring import compare_restored
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest


def convert_to_tf1(
  case: type[EquivalenceCase], source: str, target: Target, progress: Progress
) -> Conversion:
  """Reads a port's file, verifies it against the TF1 graph, and writes a TF1 checkpoint.

  A `Saver` of the reference's graph writes it, and restores it again: every variable has
  to be the same bit by bit, and the outputs of both sides have to agree.

  Args:
    case: a case that passes up to `zero_randomness`.
    source: a `.keras` or `.weights.h5` file, or the prefix of a TF2 checkpoint.
    target: the prefix to write.
    progress: called with one line of text before every long step.

  Raises:
    UsageError: something of the name exists, or its folder does not.
    CheckpointError: `source` cannot be read, or is of another model.
  """
  if target.format is not Format.CHECKPOINT:
    raise UsageError(
      f'--out {target.path}: --to_tf1 writes a TF1 checkpoint; give its prefix, without '
      f'{target.format.suffix}'
    )
  check_file(source)
  if os.path.abspath(source) == os.path.abspath(target.path):
    raise UsageError(f'--out {target.path} is the file that is read; use a different name')
  with contextlib.closing(new_ladder(case, progress)) as ladder:
    failure = climbed(ladder)
    if failure is not None:
      return Conversion(case.__name__, source, '', '', failure)
    prepared = ladder.prepared()
    with process_state.preserved(), references.conditions(prepared.declaration):
      return _converted(prepared, case.__name__, source, target, progress)


def _converted(
  case: CaseUnderTest, name: str, source: str, target: Target, progress: Progress
) -> Conversion:
  comparison = Comparison()
  remarks = tf1_alone(case)
  found = Conversion(name, source, '', '', remarks=tuple(remarks))
  try:
    if case.tf1.recorded() is not None:
      raise Refused(
        'the reference of this case is a recording, which has no graph whose Saver could restore '
        'the checkpoint: convert with a case that has build_tf1_graph'
      )
    loaded = _read(case, source, comparison)
    refuse(comparison)
    _compare_outputs(case, loaded, comparison)
    refuse(comparison)
    with target.folder_beside() as beside:
      progress(f'writing {target.path}')
      _write(case, loaded, os.path.join(beside, target.base), comparison)
      refuse(comparison)
      target.check_free()
      target.take(beside)
  except Refused as refused:
    return dataclasses.replace(found, refusal=tuple(str(refused).splitlines()))
  return dataclasses.replace(
    found,
    written=target.path,
    compared=compared_text(comparison.compared),
    read_by=(f'tf.compat.v1.train.Saver().restore(session, {target.path!r})',),
  )


def _read(case: CaseUnderTest, source: str, comparison: Comparison) -> Loaded:
  if source.endswith(('.keras', '.weights.h5')) and not _is_model(case):
    raise Refused(
      f'{source} is a file of a Keras model, and make_tf2_layer does not return one: give the '
      'prefix of a TF2 checkpoint'
    )
  port, values = read_port(case, source, comparison)
  inputs, _ = case_inputs.varied_inputs(case.inputs)
  account = KeyAccount((), (), (), ())
  training = False not in case.declaration.training_modes
  paired = {tf2: values[tf2] for _, tf2 in case.alignment().pairs}
  return Loaded(port, paired, account, training, inputs)


def _is_model(case: CaseUnderTest) -> bool:
  return model_files.library_of(case.tf2.fresh_port().layer) is not None


def _compare_outputs(case: CaseUnderTest, loaded: Loaded, comparison: Comparison) -> None:
  before = tf2_checkpoint.values_of(loaded.port)
  for training in sorted(case.declaration.training_modes):
    compare_outputs(case, dataclasses.replace(loaded, training=training), comparison)
    tf2_checkpoint.assign(loaded.port, before)


def _write(case: CaseUnderTest, loaded: Loaded, prefix: str, comparison: Comparison) -> None:
  """Lets the reference's graph write a checkpoint, and every one of its graphs restore it."""
  pairs = case.alignment().pairs
  values = {tf1: np.asarray(loaded.values[tf2]) for tf1, tf2 in pairs}
  wanted = {record.name for record in case.tf1.inventory().variables}
  graphs = [case.tf1.built(training) for training in sorted(case.declaration.training_modes)]
  complete = [b for b in graphs if wanted <= {variable.record.name for variable in b.variables}]
  if not complete:
    raise Refused(
      'no graph of build_tf1_graph has all variables, neither that for inference nor that for '
      'training: build them in both'
    )
  fill = RecordedFill("values of the port's file", values)
  run = RunSpec(loaded.inputs, complete[0].training, fill, {tf1: tf1 for tf1, _ in pairs})
  GraphSaver(complete[0]).save(run, prefix)
  for built in graphs:
    restored = GraphSaver(built).restored(prefix)
    for name, value in values.items():
      if name in restored:
        compare_restored(
          comparison, TensorKey('value restored by a Saver', name), value, restored[name]
        )
