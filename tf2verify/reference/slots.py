"""What optimizers and moving averages keep."""

from typing import Any, Iterable, Iterator, Sequence, Tuple

from .optimizers import is_keras_optimizer, update_rule
from .variables import variable_name

# What a slot means, by rule and the optimizer's own word for it.
_ROLES = {
  ('momentum', 'momentum'): 'momentum',
  ('rmsprop', 'rms'): 'squared gradient',
  ('rmsprop', 'momentum'): 'scaled momentum',
  ('rmsprop', 'mg'): 'mean gradient',
  ('adam', 'm'): 'first moment',
  ('adam', 'v'): 'second moment',
  ('nadam', 'm'): 'first moment',
  ('nadam', 'v'): 'second moment',
  ('adamax', 'm'): 'first moment',
  ('adamax', 'v'): 'infinity norm',
  ('adagrad', 'accumulator'): 'squared gradient',
  ('adadelta', 'accum'): 'squared gradient',
  ('adadelta', 'accum_grad'): 'squared gradient',
  ('adadelta', 'accum_update'): 'squared update',
  ('adadelta', 'accum_var'): 'squared update',
  ('ftrl', 'accum'): 'squared gradient',
  ('ftrl', 'accumulator'): 'squared gradient',
  ('ftrl', 'linear'): 'linear',
}

SHADOW = 'shadow'

_COMMON_ROLES = {
  'adam_m': 'first moment',
  'adam_v': 'second moment',
  'vhat': 'greatest second moment',
  'model_variables_moving_average': SHADOW,
  'ExponentialMovingAverage': SHADOW,
}


def slots_of(optimizer: Any, variables: Sequence[Any]) -> Iterator[Tuple[str, str, str]]:
  """Yields role, variable and name of what an optimizer keeps; no variable: of the whole."""
  rule = update_rule(optimizer)
  for word in optimizer.get_slot_names():
    role = _ROLES.get((rule, word)) or _COMMON_ROLES.get(word) or word.replace('_', ' ').strip()
    if is_keras_optimizer(optimizer) and (rule, word) == ('momentum', 'momentum'):
      role = 'velocity'
    for variable in variables:
      try:
        slot = optimizer.get_slot(variable, word)
      except KeyError:  # one of Keras, of a variable that it does not update
        slot = None
      if slot is not None:
        yield role, variable_name(variable), variable_name(slot)
  if is_keras_optimizer(optimizer):
    yield 'step count', '', variable_name(optimizer.iterations)
    return
  for key, variable in optimizer._non_slot_dict.items():
    word = key[0] if isinstance(key, tuple) else key
    if variable is not None:
      yield str(word).replace('_', ' '), '', variable_name(variable)


def slot_by_name(name: str, variables: Iterable[str]) -> Tuple[str, str]:
  """Returns role and variable of what code that keeps slots itself calls `variable/word`."""
  owner = max((known for known in variables if name.startswith(known + '/')), key=len, default='')
  word = name[len(owner) + 1 :] if owner else name
  before, _, last = name.rpartition('/')
  if last in _COMMON_ROLES and not owner:
    return _COMMON_ROLES[last], before
  return _COMMON_ROLES.get(word, word), owner
