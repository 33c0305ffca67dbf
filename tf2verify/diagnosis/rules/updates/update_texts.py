"""What to say of a part in which two optimizers differ."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence
from tf2verify.diagnosis.formulas.forms import Found, passable, setting_of
from tf2verify.diagnosis.formulas.update_rules import ROLES
from tf2verify.records.wording import number_text

# Less than that is told in per cent.
_TOLD_AS_TIMES = 1.2
_RULES = {
  'sgd': 'gradient descent',
  'momentum': 'momentum that is multiplied by the learning rate of the step',
  'velocity': "Keras' momentum, which holds each gradient times its own learning rate",
  'adam': 'Adam',
  'nadam': 'Nadam without a schedule of the momentum (as in contrib)',
  'scheduled nadam': "Keras' Nadam, with a schedule of the momentum",
  'adamax': 'AdaMax',
  'rmsprop': 'RMSProp with epsilon within the root',
  'rmsprop, epsilon outside': "legacy Keras' RMSProp with epsilon outside the root",
  'adagrad': 'Adagrad',
  'adadelta': 'Adadelta',
  'ftrl': 'FTRL',
}

# A class of Keras that decays weights also where nothing is passed, and by how much.
_ACCUMULATOR = 'initial_accumulator'
_DECAYS_BY_DEFAULT = 'AdamW'
_DEFAULT_DECAY = 0.004
# Of a gradient g, the learning rate r of the step and the momentum m.
_FORMULAS = {
  'momentum': 'a = m·a + g, w -= r·a',
  'velocity': 'v = m·v - r·g, w += v',
}


def text(
  names: Sequence[str],
  tf1: Found,
  tf2: Found,
  evidence: TrainingEvidence,
  pairs: Sequence[StepPair],
) -> str:
  """Returns what to say of the exchanged parts; '' without any."""
  parts = [_part(name, tf1, tf2, evidence, pairs, len(names) > 1) for name in names]
  if len(parts) < 2:
    return ''.join(parts)
  return f"{len(parts)} changes together turn TF1's step into the port's: " + '; '.join(parts)


def _part(
  name: str,
  tf1: Found,
  tf2: Found,
  evidence: TrainingEvidence,
  pairs: Sequence[StepPair],
  together: bool,
) -> str:
  if name == 'rule':
    return _rule(tf1, tf2, evidence)
  if name == 'start':
    return _start(tf1, tf2, pairs, evidence.number)
  if name == 'decay':
    return _decay(tf1, tf2)
  return _setting(name, tf1, tf2, pairs, together)


def _setting(name: str, tf1: Found, tf2: Found, pairs: Sequence[StepPair], together: bool) -> str:
  one, two = (_value_text(name, found.form.setting(name)) for found in (tf1, tf2))
  alone = '' if together else ', which by itself makes the steps differ'
  if name == 'learning_rate' and (tf1.is_fitted or tf2.is_fitted):
    # A number of this step, which schedules yield: not one to pass.
    return (
      f'the updates are those of a learning rate of {one} in TF1 and of {two} in the port{alone}: '
      'compare the learning rates and schedules of the two optimizers'
    )
  argument = argument_text(name, tf1, tf2)
  said = f'{setting_text(name, tf1, tf2)}{alone}: pass {argument} to {tf2.record.name}'
  if not argument.endswith(f'={one}'):
    said += f', which replaces {one} by its default'
  if name == 'epsilon':
    said += (
      f' (the steps differ {_how_far(pairs)}, most where gradients are small; Keras has other '
      'defaults than TF1)'
    )
  return said


def setting_text(name: str, tf1: Found, tf2: Found) -> str:
  """Returns what a setting is on both sides."""
  one, other = (_value_text(name, found.form.setting(name)) for found in (tf1, tf2))
  return f'{setting_of(tf1.record, name)} is {one} in TF1 and {other} in the port'


def argument_text(name: str, tf1: Found, tf2: Found) -> str:
  """Returns the argument of the port's optimizer with which a setting is that of TF1."""
  passed = _value_text(name, passable(tf2.record, name, tf1.form.setting(name)))
  return f'{setting_of(tf2.record, name)}={passed}'


def _value_text(name: str, value: float) -> str:
  return str(bool(value)) if name in ('nesterov', 'centered') else number_text(value)


def _start(tf1: Found, tf2: Found, pairs: Sequence[StepPair], number: int) -> str:
  found = unlike_slot(tf1, tf2, pairs)
  if found is None:
    return ''
  role, one, other = found
  if number > 1 or np.ptp(one) or np.ptp(other):
    return f"the accumulated {role} differs before step {number}, and explains the port's step"
  start, argument = number_text(one.flat[0]), setting_of(tf2.record, _ACCUMULATOR)
  fix = (
    f'keep {tf1.record.name}, which works in eager mode, or assign {start} to the slot before the '
    'first step'
  )
  given = tf2.record.setting(argument)
  # What an optimizer of its own starts from need not be what it was given.
  if given is not None and np.isclose(other.flat[0], given):
    fix = f'pass {argument}={start}'
  return (
    f'the accumulated {role} starts at {number_text(other.flat[0])} in {tf2.record.name}, at '
    f'{start} in TF1 (the first steps differ {_how_far(pairs)}): {fix}'
  )


def unlike_slot(
  tf1: Found, tf2: Found, pairs: Sequence[StepPair]
) -> tuple[str, np.ndarray, np.ndarray] | None:
  """Returns role and values, before the step, of the first slot that is not the same.

  Keras makes its slots at the first step: before it they are what its rule starts from.
  """
  if not ROLES[tf1.form.rule] & ROLES[tf2.form.rule]:
    return None
  for pair in pairs:
    for role in sorted(pair.tf1.slots.keys() & ROLES[tf2.form.rule]):
      one = pair.tf1.slots[role]
      other = pair.tf2.slots.get(role)
      if other is None:
        other = np.full(one.shape, tf2.form.start(role))
      size = float(np.abs(one).max(initial=0.0))
      if one.shape == other.shape and not np.allclose(one, other, rtol=1e-4, atol=1e-4 * size):
        return role, one, other
  return None


def _rule(tf1: Found, tf2: Found, evidence: TrainingEvidence) -> str:
  one, other = tf1.form.rule, tf2.form.rule
  said = f"the step of TF1 is that of {_RULES[one]}, the port's that of {_RULES[other]}"
  if {one, other} == {'momentum', 'velocity'}:
    return (
      f'momentum in TF1 is {_FORMULAS[one]}, in the port {_FORMULAS[other]} (r: the learning '
      'rate): they agree until the learning rate changes, as it has before step '
      f'{evidence.number}; keep '
      'tf.compat.v1.train.MomentumOptimizer, which works in eager mode, or override update_step '
      '(docs/keras3.md, The momentum of TF1)'
    )
  if {one, other} == {'nadam', 'scheduled nadam'}:
    return f'{said}: no epsilon explains it; write the update of TF1 for the port'
  if {one, other} == {'rmsprop', 'rmsprop, epsilon outside'}:
    return f'{said}: use tf.keras.optimizers.RMSprop, or keep {tf1.record.name}'
  return f'{said}: use one optimizer on both sides'


def _decay(tf1: Found, tf2: Found) -> str:
  rate = tf2.form.setting('learning_rate')
  declared = tf2.record.setting('weight_decay')
  said = f'the weight decay of a step is {tf1.decay:.3g} of each weight in TF1'
  if not tf1.decay:
    added = f'the port subtracts {tf2.decay:.3g} of each weight in addition to its update'
    if not tf2.record.name.endswith(_DECAYS_BY_DEFAULT):
      return f'{added}: pass no weight_decay'
    plain = tf2.record.name.removesuffix('W')
    default = 'which AdamW has by default' if declared == _DEFAULT_DECAY else 'set in AdamW'
    return (
      f'{added}, by weight_decay={number_text(declared or 0)}, {default}: use {plain}, or '
      'weight_decay=0'
    )
  if declared is None:
    return (
      f'{said} and {tf2.decay:.3g} in the port: pass weight_decay={tf1.decay / rate:.3g} (Keras '
      'multiplies it by the learning rate) to an optimizer that has it'
    )
  return (
    f'{said}, and {rate * declared:.3g} in the port: {tf2.record.name} multiplies '
    f'weight_decay={number_text(declared)} by the learning rate {number_text(rate)}: pass '
    f'weight_decay={tf1.decay / rate:.3g}'
  )


def _how_far(pairs: Sequence[StepPair]) -> str:
  ratio = greatest_ratio(pairs)
  if ratio < _TOLD_AS_TIMES:
    return f'by up to {100 * (ratio - 1):.2g} %'
  return f'up to {ratio:.3g} times'


def greatest_ratio(pairs: Sequence[StepPair]) -> float:
  """Returns how many times an element of one side's step is the other's, at the most."""
  greatest = 1.0
  for pair in pairs:
    one, other = np.abs(pair.tf1.update), np.abs(pair.tf2.update)
    clear = (one > pair.allowance) & (other > pair.allowance)
    if clear.any():
      ratios = np.maximum(one[clear] / other[clear], other[clear] / one[clear])
      greatest = max(greatest, float(ratios.max()))
  return greatest
