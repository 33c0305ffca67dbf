"""A TF1 checkpoint restored on both sides."""

import dataclasses
import functools
import inspect
from typing import Any

import numpy as np

from tf2verify.errors import CheckpointError
from tf2verify.records.checkpoint import KeyAccount, KeyKind
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import Observation
from tf2verify.records.table import Table
from tf2verify.reference import inputs as case_inputs
from tf2verify.relation import checkpoint_keys
from tf2verify.sides import side
from tf2verify.sides.fill import RecordedFill
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.process import randomness
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.checkpoint import CheckpointFile
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.files.checkpoint import RestoreCall
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.stages.checkpoints import optimizer_restoring
from tf2verify.stages.checkpoints.kept_values import Reasons, restored_key
from tf2verify.stages.checkpoints.restoring import called_port, compare_restored, with_sentinels
from tf2verify.stages.comparison import first_nan
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import Rerun, repeated, rerun_of
from tf2verify.stages.comparison.zero_by_zero import leave_out
from tf2verify.stages.stage import CaseUnderTest, by_name

_KEY = 'checkpoint key'
# What the keys of a checkpoint are compared with; both are of TF1.
_SIDES = ('model', 'checkpoint')
_NOT_SAVED = (
  'the Saver that wrote it was given a var_list without this variable, or the model did not have '
  'it then: load a checkpoint that has every variable of the model'
)
# Names in one sentence.
_SHOWN = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
  """The port with the values of a TF1 checkpoint."""

  port: Port  # its variables hold `values`
  values: dict[str, np.ndarray]  # by tf2 name
  account: KeyAccount  # of the checkpoint's keys
  training: bool  # the mode that outputs are compared in
  inputs: Any  # the inputs that they are compared on
  # Of the port at these values; None where they were not compared.
  outputs: Observation | None = None
  rerun: Rerun | None = None  # repeats the reference's run at these values; None likewise
  reference: Observation | None = None  # that run

  def tables(self) -> tuple[Table, ...]:
    """Returns the account of the keys, where not all of them are read model variables."""
    counts = self.account.counts()
    if all(keys == read and kind == KeyKind.MODEL.value for kind, keys, read in counts):
      return ()
    return (key_table(self.account),)


def key_table(account: KeyAccount) -> Table:
  """Returns how many keys of each kind there are, and how many are read."""
  rows = tuple((kind, f'{keys:,}', f'{read:,}') for kind, keys, read in account.counts())
  missing = (('(missing)', f'{len(account.missing):,}', ''),) if account.missing else ()
  return Table('keys of the TF1 checkpoint', ('kind', 'keys', 'read'), (*rows, *missing))


def load(case: CaseUnderTest, file: CheckpointFile, comparison: Comparison) -> Loaded:
  """Restores a TF1 checkpoint on both sides, and compares keys, values and outputs.

  On the tf1 side values are read by name and assigned, as a `Saver` does. The port's
  variables hold other values before, so that one which is left out is seen.

  Raises:
    CheckpointError: no key fits the model, or a tensor cannot be read.
  """
  pairs = case.alignment().pairs
  records = by_name(case.tf1.inventory())
  variables = [records[tf1] for tf1, _ in pairs]
  steps = global_steps(case)
  left_out = frozenset(case.alignment().only_tf1).difference(steps)
  account = checkpoint_keys.account(
    file.keys, variables, case.declaration.evaluate_with_ema, steps, left_out
  )
  if not account.sources and not account.changed:
    raise CheckpointError(_of_another_model(file, account))
  for difference in _key_differences(account):
    comparison.lost(difference)
  tf2_names = dict(pairs)
  values = {
    tf2_names[source.variable]: file.value_of(source, records[source.variable].shape)
    for source in account.sources
  }
  port = called_port(case)
  before = with_sentinels(port, values)
  found = len(comparison.differences)
  optimizer = None
  if case.declaration.declares('load_tf1_checkpoint'):
    calls, optimizer = _load_by_hook(case, port, file)
    reasons = Reasons(case, file, account, port, values, before, calls)
    for source in account.sources:
      reasons.compare(source.variable, tf2_names[source.variable], source.key, comparison)
  else:
    tf2_checkpoint.assign(port, values)
    now = tf2_checkpoint.values_of(port)
    for tf1, tf2 in ((s.variable, tf2_names[s.variable]) for s in account.sources):
      compare_restored(comparison, restored_key(tf1, tf2), values[tf2], now[tf2])
  complete = len(comparison.differences) == found and not account.missing and not account.changed
  if optimizer is not None:
    optimizer_restoring.compare(file, account, optimizer, comparison)
  if complete:  # equal values, in the memory of the variables
    now = tf2_checkpoint.values_of(port)
    values = {name: now[name] for name in values}
  loaded = Loaded(port, values, account, False not in case.declaration.training_modes, None)
  if complete:
    return _with_outputs(case, loaded, comparison)
  tf2_checkpoint.assign(port, values)
  return loaded


def _with_outputs(case: CaseUnderTest, loaded: Loaded, comparison: Comparison) -> Loaded:
  """Compares the outputs of both sides at the restored values."""
  inputs, _ = case_inputs.varied_inputs(case.inputs)
  return compare_outputs(case, dataclasses.replace(loaded, inputs=inputs), comparison)


def compare_outputs(case: CaseUnderTest, loaded: Loaded, comparison: Comparison) -> Loaded:
  """Compares the outputs of both sides at the restored values, which the port's variables hold.

  Args:
    case: the case.
    loaded: with the inputs, and the mode.
    comparison: takes the findings.

  Returns:
    The same, with the outputs.
  """
  pairs = case.alignment().pairs
  inputs = loaded.inputs
  by_tf1 = {tf1: loaded.values[tf2] for tf1, tf2 in pairs}
  fill = RecordedFill('values of the checkpoint', by_tf1)
  run = RunSpec(inputs, loaded.training, fill, {tf1: tf1 for tf1, _ in pairs})
  run_tf1 = case.tf1.prepare_filled([run])
  (tf1,) = run_tf1()
  with randomness.seeded(randomness.CONSTANT):
    outputs = case.tf2.call(loaded.port, inputs, loaded.training, run.description)
  tf2 = tf2_checkpoint.observed(outputs, run.description)
  rerun = rerun_of(repeated(run_tf1, run))
  with comparison.unless_drawn_in_a_loop(tf1) as part:
    part.outputs(tf1, tf2, case.tolerance)
    inspect = functools.partial(case.tf1.inspectable, run)
    part.excuse_rounding(tf1, rerun, inspect=inspect)
    leave_out(part, inspect, tf1.run)
  first_nan.explain(comparison, inspect)
  return dataclasses.replace(loaded, outputs=tf2, rerun=rerun, reference=tf1)


def _load_by_hook(
  case: CaseUnderTest, port: Port, file: CheckpointFile
) -> tuple[list[RestoreCall], tf2_checkpoint.OptimizerState | None]:
  """Lets the case load the checkpoint; into an optimizer as well where its hook takes one."""
  hook = case.declaration.load_tf1_checkpoint
  optimizer, further = None, {}
  if takes_optimizer(case.declaration):
    optimizer = tf2_checkpoint.made_optimizer(case.declaration, port.layer)
    further = {'optimizer': optimizer}
  with tf2_checkpoint.recorded_restores() as calls, user_code(side.TF2, 'load_tf1_checkpoint'):
    hook(port.layer, file.path, **further)
  return calls, None if optimizer is None else tf2_checkpoint.optimizer_state(optimizer)


def takes_optimizer(declaration: side.Declaration) -> bool:
  """Returns whether a case's own loader also restores an optimizer."""
  if not declaration.declares('load_tf1_checkpoint'):
    return False
  parameters = inspect.signature(declaration.load_tf1_checkpoint).parameters
  return 'optimizer' in parameters and declaration.declares('make_tf2_optimizer')


def global_steps(case: CaseUnderTest) -> tuple[str, ...]:
  """Returns the names of the counters of steps that the reference has."""
  records = case.tf1.inventory().variables
  return tuple(record.name for record in records if 'global_step' in record.collections)


def _key_differences(account: KeyAccount) -> list[Difference]:
  found = []
  names = [absent.variable for absent in account.missing]
  other = checkpoint_keys.other_scope(names, {key.key.name for key in account.keys})
  for missing in account.missing:
    hint = f'no key {missing.variable}'
    if missing.closest:
      hint += f'; closest: {missing.closest}: was the variable renamed?'
    else:
      hint += f', and no similar one that is unread: {_NOT_SAVED}'
    found.append(
      Difference(
        _KEY,
        missing.variable,
        Aspect.PRESENCE,
        'has the variable',
        'has no such key',
        hint=other or hint,
        sides=_SIDES,
      )
    )
  for changed in account.changed:
    key, shape = changed.key, tuple(changed.shape)
    same_shape = key.shape == shape
    hint = ''
    if not same_shape and sorted(key.shape) == sorted(size or 0 for size in shape):
      hint = 'the same axes in a different order: the tensor was stored transposed'
    elif not same_shape:
      hint = 'the checkpoint is of a model of a different size (classes, layers, vocabulary)'
    found.append(
      Difference(
        _KEY,
        key.name,
        Aspect.DTYPE if same_shape else Aspect.SHAPE,
        f'{shape} {changed.dtype}',
        str(key),
        hint=hint,
        sides=_SIDES,
      )
    )
  return found


def _of_another_model(file: CheckpointFile, account: KeyAccount) -> str:
  names = [missing.variable for missing in account.missing]
  keys = {key.name for key in file.keys}
  other = checkpoint_keys.other_scope(names, keys)
  return (
    f'{file.path} is of a different model: none of the {len(names)} variables is a key (variables: '
    f'{", ".join(names[:_SHOWN])}; keys: {", ".join(sorted(keys)[:_SHOWN])})'
    + (f'; {other}' if other else '')
  )
