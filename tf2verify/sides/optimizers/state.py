"""What is known of an optimizer: its settings, its learning rate, its slots."""

import collections
import dataclasses
import functools
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from tf2verify.errors import UserCodeError
from tf2verify.records.training import OptimizerRecord
from tf2verify.reference import optimizers
from tf2verify.reference.optimizers import NO_SETTINGS, UPDATE_RULES
from tf2verify.reference.slot_roles import role_of_momentum, slot_role
from tf2verify.reference.variables import variable_name
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.tensorflow_internals import keras, keras3

v1 = tf.compat.v1
V1_OPTIMIZER: Any = v1.train.Optimizer

# Lists of new Keras optimizers that are no slots.
_NO_SLOTS = ('variables', 'trainable_variables')
_FRAMEWORKS = ('tensorflow.', 'tf_keras.', 'keras.')
# What computes the update of a variable, in optimizers of all kinds.
_UPDATES = (
  *('update_step', '_resource_apply_dense', '_resource_apply_sparse'),
  *('_resource_apply_sparse_duplicate_indices', '_apply_dense', '_apply_sparse'),
)
_VALUES = ('_learning_rate', '_lr', 'learning_rate')


@dataclasses.dataclass(frozen=True)
class SlotVariable:
  """A variable that an optimizer keeps, see `records.training.Slot`."""

  role: str
  variable: str
  name: str
  source: Any
  word: str = ''
  key: str = ''
  of_place: bool = False


def with_keys(slots: Iterable[SlotVariable]) -> tuple[SlotVariable, ...]:
  """Returns slots with keys: `Variable` for the first of that name, `Variable, number 2`."""
  counts: collections.Counter[str] = collections.Counter()
  found = []
  for slot in slots:
    counts[slot.name] += 1
    number = counts[slot.name]
    key = slot.name if number == 1 else f'{slot.name}, number {number}'
    found.append(dataclasses.replace(slot, key=key))
  return tuple(found)


def is_keras(optimizer: Any) -> bool:
  """Returns whether an optimizer is one of tf-keras, new or legacy, or of Keras 3."""
  of_keras2 = isinstance(optimizer, (keras.OPTIMIZER, keras.LEGACY_OPTIMIZER))
  return of_keras2 or keras3.is_optimizer(optimizer)


def is_optimizer(optimizer: Any) -> bool:
  """Returns whether an optimizer is one whose steps can be looked at."""
  return is_keras(optimizer) or isinstance(optimizer, V1_OPTIMIZER)


def is_optimizer_class(cls: type) -> bool:
  """Returns whether a class is that of such an optimizer."""
  known = issubclass(cls, (keras.OPTIMIZER, keras.LEGACY_OPTIMIZER, V1_OPTIMIZER))
  return known or keras3.is_optimizer_class(cls)


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


def variables_of(optimizer: Any) -> list[Any]:
  """Returns the variables that an optimizer has, its learning rate too."""
  variables = told(lambda: optimizer.variables)
  listed = (told(variables) if callable(variables) else variables) or ()
  # A new Keras optimizer does not list its learning rate.
  found = map(keras3.held, (*listed, *vars(optimizer).values()))
  return [variable for variable in found if isinstance(variable, tf.Variable)]


def _rule(optimizer: Any) -> str:
  if _is_in_graph(optimizer):
    return optimizers.update_rule(optimizer)
  for cls in type(optimizer).__mro__:
    if cls.__name__ == 'SGD':
      momentum = told(lambda: float(_momentum(optimizer)))
      return '' if momentum is None else 'momentum' if momentum else 'sgd'
    if cls.__name__ in UPDATE_RULES:
      return UPDATE_RULES[cls.__name__]
  return ''


def _momentum(optimizer: Any) -> Any:
  return optimizer._get_hyper('momentum') if _is_legacy(optimizer) else optimizer.momentum


def _is_legacy(optimizer: Any) -> bool:
  return isinstance(optimizer, keras.LEGACY_OPTIMIZER)


def _is_in_graph(optimizer: Any) -> bool:
  """Returns whether it is one of tf-keras whose settings are variables of a TF1 graph."""
  return _is_legacy(optimizer) and not tf.executing_eagerly()


def class_name(optimizer: Any) -> str:
  """Returns the name of an optimizer's class, under which a user knows it."""
  cls = type(optimizer)
  if cls.__module__.startswith('tensorflow.python.'):
    return f'tf.compat.v1.train.{cls.__name__}'
  if cls.__module__.startswith('tf_keras.'):
    legacy = 'legacy.' if _is_legacy(optimizer) else ''
    return f'tf.keras.optimizers.{legacy}{cls.__name__}'
  if cls.__module__.startswith('keras.'):
    return f'keras.optimizers.{cls.__name__}'
  return f'{cls.__module__}.{cls.__qualname__}'


def record_of(optimizer: Any) -> OptimizerRecord:
  """Returns an optimizer's class, rule and numeric settings."""
  if _is_in_graph(optimizer):
    entry = optimizers.optimizer_entry(optimizer)
    settings_here = ((name, value) for name, value in entry['settings'])
    return OptimizerRecord(entry['name'], tuple(settings_here), entry['rule'])
  config = told(lambda: dict(optimizer.get_config())) if is_keras(optimizer) else None
  found = _attributes(optimizer) if config is None else config
  settings = {
    name: float(value)
    for name, value in found.items()
    if isinstance(value, numbers.Real) and not math.isnan(float(value))
  }
  name, rule = class_name(optimizer), _rule(optimizer)
  return OptimizerRecord(name, tuple(settings.items()), rule, _updates_by_itself(optimizer))


def _updates_by_itself(optimizer: Any) -> bool:
  """Returns whether what computes updates is overridden by a class that is not a framework's."""
  own = [cls for cls in type(optimizer).__mro__ if not cls.__module__.startswith(_FRAMEWORKS)]
  return any(name in vars(cls) for cls in own for name in _UPDATES)


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
    if not name.startswith('_self_') and name not in NO_SETTINGS
  }


def eager_learning_rate(optimizer: Any) -> float | None:
  """Returns the learning rate that an optimizer's next update uses; None if it cannot be told."""
  rate: float | None = told(lambda: _eager_learning_rate(optimizer))
  return rate


def _eager_learning_rate(optimizer: Any) -> float | None:
  if _is_legacy(optimizer):
    return float(optimizer._decayed_lr(tf.float32))
  if keras3.is_optimizer(optimizer):
    return float(optimizer.learning_rate)
  if isinstance(optimizer, keras.OPTIMIZER):
    value = optimizer._learning_rate
    # A schedule's current value is brought up to date in the update only.
    schedule = isinstance(value, tf_keras.optimizers.schedules.LearningRateSchedule)
    return float(value(optimizer.iterations) if schedule else value)
  for name in _VALUES:
    value = told(functools.partial(getattr, optimizer, name, None))
    value = value() if callable(value) else value
    if value is not None:
      return float(value)
  return None


def slots_of(optimizer: Any, variables: Sequence[Any]) -> Iterator[SlotVariable]:
  """Yields what an optimizer keeps for the given variables, and for itself."""
  rule = _rule(optimizer)
  if isinstance(optimizer, keras.OPTIMIZER) or keras3.is_optimizer(optimizer):
    yield from _listed_slots(optimizer, variables, rule)
  else:
    for word in told(optimizer.get_slot_names) or ():
      role = slot_role(rule, word)
      if _is_legacy(optimizer) and (rule, word) == ('momentum', 'momentum'):
        role = role_of_momentum(optimizer, '_resource_apply_dense')
      for variable in variables:
        slot = _slot(optimizer, variable, word)
        if slot is not None:
          yield SlotVariable(role, variable_name(variable), variable_name(slot), slot, word)
  for word, variable in _of_the_whole(optimizer):
    yield SlotVariable(word, '', variable_name(variable), variable)


def _slot(optimizer: Any, variable: Any, word: str) -> Any:
  # A legacy one raises for a variable that it does not update.
  return told(lambda: optimizer.get_slot(variable, word))


def _listed_slots(optimizer: Any, variables: Sequence[Any], rule: str) -> Iterator[SlotVariable]:
  """Yields the slots of a new Keras optimizer: lists in the order of its variables."""
  positions = _positions(optimizer, variables)
  for attribute, listed in vars(optimizer).items():
    word = attribute.lstrip('_')
    unused = rule == 'sgd' and word == 'momentums'  # created anyway
    if unused or word in _NO_SLOTS or not isinstance(listed, (list, tuple)):
      continue
    role = slot_role(rule, word)
    if rule == 'momentum' and word == 'momentums':
      role = role_of_momentum(optimizer, 'update_step')
    for variable in variables:
      position = positions.get(id(variable))
      if position is None or position >= len(listed):
        continue
      slot = keras3.held(listed[position])
      if isinstance(slot, tf.Variable):
        yield SlotVariable(role, variable_name(variable), variable_name(slot), slot, word)


def _positions(optimizer: Any, variables: Sequence[Any]) -> Mapping[int, int]:
  if keras3.is_optimizer(optimizer):
    return keras3.positions_of(optimizer, variables)
  known = getattr(optimizer, '_index_dict', {})
  found = ((id(variable), known.get(optimizer._var_key(variable))) for variable in variables)
  return {variable: position for variable, position in found if position is not None}


def _of_the_whole(optimizer: Any) -> Iterator[tuple[str, Any]]:
  if is_keras(optimizer):
    yield 'step count', keras3.held(optimizer.iterations)
    return
  # A subclass may do without the constructor that makes it.
  for key, variable in getattr(optimizer, '_non_slot_dict', {}).items():
    word = key[0] if isinstance(key, tuple) else key
    if variable is not None:
      yield str(word).replace('_', ' '), variable
