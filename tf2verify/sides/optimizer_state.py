"""What is known of an optimizer: its settings, its learning rate, its slots."""

import dataclasses
import math
import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tf_keras.src.optimizers import optimizer as keras_optimizer
from tf_keras.src.optimizers.legacy import optimizer_v2

from tf2verify.records.training import OptimizerRecord
from tf2verify.sides.graphs.op_recorder import variable_name

v1 = tf.compat.v1
V1_OPTIMIZER: Any = v1.train.Optimizer
KERAS_OPTIMIZER: Any = keras_optimizer._BaseOptimizer
LEGACY_OPTIMIZER: Any = optimizer_v2.OptimizerV2

_RULES = {
  'GradientDescentOptimizer': 'sgd',
  'MomentumOptimizer': 'momentum',
  'RMSPropOptimizer': 'rmsprop',
  'RMSprop': 'rmsprop',
  'AdamOptimizer': 'adam',
  'Adam': 'adam',
  'AdamW': 'adam',
  'AdagradOptimizer': 'adagrad',
  'Adagrad': 'adagrad',
  'AdadeltaOptimizer': 'adadelta',
  'Adadelta': 'adadelta',
  'FtrlOptimizer': 'ftrl',
  'Ftrl': 'ftrl',
  'Adamax': 'adamax',
  'Nadam': 'nadam',
  # Of tf.contrib, for copies of these classes.
  'AdaMaxOptimizer': 'adamax',
  'NadamOptimizer': 'nadam',
}
# By rule and the optimizer's own word for a slot. `momentum` is a sum of gradients;
# `velocity` is what is added to the variable; `scaled momentum` is what is subtracted
# from it: the last two hold the learning rates of the steps.
_ROLES = {
  ('momentum', 'momentum'): 'momentum',
  ('rmsprop', 'rms'): 'squared gradient',
  ('rmsprop', 'velocities'): 'squared gradient',
  ('rmsprop', 'momentum'): 'scaled momentum',
  ('rmsprop', 'momentums'): 'scaled momentum',
  ('rmsprop', 'mg'): 'mean gradient',
  ('rmsprop', 'average_gradients'): 'mean gradient',
  ('adam', 'm'): 'first moment',
  ('adam', 'momentums'): 'first moment',
  ('adam', 'v'): 'second moment',
  ('adam', 'velocities'): 'second moment',
  ('adam', 'vhat'): 'greatest second moment',
  ('adam', 'velocity_hats'): 'greatest second moment',
  ('nadam', 'm'): 'first moment',
  ('nadam', 'momentums'): 'first moment',
  ('nadam', 'v'): 'second moment',
  ('nadam', 'velocities'): 'second moment',
  ('adamax', 'm'): 'first moment',
  ('adamax', 'v'): 'infinity norm',
  ('adamax', 'u'): 'infinity norm',
  ('adagrad', 'accumulator'): 'squared gradient',
  ('adagrad', 'accumulators'): 'squared gradient',
  ('adadelta', 'accum'): 'squared gradient',
  ('adadelta', 'accum_grad'): 'squared gradient',
  ('adadelta', 'accumulated_grads'): 'squared gradient',
  ('adadelta', 'accum_update'): 'squared update',
  ('adadelta', 'accum_var'): 'squared update',
  ('adadelta', 'accumulated_delta_vars'): 'squared update',
  ('ftrl', 'accum'): 'squared gradient',
  ('ftrl', 'accumulator'): 'squared gradient',
  ('ftrl', 'accumulators'): 'squared gradient',
  ('ftrl', 'linear'): 'linear',
  ('ftrl', 'linears'): 'linear',
}
# Of the same meaning whatever the rule; also what code without an optimizer class uses.
_COMMON_ROLES = {
  'adam_m': 'first moment',
  'adam_v': 'second moment',
  'vhat': 'greatest second moment',
  'model_variables_moving_average': 'shadow',
  'ExponentialMovingAverage': 'shadow',
}
_TENSORS = ('_lr_t', '_learning_rate_tensor', '_learning_rate', '_lr', 'learning_rate')
_NO_SETTINGS = ('_use_locking', '_use_own_namescope_for_non_slot_vars')
_VALUES = ('_learning_rate', '_lr', 'learning_rate')


@dataclasses.dataclass(frozen=True)
class SlotVariable:
  """A variable that an optimizer keeps, see `records.training.Slot`."""

  role: str
  variable: str
  name: str
  source: Any


def is_keras(optimizer: Any) -> bool:
  """Tells whether an optimizer is one of tf-keras, new or legacy."""
  return isinstance(optimizer, (KERAS_OPTIMIZER, LEGACY_OPTIMIZER))


def is_optimizer(optimizer: Any) -> bool:
  """Tells whether an optimizer is one whose steps can be looked at."""
  return is_keras(optimizer) or isinstance(optimizer, V1_OPTIMIZER)


def _rule(optimizer: Any) -> str:
  for cls in type(optimizer).__mro__:
    if cls.__name__ == 'SGD':
      momentum = optimizer._get_hyper('momentum') if _is_legacy(optimizer) else optimizer.momentum
      return 'momentum' if float(momentum) else 'sgd'
    if cls.__name__ in _RULES:
      return _RULES[cls.__name__]
  return ''


def _is_legacy(optimizer: Any) -> bool:
  return isinstance(optimizer, LEGACY_OPTIMIZER)


def class_name(optimizer: Any) -> str:
  """Returns the name of an optimizer's class, under which a user knows it."""
  cls = type(optimizer)
  if cls.__module__.startswith('tensorflow.python.'):
    return f'tf.compat.v1.train.{cls.__name__}'
  if cls.__module__.startswith('tf_keras.'):
    legacy = 'legacy.' if _is_legacy(optimizer) else ''
    return f'tf.keras.optimizers.{legacy}{cls.__name__}'
  return f'{cls.__module__}.{cls.__qualname__}'


def record_of(optimizer: Any) -> OptimizerRecord:
  """Returns an optimizer's class, rule and numeric settings."""
  if is_keras(optimizer):
    found = dict(optimizer.get_config())
  else:
    found = {
      name.lstrip('_'): value
      for name, value in vars(optimizer).items()
      if not name.startswith('_self_') and name not in _NO_SETTINGS
    }
  settings = {
    name: float(value)
    for name, value in found.items()
    if isinstance(value, numbers.Real) and not math.isnan(float(value))
  }
  return OptimizerRecord(class_name(optimizer), tuple(settings.items()), _rule(optimizer))


def eager_learning_rate(optimizer: Any) -> float | None:
  """Returns the learning rate that an optimizer's next update uses."""
  if _is_legacy(optimizer):
    return float(optimizer._decayed_lr(tf.float32))
  if isinstance(optimizer, KERAS_OPTIMIZER):
    value = optimizer._learning_rate
    # A schedule's current value is brought up to date in the update only.
    schedule = isinstance(value, tf.keras.optimizers.schedules.LearningRateSchedule)
    return float(value(optimizer.iterations) if schedule else value)
  for name in _VALUES:
    value = getattr(optimizer, name, None)
    value = value() if callable(value) else value
    if value is not None:
      return float(value)
  return None


def graph_learning_rate(optimizer: Any) -> Any:
  """Returns the tensor (or number) that an optimizer's updates in a graph use; None if unknown."""
  for name in _TENSORS:
    value = getattr(optimizer, name, None)
    if value is not None and not callable(value):
      return value
  return None


def _role(rule: str, word: str) -> str:
  found = _ROLES.get((rule, word)) or _COMMON_ROLES.get(word)
  return found or word.replace('_', ' ').strip()


def slots_of(optimizer: Any, variables: Sequence[Any]) -> Iterator[SlotVariable]:
  """Yields what an optimizer keeps for the given variables, and for itself."""
  rule = _rule(optimizer)
  if isinstance(optimizer, KERAS_OPTIMIZER):
    yield from _listed_slots(optimizer, variables, rule)
  else:
    for word in optimizer.get_slot_names():
      role = _role(rule, word)
      if _is_legacy(optimizer) and (rule, word) == ('momentum', 'momentum'):
        role = _role_of_momentum(optimizer, '_resource_apply_dense')
      for variable in variables:
        slot = _slot(optimizer, variable, word)
        if slot is not None:
          yield SlotVariable(role, variable_name(variable), variable_name(slot), slot)
  for word, variable in _of_the_whole(optimizer):
    yield SlotVariable(word, '', variable_name(variable), variable)


def _role_of_momentum(optimizer: Any, update: str) -> str:
  """Returns what SGD of Keras keeps; a class that overrides the update keeps what it likes."""
  owner = next(cls for cls in type(optimizer).__mro__ if update in vars(cls))
  return 'velocity' if owner.__module__.startswith('tf_keras.') else 'own momentum'


def _slot(optimizer: Any, variable: Any, word: str) -> Any:
  try:
    return optimizer.get_slot(variable, word)
  except KeyError:  # a legacy one, of a variable that it does not update
    return None


def _listed_slots(optimizer: Any, variables: Sequence[Any], rule: str) -> Iterator[SlotVariable]:
  """Yields the slots of a new Keras optimizer: lists in the order of its variables."""
  positions = getattr(optimizer, '_index_dict', {})
  for attribute, listed in vars(optimizer).items():
    word = attribute.lstrip('_')
    unused = rule == 'sgd' and word == 'momentums'  # made all the same
    if unused or word == 'variables' or not isinstance(listed, (list, tuple)):
      continue
    role = _role(rule, word)
    if rule == 'momentum' and word == 'momentums':
      role = _role_of_momentum(optimizer, 'update_step')
    for variable in variables:
      position = positions.get(optimizer._var_key(variable))
      if position is None or position >= len(listed):
        continue
      slot = listed[position]
      if isinstance(slot, tf.Variable):
        yield SlotVariable(role, variable_name(variable), variable_name(slot), slot)


def _of_the_whole(optimizer: Any) -> Iterator[tuple[str, Any]]:
  if is_keras(optimizer):
    yield 'step count', optimizer.iterations
    return
  for key, variable in optimizer._non_slot_dict.items():
    word = key[0] if isinstance(key, tuple) else key
    if variable is not None:
      yield str(word).replace('_', ' '), variable


def slot_by_name(name: str, variables: Iterable[str]) -> tuple[str, str]:
  """Returns role and variable of what code that keeps slots itself calls `variable/word`.

  Args:
    name: of the slot.
    variables: names of the model's variables.
  """
  owner = max((known for known in variables if name.startswith(f'{known}/')), key=len, default='')
  word = name[len(owner) + 1 :] if owner else name
  last = name.rpartition('/')[2]
  if last in _COMMON_ROLES and not owner:
    return _COMMON_ROLES[last], name.rpartition('/')[0]
  return _COMMON_ROLES.get(word, word), owner
