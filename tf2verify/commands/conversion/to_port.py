"""A TF1 checkpoint turned into the port's own files, if everything about it can be verified."""

import contextlib
import dataclasses
import os

import numpy as np

from tf2verify.case import EquivalenceCase, new_ladder
from tf2verify.commands.conversion.files import Refused, refuse, write_and_read
from tf2verify.commands.conversion.target import Format, Target
from tf2verify.errors import CheckpointError, UsageError, UserCodeError
from tf2verify.ladder import Ladder
from tf2verify.records.checkpoint import KeyAccount, KeyKind
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.status import Status
from tf2verify.records.table import Table
from tf2verify.records.table_text import table_lines
from tf2verify.records.verdict_text import compared_text, differences_text
from tf2verify.records.wording import listed
from tf2verify.relation.checkpoint_keys import SHADOW_SUFFIX
from tf2verify.relation.slots import MOMENTUM_ROLES
from tf2verify.sides.process import state as process_state
from tf2verify.sides.recorded import references
from tf2verify.sides.side import Progress
from tf2verify.sides.tf1 import checkpoint as tf1_checkpoint
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.stages.checkpoints.conversion_account import (
  Remark,
  left_out_keys,
  port_alone,
  with_read,
)
from tf2verify.stages.checkpoints.error_line import telling_line
from tf2verify.stages.checkpoints.loading import Loaded, compare_outputs, key_table, load
from tf2verify.stages.checkpoints.optimizer_transfer import (
  WRITTEN_AND_READ,
  OptimizerTransfer,
  check_steps,
  transfer_of,
  why_none,
)
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.passes.zero_randomness import ZeroRandomness
from tf2verify.stages.stage import CaseUnderTest


@dataclasses.dataclass(frozen=True)
class Conversion:
  """What became of a conversion.

  Attributes:
    case: the class's name.
    source: prefix of the TF1 checkpoint.
    written: the file, or prefix of the TF2 checkpoint; '' where the conversion was refused.
    compared: how much was verified, as text.
    refusal: why nothing was written, by lines; empty where something was.
    table: the account of the keys; None where it was not come to.
    remarks: what is left out on either side, and why; what was not compared.
    read_by: the lines of Python that read what was written.
  """

  case: str
  source: str
  written: str
  compared: str
  refusal: tuple[str, ...] = ()
  table: Table | None = None
  remarks: tuple[Remark, ...] = ()
  read_by: tuple[str, ...] = ()

  def to_text(self, verbose: bool = False) -> str:
    """Returns the outcome for a terminal.

    Args:
      verbose: whether every key that is left out is named, and not only the first ones.
    """
    lines = [f'{self.case}: {self.source}']
    if self.table is not None:
      lines += [f'  {line}' for line in table_lines(self.table)]
    for remark in self.remarks:
      lines += [f'  {line}' for line in remark.lines(verbose)]
    if self.refusal:
      lines += ['REFUSED, nothing was written:', *(f'  {line}' for line in self.refusal)]
    else:
      lines += [f'  verified: {self.compared}', f'written: {self.written}']
      lines += ['  read it by:', *(f'    {line}' for line in self.read_by)] if self.read_by else []
    return '\n'.join(lines)


_WITHOUT_OPTIMIZER = (
  'compare the optimizers by the stage training_steps; --no_optimizer converts only the weights'
)


def convert(
  case: type[EquivalenceCase],
  source: str,
  target: Target,
  progress: Progress,
  ema: bool = False,
  with_optimizer: bool = True,
) -> Conversion:
  """Restores a TF1 checkpoint into a fresh port, verifies it, and writes the port's own files.

  Keys, values and outputs are compared as the stage `checkpoint` does, outputs in all
  training modes of the case; a key that nothing reads and nobody knows is a refusal as
  well. What is written has been read into another fresh port before it gets its name.

  Args:
    case: a case that passes up to `zero_randomness`.
    source: prefix of the TF1 checkpoint.
    target: what to write.
    progress: called with one line of text before every long step.
    ema: whether moving averages of weights are converted in the place of the weights.
    with_optimizer: whether the state of the optimizer is converted, where both sides have one.

  Raises:
    UsageError: something of the name exists, or its folder does not.
    CheckpointError: `source` cannot be read, or is of another model.
  """
  target.check_free()
  file = tf1_checkpoint.name_based(source, '--tf1_checkpoint')
  if os.path.abspath(file.path) == os.path.abspath(target.path):
    raise UsageError(
      f'--out {target.path} is the TF1 checkpoint itself, which the port still needs if anything '
      'goes wrong; use a different name'
    )
  if ema:
    case = _with_averages(case, file)
  with contextlib.closing(new_ladder(case, progress)) as ladder:
    failure = climbed(ladder)
    if failure is not None:
      return Conversion(case.__name__, source, '', '', failure)
    prepared = ladder.prepared()
    with process_state.preserved(), references.conditions(prepared.declaration):
      return _converted(prepared, case.__name__, file, target, progress, with_optimizer)


def climbed(ladder: Ladder) -> tuple[str, ...] | None:
  """Climbs to what any conversion needs; returns the lines of the failure, None without one."""
  verdict = ladder.stage(ZeroRandomness)
  if verdict.status is Status.PASSED:
    return None
  failure = ladder.verdict().first_failure
  return tuple((verdict if failure is None else failure).to_text().splitlines())


def _with_averages(
  case: type[EquivalenceCase], file: tf1_checkpoint.CheckpointFile
) -> type[EquivalenceCase]:
  """Returns the case with the attribute that says that averages are the values."""
  if not any(key.name.endswith(f'/{SHADOW_SUFFIX}') for key in file.keys):
    raise CheckpointError(
      f'--ema: {file.path} has no key that ends in /{SHADOW_SUFFIX}, as '
      '`tf.train.ExponentialMovingAverage` names the averages of weights (keys: '
      f'{", ".join(key.name for key in file.keys[:3])}); leave --ema out to convert the weights'
    )
  known = {'evaluate_with_ema': True, '__module__': case.__module__, '__doc__': case.__doc__}
  return type(case.__name__, (case,), known)


def _converted(
  case: CaseUnderTest,
  name: str,
  file: tf1_checkpoint.CheckpointFile,
  target: Target,
  progress: Progress,
  with_optimizer: bool,
) -> Conversion:
  comparison = Comparison()
  loaded = load(case, file, comparison)
  _report_unknown(loaded, comparison)
  remarks: list[Remark] = []
  account, transfer = loaded.account, None
  why, settled = _why_no_optimizer(case, account, target, with_optimizer), False
  found = Conversion(name, file.path, '', '')
  try:
    if not comparison.differences:
      remarks += _check_training(case, loaded, comparison)
      if not why:
        progress('continuing training from the checkpoint')
        transfer, said = _transferred(case, file, loaded, part := Comparison())
        account = with_read(account, transfer.keys)
        remarks += said
        _refuse_steps(loaded, transfer, part)
        _take(comparison, part)
        settled = True
    remarks += [*left_out_keys(case, account, why, settled), *port_alone(case)]
    remarks += _not_finite(loaded)
    refuse(comparison)
    with target.folder_beside() as beside:
      progress(f'writing {target.path}')
      path = os.path.join(beside, target.base)
      written = write_and_read(case, loaded, path, target, comparison, transfer)
      refuse(comparison, WRITTEN_AND_READ)
      target.check_free()
      target.take(beside)
  except Refused as refused:
    return dataclasses.replace(
      found,
      refusal=tuple(str(refused).splitlines()),
      table=key_table(account),
      remarks=tuple(remarks),
    )
  path = os.path.join(os.path.dirname(target.path), os.path.basename(written.path))
  return dataclasses.replace(
    found,
    written=path,
    compared=compared_text(comparison.compared),
    table=key_table(account),
    remarks=(*remarks, *_not_told(comparison)),
    read_by=written.reading.lines(path, name),
  )


def _report_unknown(loaded: Loaded, comparison: Comparison) -> None:
  """Adds keys of the checkpoint that mean nothing to the case."""
  for key in loaded.account.unread(KeyKind.UNKNOWN):
    comparison.lost(
      Difference(
        'checkpoint key',
        key.key.name,
        Aspect.PRESENCE,
        f'in the checkpoint, {key.key}',
        'read by no variable of the model, and neither a slot nor a moving average of one',
        hint='the checkpoint holds more than the model of this case: declare a case with the whole '
        'model, or write a checkpoint without these keys',
      )
    )


def _take(comparison: Comparison, part: Comparison) -> None:
  """Adds what a part has found, with what it cannot see."""
  comparison.absorb(part)
  comparison.blind_spots += part.blind_spots


def _not_finite(loaded: Loaded) -> list[Remark]:
  """Returns which variables have values that are not finite, which verify nothing."""
  names = tuple(
    name
    for name, value in loaded.values.items()
    if value.dtype.kind == 'f' and not np.isfinite(value).all()
  )
  said = (
    'blind spot: the checkpoint has values that are NaN or infinite; outputs that are not finite '
    'either, since they follow from these, verify nothing'
  )
  return [Remark(said, names)] if names else []


def _not_told(comparison: Comparison) -> list[Remark]:
  """Returns what the figures after `verified:` do not tell: inconclusive pairs, blind spots."""
  said = 'inconclusive, since both sides are within the tolerance of zero, but not equal'
  known = [Remark(said, comparison.near_zero)] if comparison.near_zero else []
  return [*known, *(Remark(f'blind spot: {text}') for text in comparison.findings().blind_spots)]


def _check_training(case: CaseUnderTest, loaded: Loaded, comparison: Comparison) -> list[Remark]:
  """Compares the outputs in training mode, too; returns why that tells nothing, if it does not."""
  if loaded.training or True not in case.declaration.training_modes:
    return []
  part = Comparison()
  before = tf2_checkpoint.values_of(loaded.port)
  compare_outputs(case, dataclasses.replace(loaded, training=True), part)
  tf2_checkpoint.assign(loaded.port, before)
  if part.inconclusive and not part.differences:
    return [Remark(f'outputs in training mode were not compared: {part.inconclusive}')]
  _take(comparison, part)
  return []


def _why_no_optimizer(
  case: CaseUnderTest, account: KeyAccount, target: Target, wanted: bool
) -> str:
  """Returns why the state of the optimizer is not converted; '' where it is."""
  if not wanted:
    return '--no_optimizer says so'
  if target.format is Format.WEIGHTS:
    return 'a .weights.h5 file is for weights'
  if case.declaration.declares('save_tf2_checkpoint') and target.format is Format.CHECKPOINT:
    return 'save_tf2_checkpoint gets only the layer'
  return why_none(case, account)


def _not_transferred(loaded: Loaded, transfer: OptimizerTransfer) -> list[str]:
  """Returns which slots of either side have no counterpart."""
  left = [
    key.key.name for key in loaded.account.unread(KeyKind.SLOT) if key.key.name not in transfer.keys
  ]
  found = []
  if left:
    found.append(f'no slot of the port was recognized as {listed(left, most=5)}')
  if transfer.kept:
    found.append(f'the port kept the initial value of {listed(transfer.kept, most=5)}')
  return found


def _refuse_steps(loaded: Loaded, transfer: OptimizerTransfer, steps: Comparison) -> None:
  """Raises `Refused` where training does not go on alike with the converted optimizer."""
  if steps.differences:
    raise Refused(
      'the state of the optimizer was converted, but training does not continue with it as in '
      'TF1:\n'
      + '\n'.join([*_not_transferred(loaded, transfer), *differences_text(steps.differences)])
      + f'\n{_WITHOUT_OPTIMIZER}'
    )


def _transferred(
  case: CaseUnderTest,
  file: tf1_checkpoint.CheckpointFile,
  loaded: Loaded,
  comparison: Comparison,
) -> tuple[OptimizerTransfer, list[Remark]]:
  """Takes over the state of the optimizer, and compares the next training steps with it."""
  part = Comparison()
  try:
    transfer = transfer_of(case, file, loaded)
    silent = check_steps(case, file, loaded, transfer, part)
    if part.differences and transfer.has_own_momentum:
      for role in MOMENTUM_ROLES[1:]:
        trial, other = Comparison(), transfer_of(case, file, loaded, role)
        silent_then = check_steps(case, file, loaded, other, trial)
        if not trial.differences:
          part, transfer, silent = trial, other, silent_then
          break
  except UserCodeError as error:
    raise Refused(
      f'training cannot continue from the checkpoint: {telling_line(error)}\n{_WITHOUT_OPTIMIZER}'
    ) from error
  remarks = []
  if transfer.kept:
    remarks.append(Remark("keeps its initial value in the port's optimizer", transfer.kept))
  if silent:
    said = 'is not verified by training, since the gradient is near zero'
    remarks.append(Remark(said, silent))
  _take(comparison, part)
  return transfer, remarks
