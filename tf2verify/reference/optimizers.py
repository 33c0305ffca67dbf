"""What optimizers are."""

import math
import numbers
from typing import Any, Dict

import numpy as np
import tensorflow as tf

from .private_tensorflow import constant_value

UPDATE_RULES = {
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
LEARNING_RATES = ('_lr_t', '_learning_rate_tensor', '_learning_rate', '_lr', 'learning_rate')
NO_SETTINGS = ('_use_locking', '_use_own_namescope_for_non_slot_vars')
_KERAS_SETTINGS = ('epsilon', 'nesterov', 'amsgrad', 'centered')


def is_keras_optimizer(optimizer: Any) -> bool:
  """Returns whether an optimizer is Keras' (`OptimizerV2`)."""
  return any(cls.__name__ == 'OptimizerV2' for cls in type(optimizer).__mro__)


def update_rule(optimizer: Any) -> str:
  """Returns the rule by which an optimizer updates; '' for one that is not known."""
  for cls in type(optimizer).__mro__:
    if cls.__name__ == 'SGD' and is_keras_optimizer(optimizer):
      return 'momentum' if optimizer._momentum else 'sgd'
    if cls.__name__ in UPDATE_RULES:
      return UPDATE_RULES[cls.__name__]
  return ''


def _optimizer_name(optimizer: Any) -> str:
  """Returns an optimizer's class, under the name that it has for a port."""
  cls = type(optimizer)
  if cls.__module__.startswith(('tensorflow.python.keras.', 'tf_keras.')):
    return 'tf.keras.optimizers.legacy.' + cls.__name__
  if cls.__module__.startswith('tensorflow.python.'):
    return 'tf.compat.v1.train.' + cls.__name__
  return '{}.{}'.format(cls.__module__, cls.__qualname__)


def optimizer_entry(optimizer: Any) -> Dict[str, Any]:
  """Returns an optimizer's class, update rule and numeric settings."""
  if is_keras_optimizer(optimizer):
    found = {name: getattr(optimizer, name, None) for name in _KERAS_SETTINGS}
    found.update((name, _initial_number(value)) for name, value in optimizer._hyper.items())
  else:
    found = {
      name.lstrip('_'): value
      for name, value in vars(optimizer).items()
      if not name.startswith('_self_') and name not in NO_SETTINGS
    }
  settings = [
    [name, float(value)]
    for name, value in found.items()
    if isinstance(value, numbers.Real) and math.isfinite(float(value))
  ]
  return {'name': _optimizer_name(optimizer), 'rule': update_rule(optimizer), 'settings': settings}


def _initial_number(value: Any) -> Any:
  """Returns the number that a setting of Keras, a variable in a graph, starts with."""
  if isinstance(value, tf.Variable):
    value = constant_value(value.initializer.inputs[1])
  return float(value) if isinstance(value, np.ndarray) and value.size == 1 else value


def learning_rate_of(optimizer: Any, graph: Any) -> Any:
  """Returns the name of the tensor that an optimizer's updates use, or the number, or None."""
  names = () if is_keras_optimizer(optimizer) else LEARNING_RATES
  found = [getattr(optimizer, name, None) for name in names]
  if not names and not getattr(optimizer, '_initial_decay', 0.0):
    found = [optimizer._hyper.get('learning_rate')]
  rate = next((value for value in found if value is not None and not callable(value)), None)
  if isinstance(rate, tf.Variable):
    rate = rate._as_graph_element()
  if isinstance(rate, tf.Tensor):
    return rate.name if can_be_fetched(rate, graph) else None
  return float(rate) if isinstance(rate, numbers.Real) else None


def can_be_fetched(tensor: Any, graph: Any) -> bool:
  """Returns whether a session of a graph can be asked for a tensor."""
  known = isinstance(tensor, tf.Tensor) and getattr(tensor, 'graph', None) is graph
  return known and bool(graph.is_fetchable(tensor))
