"""What is known of an optimizer: its settings, its learning rate, its slots."""

import dataclasses
import functools
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.errors import UserCodeError
from tf2verify.records.training import OptimizerRecord
from tf2verify.reference.variables import variable_name
from tf2verify.sides.user_code import user_code
from tf2verify.tensorflow_internals import keras

v1 = tf.compat.v1
V1_OPTIMIZER: Any = v1.train.Optimizer

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
  'ema': 'shadow',
  'shadow': 'shadow',
  'shadows': 'shadow',
}
OWN_MOMENTUM = 'own momentum'
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
  word: str = ''


def is_keras(optimizer: Any) -> bool:
  """Returns whether an optimizer is one of tf-keras, new or legacy."""
  return isinstance(optimizer, (keras.OPTIMIZER, keras.LEGACY_OPTIMIZER))


def is_optimizer(optimizer: Any) -> bool:
  """Returns whether an optimizer is one whose steps can be looked at."""
  return is_keras(optimizer) or isinstance(optimizer, V1_OPTIMIZER)


def is_optimizer_class(cls: type) -> bool:
  """Returns whether a class is that of such an optimizer."""
  return issubclass(cls, (keras.OPTIMIZER, keras.LEGACY_OPTIMIZER, V1_OPTIMIZER))


def told(ask: Callable[[], Any]) -> Any:
  """Returns what an object of the user's says of itself; None where it raises.

  Training goes without the answer: of `get_config`, which a schedule need not have, or of
  an attribute that is a property.

  Args:
    ask: asks the object.
  """
  try:
    with user_code('tf2', 'what an object says of itself'):
      return ask()
  except UserCodeError:
    return None


def _rule(optimizer: Any) -> str:
  for cls in type(optimizer).__mro__:
    if cls.__name__ == 'SGD':
      momentum = told(lambda: float(_momentum(optimizer)))
      return '' if momentum is None else 'momentum' if momentum else 'sgd'
    if cls.__name__ in _RULES:
      return _RULES[cls.__name__]
  return ''


def _momentum(optimizer: Any) -> Any:
  return optimizer._get_hyper('momentum') if _is_legacy(optimizer) else optimizer.momentum


def _is_legacy(optimizer: Any) -> bool:
  return isinstance(optimizer, keras.LEGACY_OPTIMIZER)


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
  config = told(lambda: dict(optimizer.get_config())) if is_keras(optimizer) else None
  found = _attributes(optimizer) if config is None else config
  settings = {
    name: float(value)
    for name, value in found.items()
    if isinstance(value, numbers.Real) and not math.isnan(float(value))
  }
  return OptimizerRecord(class_name(optimizer), tuple(settings.items()), _rule(optimizer))


def _attributes(optimizer: Any) -> Mapping[str, Any]:
  """Returns the settings of an optimizer that has, or tells, no config."""
  known = dict(vars(optimizer))
  if _is_legacy(optimizer):
    for name, value in known.pop('_hyper', {}).items():
      known[name] = told(functools.partial(float, value)) if tf.is_tensor(value) else value
  elif is_keras(optimizer):
    rate = known.pop('_learning_rate', None)
    known['learning_rate'] = told(lambda: float(rate)) if tf.is_tensor(rate) else rate
  return {
    name.lstrip('_'): value
    for name, value in known.items()
    if not name.startswith('_self_') and name not in _NO_SETTINGS
  }


def eager_learning_rate(optimizer: Any) -> float | None:
  """Returns the learning rate that an optimizer's next update uses; None if it cannot be told."""
  rate: float | None = told(lambda: _eager_learning_rate(optimizer))
  return rate


def _eager_learning_rate(optimizer: Any) -> float | None:
  if _is_legacy(optimizer):
    return float(optimizer._decayed_lr(tf.float32))
  if isinstance(optimizer, keras.OPTIMIZER):
    value = optimizer._learning_rate
    # A schedule's current value is brought up to date in the update only.
    schedule = isinstance(value, tf.keras.optimizers.schedules.LearningRateSchedule)
    return float(value(optimizer.iterations) if schedule else value)
  for name in _VALUES:
    value = told(functools.partial(getattr, optimizer, name, None))
    value = value() if callable(value) else value
    if value is not None:
      return float(value)
  return None


def graph_learning_rate(optimizer: Any) -> Any:
  """Returns the tensor (or number) that an optimizer's updates in a graph use; None if unknown."""
  for name in _TENSORS:
    value = told(functools.partial(getattr, optimizer, name, None))
    if value is not None and not callable(value):
      return value
  return None


def _role(rule: str, word: str) -> str:
  return _ROLES.get((rule, word)) or role_of_word(word)


def role_of_word(word: str) -> str:
  """Returns what code of an unknown rule keeps under a word."""
  if word == 'momentum':  # the sum of gradients, or what is added to the variable, or its opposite
    return OWN_MOMENTUM
  return _COMMON_ROLES.get(word) or word.replace('_', ' ').strip()


def slots_of(optimizer: Any, variables: Sequence[Any]) -> Iterator[SlotVariable]:
  """Yields what an optimizer keeps for the given variables, and for itself."""
  rule = _rule(optimizer)
  if isinstance(optimizer, keras.OPTIMIZER):
    yield from _listed_slots(optimizer, variables, rule)
  else:
    for word in told(optimizer.get_slot_names) or ():
      role = _role(rule, word)
      if _is_legacy(optimizer) and (rule, word) == ('momentum', 'momentum'):
        role = _role_of_momentum(optimizer, '_resource_apply_dense')
      for variable in variables:
        slot = _slot(optimizer, variable, word)
        if slot is not None:
          yield SlotVariable(role, variable_name(variable), variable_name(slot), slot, word)
  for word, variable in _of_the_whole(optimizer):
    yield SlotVariable(word, '', variable_name(variable), variable)


def _role_of_momentum(optimizer: Any, update: str) -> str:
  """Returns what SGD of Keras keeps; a class that overrides the update keeps what it likes."""
  owner = next(cls for cls in type(optimizer).__mro__ if update in vars(cls))
  return 'velocity' if owner.__module__.startswith('tf_keras.') else OWN_MOMENTUM


def _slot(optimizer: Any, variable: Any, word: str) -> Any:
  # A legacy one raises for a variable that it does not update.
  return told(lambda: optimizer.get_slot(variable, word))


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
        yield SlotVariable(role, variable_name(variable), variable_name(slot), slot, word)


def _of_the_whole(optimizer: Any) -> Iterator[tuple[str, Any]]:
  if is_keras(optimizer):
    yield 'step count', optimizer.iterations
    return
  # A subclass may do without the constructor that makes it.
  for key, variable in getattr(optimizer, '_non_slot_dict', {}).items():
    word = key[0] if isinstance(key, tuple) else key
    if variable is not None:
      yield str(word).replace('_', ' '), variable


def slot_by_name(name: str, variables: Iterable[str]) -> tuple[str, str]:
  """Returns role and variable of what code that keeps slots itself calls `variable/word`.

  The word may stand before or after the name of the variable, and scopes around both.

  Args:
    name: of the slot.
    variables: names of the model's variables.
  """
  owner, word = max(
    ((known, rest) for known in variables if (rest := _beside(name, known))),
    key=lambda found: len(found[0]),
    default=('', name),
  )
  before, _, last = name.rpartition('/')
  if last in _COMMON_ROLES and not owner:
    return _COMMON_ROLES[last], before
  return role_of_word(word) if owner else word, owner


def _beside(name: str, variable: str) -> str:
  """Returns the word beside a variable's name in that of a slot; '' where it is not there."""
  for mark in '/_':
    whole, part = (f'{mark}{text.replace("/", mark)}{mark}' for text in (name, variable))
    before, found, after = whole.rpartition(part)
    if found and (before or after):
      return after.strip(mark) or before.strip(mark).rpartition(mark)[2]
  return ''
