"""Update rules of optimizers, one step each, in numpy.

To try a hypothesis on recorded gradients and slots: would the port's variable have moved
like this if only its epsilon were the reference's? Everything is computed in float64, so a
result is that of TensorFlow's kernels up to the rounding of their dtype.

Formulas are those of the ops `ApplyGradientDescent`, `ApplyMomentum`, `ApplyAdam`, ... of
TensorFlow and of `tf_keras.optimizers`, where these do something else.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_Array = np.ndarray[Any, Any]

# Roles of slots, see `tf2verify.records.training.Slot`.
MOMENTUM = 'momentum'
VELOCITY = 'velocity'
SCALED_MOMENTUM = 'scaled momentum'
FIRST = 'first moment'
SECOND = 'second moment'
INFINITY_NORM = 'infinity norm'
MEAN_GRADIENT = 'mean gradient'
SQUARED_GRADIENT = 'squared gradient'
SQUARED_UPDATE = 'squared update'
LINEAR = 'linear'


@dataclasses.dataclass(frozen=True, eq=False)
class UpdateInputs:
  """The inputs of an update rule, for one variable."""

  value: _Array  # of the variable
  gradient: _Array  # as given to the update, after clipping; dense
  # Of the variable, by role; what is missing starts at its rule's own value.
  slots: Mapping[str, _Array]
  number: int  # of the step, from 1; the bias corrections count it

  def slot(self, role: str, start: float = 0.0) -> _Array:
    """Returns a slot in float64."""
    known = self.slots.get(role)
    if known is None or known.shape != self.value.shape:
      return np.full(self.value.shape, start, np.float64)
    return known.astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class Stepped:
  """What a step makes."""

  update: _Array  # what is added to the variable
  slots: Mapping[str, _Array]  # after the step, by role


@dataclasses.dataclass(frozen=True)
class Form:
  """An update rule and its settings."""

  rule: str  # a key of `RULES`
  # By this module's names: `learning_rate`, `momentum`, `nesterov` (0 or 1), `beta1`, `beta2`,
  # `rho`, `epsilon`, `centered` (0 or 1), `power`, `l1`, `l2`, `schedule`, `initial_accumulator`.
  settings: tuple[tuple[str, float], ...]

  def setting(self, name: str) -> float:
    """Returns a setting; that of `DEFAULTS` where the form has none."""
    return dict(self.settings).get(name, DEFAULTS[name])

  @property
  def has_no_rate(self) -> bool:
    """Whether no learning rate is known."""
    return 'learning_rate' not in dict(self.settings)

  def replaced(self, **settings: float) -> 'Form':
    """Returns the form with other settings."""
    return Form(self.rule, tuple(sorted({**dict(self.settings), **settings}.items())))

  def start(self, role: str) -> float:
    """Returns what every element of a slot is before the first step."""
    accumulates = self.rule in ('adagrad', 'ftrl') and role == SQUARED_GRADIENT
    return self.setting('initial_accumulator') if accumulates else 0.0

  def step(self, inputs: UpdateInputs) -> Stepped:
    """Takes one step.

    Args:
      inputs: what to start from.

    Returns:
      The update and the slots, in float64; not finite where the rule divides by 0.
    """
    with np.errstate(all='ignore'):
      return RULES[self.rule](self, inputs, inputs.gradient.astype(np.float64))


# What a rule does where an optimizer has no such setting.
DEFAULTS: Mapping[str, float] = {
  'learning_rate': 0.001,
  'momentum': 0.0,
  'nesterov': 0.0,
  'beta1': 0.9,
  'beta2': 0.999,
  'rho': 0.9,
  'epsilon': 0.0,
  'centered': 0.0,
  'power': -0.5,
  'l1': 0.0,
  'l2': 0.0,
  'schedule': 1.0,
  'initial_accumulator': 0.1,
}


def _sgd(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  return Stepped(-form.setting('learning_rate') * gradient, {})


def _momentum(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  """TF1: a = m * a + g; w -= lr * a."""
  rate, factor = form.setting('learning_rate'), form.setting('momentum')
  accumulated = factor * inputs.slot(MOMENTUM) + gradient
  move = gradient + factor * accumulated if form.setting('nesterov') else accumulated
  return Stepped(-rate * move, {MOMENTUM: accumulated})


def _velocity(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  """Keras: v = m * v - lr * g; w += v."""
  rate, factor = form.setting('learning_rate'), form.setting('momentum')
  velocity = factor * inputs.slot(VELOCITY) - rate * gradient
  move = factor * velocity - rate * gradient if form.setting('nesterov') else velocity
  return Stepped(move, {VELOCITY: velocity})


def _moments(form: Form, inputs: UpdateInputs, gradient: _Array) -> tuple[_Array, _Array]:
  beta1, beta2 = form.setting('beta1'), form.setting('beta2')
  first = beta1 * inputs.slot(FIRST) + (1 - beta1) * gradient
  second = beta2 * inputs.slot(SECOND) + (1 - beta2) * gradient**2
  return first, second


def _corrected_rate(form: Form, inputs: UpdateInputs) -> float:
  beta1, beta2 = form.setting('beta1'), form.setting('beta2')
  correction = (1 - beta2**inputs.number) ** 0.5 / (1 - beta1**inputs.number)
  return float(form.setting('learning_rate') * correction)


def _adam(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  """With epsilon-hat, beside the root of the uncorrected second inputs."""
  first, second = _moments(form, inputs, gradient)
  move = first / (np.sqrt(second) + form.setting('epsilon'))
  return Stepped(-_corrected_rate(form, inputs) * move, {FIRST: first, SECOND: second})


def _nadam(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  """`ApplyAdam` with use_nesterov, as contrib's: no schedule of the momentum."""
  first, second = _moments(form, inputs, gradient)
  beta1 = form.setting('beta1')
  ahead = beta1 * first + (1 - beta1) * gradient
  move = ahead / (np.sqrt(second) + form.setting('epsilon'))
  return Stepped(-_corrected_rate(form, inputs) * move, {FIRST: first, SECOND: second})


def _scheduled_nadam(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  """Keras: beta1 * (1 - 0.5 * 0.96 ** (schedule * t)) in place of beta1."""
  first, second = _moments(form, inputs, gradient)
  beta1, beta2, number = form.setting('beta1'), form.setting('beta2'), inputs.number
  steps = np.arange(1, number + 2)
  rates = beta1 * (1 - 0.5 * 0.96 ** (form.setting('schedule') * steps))
  product = np.prod(rates[:number])
  ahead = rates[number] * first / (1 - product * rates[number])
  ahead = ahead + (1 - rates[number - 1]) * gradient / (1 - product)
  root = np.sqrt(second / (1 - beta2**number)) + form.setting('epsilon')
  return Stepped(-form.setting('learning_rate') * ahead / root, {FIRST: first, SECOND: second})


def _adamax(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  beta1, beta2 = form.setting('beta1'), form.setting('beta2')
  first = beta1 * inputs.slot(FIRST) + (1 - beta1) * gradient
  greatest = np.maximum(beta2 * inputs.slot(INFINITY_NORM), np.abs(gradient))
  rate = form.setting('learning_rate') / (1 - beta1**inputs.number)
  move = first / (greatest + form.setting('epsilon'))
  return Stepped(-rate * move, {FIRST: first, INFINITY_NORM: greatest})


def _rmsprop(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  """Epsilon within the root."""
  return _rmsprop_of(form, inputs, gradient, lambda mean, eps: np.sqrt(mean + eps))


def _rmsprop_outside(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  """Epsilon beside the root: Keras' legacy one without momentum."""
  return _rmsprop_of(form, inputs, gradient, lambda mean, eps: np.sqrt(mean) + eps)


def _rmsprop_of(
  form: Form, inputs: UpdateInputs, gradient: _Array, root: Callable[[_Array, float], _Array]
) -> Stepped:
  rho, factor = form.setting('rho'), form.setting('momentum')
  squares = rho * inputs.slot(SQUARED_GRADIENT) + (1 - rho) * gradient**2
  slots = {SQUARED_GRADIENT: squares}
  denominator = squares
  if form.setting('centered'):
    slots[MEAN_GRADIENT] = rho * inputs.slot(MEAN_GRADIENT) + (1 - rho) * gradient
    denominator = squares - slots[MEAN_GRADIENT] ** 2
  move = form.setting('learning_rate') * gradient / root(denominator, form.setting('epsilon'))
  if factor:
    move = slots[SCALED_MOMENTUM] = factor * inputs.slot(SCALED_MOMENTUM) + move
  return Stepped(-move, slots)


def _adagrad(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  squares = inputs.slot(SQUARED_GRADIENT, form.start(SQUARED_GRADIENT)) + gradient**2
  move = gradient / np.sqrt(squares + form.setting('epsilon'))
  return Stepped(-form.setting('learning_rate') * move, {SQUARED_GRADIENT: squares})


def _adadelta(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  rho, epsilon = form.setting('rho'), form.setting('epsilon')
  squares = rho * inputs.slot(SQUARED_GRADIENT) + (1 - rho) * gradient**2
  before = inputs.slot(SQUARED_UPDATE)
  move = np.sqrt(before + epsilon) / np.sqrt(squares + epsilon) * gradient
  slots = {SQUARED_GRADIENT: squares, SQUARED_UPDATE: rho * before + (1 - rho) * move**2}
  return Stepped(-form.setting('learning_rate') * move, slots)


def _ftrl(form: Form, inputs: UpdateInputs, gradient: _Array) -> Stepped:
  rate, power, l1 = form.setting('learning_rate'), form.setting('power'), form.setting('l1')
  value = inputs.value.astype(np.float64)
  before = inputs.slot(SQUARED_GRADIENT, form.start(SQUARED_GRADIENT))
  squares = before + gradient**2
  sigma = (squares**-power - before**-power) / rate
  linear = inputs.slot(LINEAR) + gradient - sigma * value
  quadratic = squares**-power / rate + 2 * form.setting('l2')
  after = (np.clip(linear, -l1, l1) - linear) / quadratic
  return Stepped(after - value, {SQUARED_GRADIENT: squares, LINEAR: linear})


RULES: Mapping[str, Callable[[Form, UpdateInputs, _Array], Stepped]] = {
  'sgd': _sgd,
  'momentum': _momentum,
  'velocity': _velocity,
  'adam': _adam,
  'nadam': _nadam,
  'scheduled nadam': _scheduled_nadam,
  'adamax': _adamax,
  'rmsprop': _rmsprop,
  'rmsprop, epsilon outside': _rmsprop_outside,
  'adagrad': _adagrad,
  'adadelta': _adadelta,
  'ftrl': _ftrl,
}

_MOMENTS = frozenset({FIRST, SECOND})
_RMSPROP = frozenset({SQUARED_GRADIENT, SCALED_MOMENTUM, MEAN_GRADIENT})
# The slots that each rule reads.
ROLES: Mapping[str, frozenset[str]] = {
  'sgd': frozenset(),
  'momentum': frozenset({MOMENTUM}),
  'velocity': frozenset({VELOCITY}),
  'adam': _MOMENTS,
  'nadam': _MOMENTS,
  'scheduled nadam': _MOMENTS,
  'adamax': frozenset({FIRST, INFINITY_NORM}),
  'rmsprop': _RMSPROP,
  'rmsprop, epsilon outside': _RMSPROP,
  'adagrad': frozenset({SQUARED_GRADIENT}),
  'adadelta': frozenset({SQUARED_GRADIENT, SQUARED_UPDATE}),
  'ftrl': frozenset({SQUARED_GRADIENT, LINEAR}),
}
