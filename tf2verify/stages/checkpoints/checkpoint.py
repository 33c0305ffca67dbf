"""Rung 9: checkpoints load and restore."""

import dataclasses
import gc
import os
import tempfile

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.numerics import restored_values
from tf2verify.numerics.error_summary import extents
from tf2verify.records.checkpoint import KeyAccount, KeyKind
from tf2verify.records.table import Table
from tf2verify.records.wording import listed
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1 import checkpoint as tf1_checkpoint
from tf2verify.sides.tf1.checkpoint import CheckpointFile
from tf2verify.stages.checkpoints import optimizer_restoring
from tf2verify.stages.checkpoints.loading import load, takes_optimizer
from tf2verify.stages.checkpoints.saving import check_saved
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.passes.training_fill import training_fill
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage

# Enough for slots and shadows to differ from their variables and from zero.
_STEPS = 2


class Checkpoint(Stage):
  """Restores a TF1 checkpoint on both sides, and what the port saves into fresh layers."""

  name = 'checkpoint'
  needs = ('zero_randomness',)
  proves = 'a TF1 checkpoint loads into the port completely, and what the port saves restores it'
  diagnosed = False

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares keys, values and outputs after every restore; values have to be equal."""
    if not case.alignment().pairs:
      raise NotApplicable('the model has no variable to save')
    comparison = Comparison()
    notes, tables = self._compared(case, comparison)
    gc.collect()  # layers and traces, before the next stage makes its own
    findings = comparison.findings(notes)
    found = extents(findings.deviations, findings.differences)
    return dataclasses.replace(findings, tables=tables, failed_run=None, extents=found)

  def _compared(
    self, case: CaseUnderTest, comparison: Comparison
  ) -> tuple[list[str], tuple[Table, ...]]:
    """Compares everything, and returns notes and tables."""
    with tempfile.TemporaryDirectory(prefix='tf2verify_') as folder:
      file = self._file(case, folder, comparison)
      loaded = load(case, file, comparison)
      notes = _notes(case, file, loaded.account)
    if loaded.outputs is None:
      notes.append('outputs were not compared, since values differ')
    notes += check_saved(case, loaded, comparison)
    return notes, loaded.tables()

  def _file(self, case: CaseUnderTest, folder: str, comparison: Comparison) -> CheckpointFile:
    """Returns the case's checkpoint, or one that the reference writes now."""
    declaration = case.declaration
    if declaration.declares('tf1_checkpoint'):
      with user_code('case', 'tf1_checkpoint'):
        path = declaration.tf1_checkpoint()
      return tf1_checkpoint.name_based(path, 'tf1_checkpoint')
    pairs = case.alignment().pairs
    fill = training_fill(case)
    training = True in declaration.training_modes
    run = RunSpec(case.inputs, training, fill, {tf1: tf1 for tf1, _ in pairs})
    written = _written_by_reference(case, run, os.path.join(folder, 'tf1'), comparison)
    return tf1_checkpoint.name_based(written, 'the checkpoint of this run')


def _written_by_reference(
  case: CaseUnderTest, run: RunSpec, prefix: str, comparison: Comparison
) -> str:
  """Lets the reference write a checkpoint, with the state of an optimizer if it has one.

  NaN that training has made would restore each variable alike: then the values before it.
  """
  declares = case.declaration.declares
  if declares('make_tf1_optimizer') or declares('make_tf1_train_op'):
    try:
      saved = case.tf1_training.save(run, _STEPS, prefix)
      broken = _with_nan(case, tf1_checkpoint.name_based(saved, 'the checkpoint of this run'))
      if not broken:
        return saved
      comparison.blind_spots.append(
        f'after {_STEPS} training steps of tf1 {listed(broken)} hold NaN, so the checkpoint was '
        'written before them: no optimizer state was restored'
      )
    except NotApplicable:
      pass  # there is nothing to train: the variables alone
  values = tf1_checkpoint.reference_values(case.tf1, run, case.declaration.training_modes)
  return tf1_checkpoint.write(prefix, values)


def _with_nan(case: CaseUnderTest, file: CheckpointFile) -> list[str]:
  """Returns the variables of the model that hold NaN in a checkpoint."""
  keys = {key.name for key in file.keys}
  names = [tf1 for tf1, _ in case.alignment().pairs if tf1 in keys]
  values = ((name, file.value(name)) for name in names)
  return [name for name, value in values if value.dtype.kind in 'fc' and np.isnan(value).any()]


def _notes(case: CaseUnderTest, file: CheckpointFile, account: KeyAccount) -> list[str]:
  """Returns what a checkpoint holds that the port was not given."""
  notes = []
  unknown = [key.key.name for key in account.unread(KeyKind.UNKNOWN)]
  if unknown and case.declaration.declares('tf1_checkpoint'):
    notes.append(
      'keys that the reference does not read either, since it has no such variable: '
      f'{listed(unknown)}'
    )
  shadows = account.unread(KeyKind.SHADOW)
  telling = [s for s in shadows if s.variable in {source.key for source in account.sources}]
  if telling and not case.declaration.evaluate_with_ema:
    moved = sum(
      not restored_values.same(file.value(s.key.name), file.value(s.variable)) for s in telling
    )
    if moved:
      notes.append(
        f'{len(telling)} moving averages of weights in the checkpoint are not loaded, of which '
        f'{moved} are not the weights themselves; if TF1 evaluates with them, declare '
        'evaluate_with_ema = True'
      )
  if case.declaration.declares('make_tf2_optimizer') and not takes_optimizer(case.declaration):
    note = optimizer_restoring.note(file, account)
    notes += [note] if note else []
  return notes
