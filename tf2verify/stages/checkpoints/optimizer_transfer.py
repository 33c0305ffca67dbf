"""The state of a TF1 optimizer taken over by the port's, and verified by the next steps of both."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.numerics.tolerance import Tolerance, ToleranceTable
from tf2verify.records.checkpoint import KeyAccount, KeyKind
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import TrainingStep
from tf2verify.reference.slot_roles import OWN_MOMENTUM
from tf2verify.relation.slots import COUNTS, MOMENTUM_ROLES, scale_between
from tf2verify.sides.fill import RecordedFill
from tf2verify.sides.optimizers.state import eager_learning_rate, slots_of
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.checkpoint import CheckpointFile
from tf2verify.sides.tf1.training import Tf1Training
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.layers.port import Port, array_of
from tf2verify.stages.checkpoints import optimizer_restoring
from tf2verify.stages.checkpoints.loading import Loaded
from tf2verify.stages.checkpoints.restoring import called_port, compare_restored
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest

_STEPS = 2
# 1 - 0.999 is another number in float32 than in Python: 1.3e-5 apart, and twice that in two steps.
_SHARE = 1e-4
_GRADIENT_NOISE = 1e-6
_STEP_COUNT = 'step count'
# What is compared when files are read again, in the words of a report.
WRITTEN_AND_READ = ('written', 'read')
NOT_READ_BY_KERAS = (
  'Keras does not restore the optimizer of a .keras file if the class of the model overrides '
  'compile without get_compile_config and compile_from_config, where the model is not built from '
  'its config, and for tf.keras.optimizers.legacy. --no_optimizer writes only the weights; a '
  'TF2 checkpoint (--out PREFIX) has the optimizer of any model'
)

# By role, and the port's own name of the variable; '' for the optimizer as a whole.
_State = dict[tuple[str, str], np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class OptimizerTransfer:
  """What a checkpoint has for the port's optimizer.

  Attributes:
    state: of the port's optimizer, by role and variable.
    keys: that it was made of.
    kept: slots of the port's optimizer that no key gives a value.
    has_own_momentum: whether the optimizer has a momentum and an update of its own.
  """

  state: _State
  keys: frozenset[str]
  kept: tuple[str, ...]
  has_own_momentum: bool = False

  def optimizer_for(self, case: CaseUnderTest, port: Port) -> Any:
    """Returns a fresh optimizer of the port with this state."""
    optimizer = tf2_checkpoint.made_optimizer(case.declaration, port.layer)
    for slot in slots_of(optimizer, port.variables()):
      value = self.state.get((slot.role, slot.variable))
      if value is not None:
        slot.source.assign(value.astype(slot.source.dtype.as_numpy_dtype))
    return optimizer


def why_none(case: CaseUnderTest, account: KeyAccount) -> str:
  """Returns why no state of an optimizer can be taken over; '' where it can be."""
  declares = case.declaration.declares
  if not account.unread(KeyKind.SLOT) and not account.unread(KeyKind.OPTIMIZER):
    return 'the checkpoint has none'
  if not declares('make_tf2_optimizer'):
    return 'the case has no make_tf2_optimizer'
  if not (declares('make_tf1_optimizer') or declares('make_tf1_train_op')):
    return 'the case has no make_tf1_optimizer or make_tf1_train_op to compare with'
  if not isinstance(case.tf1_training, Tf1Training):
    return 'the reference is a recording, from which training cannot continue'
  if case.declaration.evaluate_with_ema:
    return 'the moving averages are converted, and the optimizer belongs to the weights'
  return ''


def transfer_of(
  case: CaseUnderTest, file: CheckpointFile, loaded: Loaded, own_momentum: str = MOMENTUM_ROLES[0]
) -> OptimizerTransfer:
  """Returns the state of the port's optimizer, made of the keys of a checkpoint.

  Slots are paired by role and variable. A momentum of TF1 is in Keras' unit for the learning
  rate of now.

  Args:
    case: both sides.
    file: the checkpoint.
    loaded: the port with its values.
    own_momentum: of `MOMENTUM_ROLES`, what the momentum is of an optimizer with an update of its
      own; training shows which one it is.
  """
  assert isinstance(case.tf1_training, Tf1Training)
  names = {key.name for key in file.keys}
  ones: dict[str, dict[str, str]] = {}
  for slot in case.tf1_training.slots():
    if slot.state.record.name in names:
      ones.setdefault(slot.role, {})[slot.variable] = slot.state.record.name
  optimizer = tf2_checkpoint.made_optimizer(case.declaration, loaded.port.layer)
  beta = tf2_checkpoint.optimizer_state(optimizer).beta_1
  done, _ = optimizer_restoring.steps(file, loaded.account, beta)
  others = list(slots_of(optimizer, loaded.port.variables()))
  state: _State = {}
  keys: set[str] = set()
  for other in others:
    if other.role == _STEP_COUNT and done is not None:
      other.source.assign(done)
      state[other.role, other.variable] = np.asarray(done)
      counters = loaded.account.unread(KeyKind.GLOBAL_STEP)
      keys.update(key.key.name for key in counters)
      keys.update(name for role in COUNTS for name in ones.get(role, {}).values())
  rate = eager_learning_rate(optimizer)
  for role in dict.fromkeys(other.role for other in others if other.variable):
    known = own_momentum if role == OWN_MOMENTUM else role
    found = ((one, scale_between(one, known, rate)) for one in ones)
    one, scale = next(((one, s) for one, s in found if s), ('', 1.0))
    values = {variable: file.value(key) for variable, key in ones.get(one, {}).items()}
    if scale != 1.0:
      values = {name: (value / scale).astype(value.dtype) for name, value in values.items()}
    own = _own_values(case, loaded.port, values)
    for other in others:
      if other.role == role and other.variable in own:
        state[role, other.variable] = own[other.variable]
    keys.update(ones.get(one, {}).values())
  kept = tuple(o.name for o in others if (o.role, o.variable) not in state)
  has_own = any(other.role == OWN_MOMENTUM for other in others)
  return OptimizerTransfer(state, frozenset(keys), kept, has_own)


def _own_values(
  case: CaseUnderTest, port: Port, values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """Returns values of tf1's variables as the port holds them, as far as entries are complete."""
  found: dict[str, np.ndarray] = {}
  mapped = case.pairing.mapped
  in_map: set[str] = set()
  for entry in () if mapped is None else mapped.variable_map.entries:
    in_map.update(entry.tf1)
    if all(name in values for name in entry.tf1):
      moved = entry.to_tf2([values[name] for name in entry.tf1], constants=False)
      found.update(zip(entry.tf2, moved, strict=True))
  for tf1, tf2 in case.alignment().pairs:
    if tf1 in values and tf1 not in in_map:
      found[tf2] = port.layouts.to_tf2(tf2, values[tf1], constants=False)
  return found


def check_steps(
  case: CaseUnderTest,
  file: CheckpointFile,
  loaded: Loaded,
  transfer: OptimizerTransfer,
  comparison: Comparison,
) -> tuple[str, ...]:
  """Goes on with training on both sides, from the checkpoint, and compares what every step updates.

  Returns:
    The variables that tell nothing, since their gradients may be rounding alone.
  """
  assert isinstance(case.tf1_training, Tf1Training)
  pairs = case.alignment().pairs
  training = True in case.declaration.training_modes
  fill = RecordedFill('values of the checkpoint', {one: loaded.values[two] for one, two in pairs})
  run = RunSpec(case.inputs, training, fill, {one: one for one, _ in pairs})
  with case.tf1_training.begin_restored(run, file.path) as steps:
    ones = [steps.take() for _ in range(_STEPS)]
  port = called_port(case)
  tf2_checkpoint.assign(port, loaded.values)
  before = tf2_checkpoint.values_of(port)
  going_on = case.tf2_training.begin_restored(run, port, transfer.optimizer_for(case, port))
  trained = {record.name for record in case.tf1.inventory().variables if record.trainable}
  noise = _noise(ones)
  for one in ones:
    other = going_on.take()
    said = f'step {one.number} after the checkpoint'
    values = {record.name: record.value for record in other.variables}
    known = {record.name: record.value for record in one.variables}
    for tf1, tf2 in pairs:
      if tf1 not in trained or tf1 in noise or before[tf2].dtype.kind != 'f':
        continue
      start = before[tf2]
      key = TensorKey('update of training', tf1, said, '' if tf1 == tf2 else tf2)
      update = np.asarray(known[tf1]) - start
      comparison.tensors(key, update, np.asarray(values[tf2]) - start, _allowed(update, start))
  return tuple(sorted(noise))


def _noise(steps: Sequence[TrainingStep]) -> set[str]:
  """Returns the variables of which the gradient may be rounding alone, beside the greatest one."""
  sizes: dict[str, float] = {}
  for step in steps:
    for record in step.gradients:
      if isinstance(record.value, np.ndarray):
        size = float(np.max(np.abs(record.value), initial=0.0))
        sizes[record.name] = max(sizes.get(record.name, 0.0), size)
  most = max(sizes.values(), default=0.0)
  return {name for name, size in sizes.items() if size <= _GRADIENT_NOISE * most}


def _allowed(update: np.ndarray, start: np.ndarray) -> ToleranceTable:
  """Returns what updates may differ by: constants of optimizers are rounded, and variables too."""
  unit = float(np.finfo(start.dtype).eps) * float(np.max(np.abs(start), initial=0.0))
  size = float(np.max(np.abs(update), initial=0.0))
  return ToleranceTable(((update.dtype.name, Tolerance(0.0, _SHARE * size + 2 * _STEPS * unit)),))


def check_written(
  written: Mapping[str, Any], read: Mapping[str, Any], comparison: Comparison
) -> None:
  """Compares the variables of an optimizer that was read with those of the one that was written."""
  others = _counterparts(written, read)
  for name, variable in written.items():
    if name in others:
      key = TensorKey('restored state of the optimizer', name)
      compare_restored(comparison, key, array_of(variable), array_of(others[name]))
      continue
    comparison.lost(
      Difference(
        'state of the optimizer',
        name,
        Aspect.PRESENCE,
        'a variable of the optimizer',
        'none, in the optimizer that was read',
        hint=NOT_READ_BY_KERAS,
      )
    )


def _counterparts(written: Mapping[str, Any], read: Mapping[str, Any]) -> Mapping[str, Any]:
  """Returns the variables that were read by the names of those that were written.

  A model that is read counts layers without a name of their own anew, `dense_2` for `dense`, and
  so the slots of their variables. Keras writes and reads them by number; each has to be of the
  same kind. That the model's variables are in this order is seen where these are compared.
  """
  if written.keys() <= read.keys() or len(written) != len(read):
    return read
  pairs = zip(written.items(), read.items(), strict=True)
  if all(_kind(*one) == _kind(*other) for one, other in pairs):
    return dict(zip(written, read.values(), strict=True))
  return read


def _kind(name: str, variable: Any) -> tuple[str, tuple[int | None, ...], str]:
  return name.rpartition('_')[2], tuple(variable.shape), str(variable.dtype)


def variables_of(optimizer: Any, model: Any = None) -> dict[str, Any]:
  """Returns the variables of an optimizer of Keras by their names, without that of the optimizer.

  Keras counts optimizers up: `adam_1` is written and read as `adam`.

  Args:
    optimizer: whose.
    model: whose variables it trains; names of slots are without the model's. A model of a class
      of its own that is read makes its variables outside its own scope: `fc_kernel_momentum`
      for `net_fc_kernel_momentum`.
  """
  found = optimizer.variables
  found = list(found() if callable(found) else found)
  start = '' if model is None else f'{model.name}_'
  names = [_own_name(one).removeprefix(start) for one in found]
  if len(set(names)) < len(names):  # of tf-keras: in the order in which they are made
    names = [f'variable {number}' for number in range(len(names))]
  return dict(zip(names, found, strict=True))


def _own_name(variable: Any) -> str:
  name = str(getattr(variable, 'path', variable.name))
  return name.partition('/')[2] or str(variable.name)
