"""The update rules that a recorded optimizer may follow."""

import dataclasses
from collections.abc import Iterator, Mapping

from tf2verify.diagnosis.formulas import update_rules
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.records.training import OptimizerRecord

# From the names of TF1 and of Keras to those of `update_rules`.
_SETTINGS: Mapping[str, str] = {
  'lr': 'learning_rate',
  'learning_rate': 'learning_rate',
  'beta1': 'beta1',
  'beta_1': 'beta1',
  'beta2': 'beta2',
  'beta_2': 'beta2',
  'epsilon': 'epsilon',
  'decay': 'rho',
  'rho': 'rho',
  'momentum': 'momentum',
  'use_nesterov': 'nesterov',
  'nesterov': 'nesterov',
  'centered': 'centered',
  'learning_rate_power': 'power',
  'l1_regularization_strength': 'l1',
  'l2_regularization_strength': 'l2',
  'initial_accumulator_value': 'initial_accumulator',
}
_KERAS = ('tf.keras.optimizers.', 'keras.optimizers.')
_LEGACY = 'tf.keras.optimizers.legacy.'
# The settings that each rule reads, besides the learning rate.
READ: Mapping[str, tuple[str, ...]] = {
  'sgd': (),
  'momentum': ('momentum', 'nesterov'),
  'velocity': ('momentum', 'nesterov'),
  'adam': ('beta1', 'beta2', 'epsilon'),
  'nadam': ('beta1', 'beta2', 'epsilon'),
  'scheduled nadam': ('beta1', 'beta2', 'epsilon', 'schedule'),
  'adamax': ('beta1', 'beta2', 'epsilon'),
  'rmsprop': ('rho', 'momentum', 'centered', 'epsilon'),
  'rmsprop, epsilon outside': ('rho', 'momentum', 'centered', 'epsilon'),
  'adagrad': ('epsilon',),
  'adadelta': ('rho', 'epsilon'),
  'ftrl': ('power', 'l1', 'l2'),
}
_SCHEDULE_OF_LEGACY_NADAM = 0.004
# A float32 that is added to none but 0 with any effect.
_ALMOST_NO_EPSILON = 1e-30
# What a class of the user's own may do that it inherits from another one.
_VARIANTS: Mapping[str, tuple[str, ...]] = {
  'sgd': ('momentum', 'velocity'),
  'momentum': ('velocity',),
  'adam': ('nadam', 'adamax'),
  'nadam': ('scheduled nadam', 'adam'),
  'rmsprop': ('rmsprop, epsilon outside',),
}
# Tried where the record does not tell the rule: with the defaults of TF1.
_GUESSES: tuple[tuple[str, Mapping[str, float]], ...] = (
  ('sgd', {}),
  ('momentum', {'momentum': 0.9}),
  ('adam', {'epsilon': 1e-8}),
  ('nadam', {'epsilon': 1e-8}),
  ('rmsprop', {'epsilon': 1e-10}),
  ('adagrad', {}),
)


@dataclasses.dataclass(frozen=True)
class Found:
  """The step of one side, computed again."""

  record: OptimizerRecord  # of the optimizer
  form: Form  # its rule and settings
  decay: float  # the share of each weight that the step takes besides the rule
  is_fitted: bool = False  # whether the learning rate is that which fits the steps best


def forms(record: OptimizerRecord, learning_rate: float | None) -> Iterator[Form]:
  """Yields the forms that an optimizer may have, the likeliest first.

  Args:
    record: the optimizer.
    learning_rate: in effect at the step; None for that of the record.
  """
  settings = _settings(record)
  if learning_rate is not None:
    settings['learning_rate'] = learning_rate
  known = _rule(record, settings)
  if known:
    is_own = not record.name.startswith(('tf.', *_KERAS))
    for rule in (known, *(_VARIANTS.get(known, ()) if is_own else ())):
      yield _form(rule, settings)
    return
  for rule, defaults in _GUESSES:
    yield _form(rule, {**defaults, **settings})


def setting_of(record: OptimizerRecord, name: str) -> str:
  """Returns the side's own name of a setting of `update_rules`."""
  own = [known for known, _ in record.settings if _SETTINGS.get(known) == name]
  return own[0] if own else name


def passable(record: OptimizerRecord, name: str, value: float) -> float:
  """Returns what to pass to an optimizer, so that it computes with a value of a setting.

  Keras' legacy optimizers compute with `epsilon or backend_config.epsilon()`: 0 is replaced by the
  default (tf-keras 2.21, `optimizers/legacy`).
  """
  is_replaced = name == 'epsilon' and value == 0 and record.name.startswith(_LEGACY)
  return _ALMOST_NO_EPSILON if is_replaced else value


def _settings(record: OptimizerRecord) -> dict[str, float]:
  found = {}
  for name, value in record.settings:
    # Keras' legacy `decay` is a schedule of the learning rate, TF1's that of a mean of squares.
    if name in _SETTINGS and not (name == 'decay' and record.name.startswith(_KERAS)):
      found[_SETTINGS[name]] = value
  return found


def _form(rule: str, settings: Mapping[str, float]) -> Form:
  read = ('learning_rate', *READ[rule])
  return Form(rule, tuple((name, settings[name]) for name in read if name in settings))


def _rule(record: OptimizerRecord, settings: dict[str, float]) -> str:
  keras, legacy = record.name.startswith(_KERAS), record.name.startswith(_LEGACY)
  if record.rule == 'momentum' and keras:
    return 'velocity'
  if record.rule == 'rmsprop' and legacy and not settings.get('momentum'):
    return 'rmsprop, epsilon outside'
  if record.rule == 'nadam' and keras:
    settings['schedule'] = _SCHEDULE_OF_LEGACY_NADAM if legacy else 1.0
    return 'scheduled nadam'
  return record.rule if record.rule in update_rules.RULES else ''
