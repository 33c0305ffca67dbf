"""A TF1 checkpoint restored on both sides."""

import dataclasses
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf2verify.compare import checkpoint_keys, restored_values
from tf2verify.errors import CheckpointError
from tf2verify.records.checkpoint import KeyAccount, KeyKind
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import Observation
from tf2verify.records.verdict import Table
from tf2verify.sides import inputs as case_inputs
from tf2verify.sides import randomness, side, tf2_checkpoint
from tf2verify.sides.fill import RecordedFill
from tf2verify.sides.port import Port
from tf2verify.sides.side import FilledRun
from tf2verify.sides.tf1_checkpoint import CheckpointFile
from tf2verify.sides.tf2_checkpoint import RestoreCall
from tf2verify.sides.user_code import user_code
from tf2verify.stages import optimizer_restoring
from tf2verify.stages.restoring import RestoreComparison, called_port, with_sentinels
from tf2verify.stages.rounding import Rerun, repeated
from tf2verify.stages.stage import CaseUnderTest, by_name

_VALUE = 'restored value'
_KEY = 'checkpoint key'
# Names in one sentence.
_SHOWN = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
  """The port with the values of a TF1 checkpoint.

  Attributes:
    port: its variables hold `values`.
    values: by tf2 name.
    account: of the checkpoint's keys.
    training: the mode that outputs are compared in.
    inputs: the inputs that they are compared on.
    outputs: of the port at these values; None where they were not compared.
    rerun: repeats the reference's run at these values; None likewise.
    reference: that run.
  """

  port: Port
  values: dict[str, np.ndarray]
  account: KeyAccount
  training: bool
  inputs: Any
  outputs: Observation | None = None
  rerun: Rerun | None = None
  reference: Observation | None = None

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


def load(case: CaseUnderTest, file: CheckpointFile, comparison: RestoreComparison) -> Loaded:
  """Restores a TF1 checkpoint on both sides, and compares keys, values and outputs.

  On the tf1 side values are read by name and assigned, as a `Saver` does. The port's
  variables hold other values before, so that one which is left out is seen.

  Raises:
    CheckpointError: no key fits the model, or a tensor cannot be read.
  """
  pairs = case.alignment().pairs
  records = by_name(case.tf1.inventory())
  variables = [records[tf1] for tf1, _ in pairs]
  account = checkpoint_keys.account(
    file.keys, variables, case.declaration.evaluates_shadows, global_steps(case)
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
    reasons = _Reasons(case, file, account, port, values, before, calls)
    for source in account.sources:
      reasons.compare(source.variable, tf2_names[source.variable], source.key, comparison)
  else:
    tf2_checkpoint.assign(port, values)
    now = tf2_checkpoint.values_of(port)
    for tf1, tf2 in ((s.variable, tf2_names[s.variable]) for s in account.sources):
      comparison.restored(_VALUE, _both(tf1, tf2), values[tf2], now[tf2], lambda found: found)
  complete = len(comparison.differences) == found and not account.missing and not account.changed
  if optimizer is not None:
    optimizer_restoring.compare(file, account, optimizer, comparison)
  loaded = Loaded(port, values, account, False not in case.declaration.training_modes, None)
  if complete:
    return _with_outputs(case, loaded, comparison)
  tf2_checkpoint.assign(port, values)
  return loaded


def _with_outputs(case: CaseUnderTest, loaded: Loaded, comparison: RestoreComparison) -> Loaded:
  """Compares the outputs of both sides at the restored values."""
  pairs = case.alignment().pairs
  inputs, _ = case_inputs.varied_inputs(case.inputs)
  by_tf1 = {tf1: loaded.values[tf2] for tf1, tf2 in pairs}
  fill = RecordedFill('values of the checkpoint', by_tf1)
  run = FilledRun(inputs, loaded.training, fill, {tf1: tf1 for tf1, _ in pairs})
  run_tf1 = case.tf1.prepare_filled([run])
  (tf1,) = run_tf1()
  with randomness.seeded(randomness.CONSTANT):
    outputs = case.tf2.call(loaded.port, inputs, loaded.training, run.description)
  tf2 = tf2_checkpoint.observed(outputs, run.description)
  rerun = repeated(run_tf1, run)
  with comparison.unless_drawn_in_a_loop(tf1) as part:
    part.outputs(tf1, tf2, case.tolerance)
    part.sort_out_rounding(tf1, rerun)
  return dataclasses.replace(loaded, inputs=inputs, outputs=tf2, rerun=rerun, reference=tf1)


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
  """Tells whether a case's own loader also restores an optimizer."""
  if not declaration.declares('load_tf1_checkpoint'):
    return False
  parameters = inspect.signature(declaration.load_tf1_checkpoint).parameters
  return 'optimizer' in parameters and declaration.declares('make_tf2_optimizer')


class _Reasons:
  """Says why variables have not the values that the case's own loader should give them."""

  def __init__(
    self,
    case: CaseUnderTest,
    file: CheckpointFile,
    account: KeyAccount,
    port: Port,
    values: dict[str, np.ndarray],
    before: dict[str, np.ndarray],
    calls: Sequence[RestoreCall],
  ) -> None:
    self._file = file
    self._values = values
    self._before = before
    self._now = tf2_checkpoint.values_of(port)
    self._calls = calls
    self._layer = type(port.layer).__name__
    self._names = {key.name for key in file.keys}
    self._ids = {variable.name.rpartition(':')[0]: id(variable) for variable in port.variables()}
    kept = [name for name in values if restored_values.same(self._now[name], before[name])]
    self._count = f'{len(values) - len(kept)} of {len(values)} variables restored'
    unread = [s.key for s in account.sources if dict(case.alignment().pairs)[s.variable] in kept]
    more = f' and {len(unread) - _SHOWN} more' if len(unread) > _SHOWN else ''
    self._said: dict[str, str] = {}
    self._left_out = f'{", ".join(unread[:_SHOWN])}{more}'

  def compare(self, tf1: str, tf2: str, key: str, comparison: RestoreComparison) -> None:
    """Compares one variable with the value of its key."""

    def explained(difference: Difference) -> Difference:
      actual, expected = self._now[tf2], self._values[tf2]
      found = restored_values.cause(
        tf1, actual, expected, self._before[tf2], key, self._file.values_like(actual)
      )
      if not found.kept:
        # Told once for all variables of which it is true.
        said = self._said.setdefault(found.said.replace(tf1, '*'), found.said)
        return dataclasses.replace(difference, hint=said)
      return dataclasses.replace(
        difference,
        aspect=Aspect.PRESENCE,
        tf1=f'the value of the key {key}',
        tf2='kept its value: not restored',
        array=None,
        hint=self._why_kept(tf2),
      )

    comparison.restored(_VALUE, _both(tf1, tf2), self._values[tf2], self._now[tf2], explained)

  def _why_kept(self, tf2: str) -> str:
    """Returns why a variable kept its value, told once for all of one reason."""
    by_name = any(call.path == self._file.path for call in self._calls)
    reached = any(self._ids.get(tf2) in call.paths for call in self._calls)
    if not reached and any(not call.paths for call in self._calls):
      return f'{self._count}: {unbuilt_text(self._layer)}'
    if by_name and tf2 not in self._names:
      closest = checkpoint_keys.closest(tf2, sorted(self._names))
      nearest = f' (closest: {closest})' if closest else ''
      return self._said.setdefault(
        'no key',
        f'{self._count}: tf.train.Checkpoint.restore looks a name-based file up by the names of '
        f'the variables and passes over what it does not find; {tf2} is no key of the '
        f'checkpoint{nearest}; read tf.train.load_checkpoint(path).get_tensor(key), or leave '
        'it to tf2verify, which goes by variable_names',
      )
    if by_name and not reached:
      return self._said.setdefault(
        'not reached',
        f'{self._count}: what was given to tf.train.Checkpoint does not lead to {tf2}; '
        f'unread: {self._left_out}; assert_consumed() of a name-based file passes all the same',
      )
    return (
      f'{self._count}: load_tf1_checkpoint leaves keys unread: {self._left_out}; nothing tells '
      'that of a name-based file, nor does assert_consumed(): go through all of layer.variables'
    )


def unbuilt_text(layer: str) -> str:
  """Returns what went wrong where an object without variables was restored."""
  return (
    f'the object that was restored has no variables: it was not built, so the restore waits for '
    f'its first call; restore the {layer} that is given, or call the object once before its '
    'variables are read'
  )


def _both(tf1: str, tf2: str) -> str:
  return tf1 if tf1 == tf2 else f'{tf1} (tf2: {tf2})'


def global_steps(case: CaseUnderTest) -> tuple[str, ...]:
  """Returns the names of the counters of steps that the reference has."""
  records = case.tf1.inventory().variables
  return tuple(record.name for record in records if 'global_step' in record.collections)


def _key_differences(account: KeyAccount) -> list[Difference]:
  found = []
  for missing in account.missing:
    hint = f'no key {missing.variable}' + (
      f'; closest: {missing.closest}' if missing.closest else ''
    )
    names = [absent.variable for absent in account.missing]
    other = checkpoint_keys.other_scope(names, {key.key.name for key in account.keys})
    found.append(
      Difference(
        _KEY,
        missing.variable,
        Aspect.PRESENCE,
        'a variable of the model',
        'not in the checkpoint',
        hint=other or hint,
      )
    )
  for changed in account.changed:
    key, shape = changed.key, tuple(changed.shape)
    same_shape = key.shape == shape
    hint = ''
    if not same_shape and sorted(key.shape) == sorted(size or 0 for size in shape):
      hint = 'the same axes in another order: the tensor was stored transposed'
    elif not same_shape:
      hint = 'the checkpoint is of a model of another size (classes, layers, vocabulary)'
    found.append(
      Difference(
        _KEY,
        key.name,
        Aspect.DTYPE if same_shape else Aspect.SHAPE,
        f'the variable: {shape} {changed.dtype}',
        f'the checkpoint: {key}',
        hint=hint,
      )
    )
  return found


def _of_another_model(file: CheckpointFile, account: KeyAccount) -> str:
  names = [missing.variable for missing in account.missing]
  keys = {key.name for key in file.keys}
  other = checkpoint_keys.other_scope(names, keys)
  return (
    f'{file.path} is of another model: none of the {len(names)} variables is a key (variables: '
    f'{", ".join(names[:_SHOWN])}; keys: {", ".join(sorted(keys)[:_SHOWN])})'
    + (f'; {other}' if other else '')
  )
