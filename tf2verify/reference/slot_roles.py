"""What a slot means, by what it is called."""

import re
from typing import Any, Iterable, Tuple

SHADOW = 'shadow'
# The sum of gradients, or what is added to the variable, or its opposite.
OWN_MOMENTUM = 'own momentum'
_MOMENTA = ('momentum', 'velocity')
# A sum that the variable is computed from, whatever it was.
LINEAR = 'linear'
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
  ('ftrl', 'linear'): LINEAR,
  ('ftrl', 'linears'): LINEAR,
}
# Of the same meaning whatever the rule; also what code without an optimizer class uses.
_COMMON_ROLES = {
  'adam_m': 'first moment',
  'adam_v': 'second moment',
  'vhat': 'greatest second moment',
  'model_variables_moving_average': SHADOW,
  'ExponentialMovingAverage': SHADOW,
  'ema': SHADOW,
  'shadow': SHADOW,
  'shadows': SHADOW,
}
_AVERAGES = re.compile(
  r'(average[sd]?|averaging|avg|ema|emas|shadows?|polyak|exponentialmovingaverage)'
)
_OF_FRAMEWORK = ('tensorflow.python.', 'tensorflow_core.python.', 'tf_keras.', 'keras.')


def slot_role(rule: str, word: str) -> str:
  """Returns what a slot means, by the rule of its optimizer and the optimizer's word for it."""
  return _ROLES.get((rule, word)) or role_of_word(word)


def role_of_word(word: str) -> str:
  """Returns what code of an unknown rule keeps under a word."""
  if word in _MOMENTA:
    return OWN_MOMENTUM
  return _COMMON_ROLES.get(word) or word.replace('_', ' ').strip()


def is_average_word(text: str) -> bool:
  """Returns whether one of the words of a name is one for averages of weights."""
  return any(_AVERAGES.fullmatch(word) for word in re.split(r'[^a-z]+', text.lower()))


def role_of_momentum(optimizer: Any, update: str) -> str:
  """Returns what SGD of Keras keeps; a class that overrides the update keeps what it likes.

  Args:
    optimizer: of Keras, with momentum.
    update: the method that updates a variable.
  """
  owner = next(cls for cls in type(optimizer).__mro__ if update in vars(cls))
  return 'velocity' if owner.__module__.startswith(_OF_FRAMEWORK) else OWN_MOMENTUM


def slot_by_name(name: str, variables: Iterable[str]) -> Tuple[str, str]:
  """Returns role and variable of what code that keeps slots itself calls `variable/word`.

  The word may stand before or after the name of the variable, and scopes around both.

  Args:
    name: of the slot.
    variables: names of the model's variables.
  """
  found = [(known, _beside(name, known)) for known in variables]
  owner, word = max(
    (pair for pair in found if pair[1]), key=lambda pair: len(pair[0]), default=('', name)
  )
  before, _, last = name.rpartition('/')
  if last in _COMMON_ROLES and not owner:
    return _COMMON_ROLES[last], before
  return role_of_word(word) if owner else word, owner


def _beside(name: str, variable: str) -> str:
  """Returns the word beside a variable's name in that of a slot; '' where it is not there."""
  for mark in '/_':
    whole, part = ('{0}{1}{0}'.format(mark, text.replace('/', mark)) for text in (name, variable))
    before, found, after = whole.rpartition(part)
    if found and (before or after):
      return after.strip(mark) or before.strip(mark).rpartition(mark)[2]
  return ''
