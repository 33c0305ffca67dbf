"""Moving averages of the weights that follow at another pace."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence
from tf2verify.diagnosis.rules.training.resting_averages import (
  at_rest,
  rests_there,
  shadows_of,
  slots_around,
  values_after,
)
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.training import TrainingRun
from tf2verify.records.wording import listed, number_text
from tf2verify.relation.shadows import SHADOW

_Array = np.ndarray[Any, Any]
# Units in the last place of a float32 that a value and its average are off.
_STORED = 4.0 * 2.0**-23
_CLOSE = 1e-3
# Of the averages that two calls of the model move: elements that move so far beside the others, how
# far two calls move them at least, and in how many elements that has to be so.
_CLEAR = 0.1
_LEAST_FACTOR = 1.3
_NEAR = 0.1
# Of averages at another pace: how far factors are off, and those that are none of a decay.
_PACE = 0.01
_ALIKE = 0.9
_MOST_FACTOR = 200.0
# Averages that start at zero are less than this of their variables after a step.
_MOST_SHARE = 0.95
_MOST = 0.7


def called_again(evidence: TrainingEvidence) -> Cause | None:
  """The step of the port moves the averages of the model as a second call in training does.

  A batch norm moves an average by 1 - m of its distance from that of the batch. Where the
  variables agree, two calls on one batch move it (1 - m) + m (1 - m) of it: 1 + m times as far.
  With another momentum the stages before would have failed. Dropout, or a call after the update,
  makes the second batch a little different.
  """
  if evidence.number > 1 or not evidence.states or any(map(_moves_otherwise, evidence.moves)):
    return None
  differing = [pair for pair in evidence.states if pair.differs]
  ratios = []
  for pair in differing:
    moved = np.abs(pair.tf1.update)
    clear = moved > max(
      _CLEAR * float(moved.max(initial=0.0)), 10.0 * float(np.max(pair.allowance))
    )
    if clear.any():
      ratios.append(pair.tf2.update[clear] / pair.tf1.update[clear])
  if not ratios:
    return None
  found = np.concatenate([np.ravel(ratio) for ratio in ratios])
  factor = float(np.median(found))
  if not _LEAST_FACTOR < factor < 2.0 or np.mean(np.abs(found - factor) < _NEAR) < _MOST:
    return None
  names = [pair.name for pair in differing]
  return Cause(
    f'the step of the port changes {listed(names)} {factor:.3g} times as much as that of TF1, as a '
    'second call of the model in training mode does (1 + momentum): call it once in a step, and '
    'for metrics or a summary with training=False, or use the outputs of the first call',
  )


def paced_otherwise(evidence: TrainingEvidence) -> Cause | None:
  """The averages of the model follow at another pace in one step, after others that agree.

  An average moves by 1 - decay of its distance from what it follows. From the same values towards
  the same ones, both sides move by one factor in all elements: that of 1 - decay.
  """
  differing = [pair for pair in evidence.states if pair.differs]
  if evidence.number == 1 or not differing:
    return None
  ratios: list[_Array] = []
  for pair in differing:
    moved = np.abs(pair.tf1.update)
    clear = moved > max(_CLEAR * float(moved.max(initial=0.0)), 1e3 * float(np.max(pair.allowance)))
    ratios.append(np.ravel(pair.tf2.update[clear] / pair.tf1.update[clear]))
  found = np.concatenate(ratios)
  factor = float(np.median(found)) if found.size else 1.0
  if not 1 / _MOST_FACTOR < factor < _MOST_FACTOR or abs(factor - 1.0) < _PACE:
    return None
  if np.mean(np.abs(found - factor) < _PACE * factor) < _ALIKE:
    return None
  names = listed([pair.name for pair in differing])
  before = 'step' if evidence.number == 2 else f'{evidence.number - 1} steps'
  return Cause(
    f'the moving averages have a different decay from step {evidence.number} on: 1 - decay is '
    f'{factor:.4g} times that of TF1 there, and the same in the {before} before. The decay depends '
    'on the step: compare its schedule, the count that it reads (before or after the step is '
    'counted), and whether decay weighs the old value, and 1 - decay the new one (exchanging '
    f'these two gives this factor if the decay of TF1 is {factor / (1 + factor):.4g})',
    f'{names}: in step {evidence.number} the port changes them {factor:.4g} times as much as TF1',
  )


def _moves_otherwise(pair: StepPair) -> bool:
  """Returns whether an update differs by more than what a few elements' noise may be."""
  if not pair.differs:
    return False
  largest = float(np.abs(pair.tf1.update).max(initial=0.0))
  return float(np.abs(pair.tf1.update - pair.tf2.update).max(initial=0.0)) > _CLOSE * largest


def moving_average(evidence: TrainingEvidence) -> Cause | None:
  """Names the decays in effect at the step, as the shadows of both sides show them."""
  found = _zero_start(evidence) or at_rest(evidence)
  if found is not None:
    return found
  late, late_port = _late(evidence, 'tf1'), _late(evidence, 'tf2')
  one, other = _decay(evidence, 'tf1', late), _decay(evidence, 'tf2', late_port)
  if one is not None and other is None and _start_after(evidence):
    other = 0.0
  if one is None or other is None:
    return _missing(evidence)
  late -= evidence.by_tf1(late_port)
  if late and abs(one - other) <= _CLOSE:
    return _lag(late)
  if abs(one - other) <= _CLOSE:
    return None
  found = _from_the_start(evidence, one, other) or rests_there(evidence, one, other)
  if found is not None:
    return found
  text = (
    f'at step {evidence.number} the decay of the moving averages (EMA) is {number_text(one)} in '
    f'TF1 (the decay in effect) and {number_text(other)} in the port'
  )
  ramp = {_ramp(evidence.number - 1), _ramp(evidence.number)}
  # Of steps that update nothing, as those that gather gradients, neither may count any.
  counts = [n for n in range(evidence.number) if abs(_ramp(n) - min(one, other)) <= _CLOSE]
  if counts and abs(_ramp(counts[0] + 1) - max(one, other)) <= _CLOSE:
    ahead = 'TF1' if one > other else 'the port'
    text += (
      ': both are min(decay, (1 + n) / (10 + n)), with an n = num_updates that is greater by 1 in '
      f'{ahead}: the step is counted before the average on one side, after it on the other'
    )
  elif any(abs(one - known) <= _CLOSE for known in ramp):
    text += (
      ': the decay of TF1 is min(decay, (1 + n) / (10 + n)) with n = num_updates; pass '
      'num_updates=optimizer.iterations to a tf.train.ExponentialMovingAverage in place of use_ema '
      'or a fixed decay'
    )
  elif any(abs(other - known) <= _CLOSE for known in ramp):
    text += (
      ': that of the port is min(decay, (1 + n) / (10 + n)) with n = num_updates, which TF1 does '
      'not pass: leave num_updates out'
    )
  else:
    text += f': pass a decay of {number_text(round(one, 4))} to the average of the port'
  return Cause(text, explains=(About.SHADOWS,))


def _from_the_start(evidence: TrainingEvidence, one: float, other: float) -> Cause | None:
  """Names averages that start elsewhere, or are applied before the update, by their first step."""
  if not _is_first_move(evidence):
    return None
  if abs(other) <= _CLOSE:
    return Cause(
      'the moving averages of the port start at the values after the first step, those of TF1 at '
      'the values before it: tf.train.ExponentialMovingAverage makes them when it is applied; call '
      'its apply once before the first step',
      explains=(About.SHADOWS,),
    )
  if abs(other - 1) <= _CLOSE * abs(one - 1):
    return Cause(
      'after the first update the moving averages of the port are still the values before it: they '
      'are applied before the update, those of TF1 after it; apply them after apply_gradients',
      explains=(About.SHADOWS,),
    )
  if abs(one - 1) <= _CLOSE * abs(other - 1):
    return Cause(
      'after the first update the moving averages of TF1 are still the values before it, those of '
      'the port are not: TF1 applies them before the update, or nothing orders the two; apply them '
      'before apply_gradients if the model in production has that',
      explains=(About.SHADOWS,),
    )
  return None


def _is_first_move(evidence: TrainingEvidence) -> bool:
  """Returns whether all averages are still their variables before a step: none has moved yet."""
  if evidence.number == 1:
    return True
  run = evidence.tf1
  before, _ = slots_around(run, evidence.number)
  values, shadows = values_after(run, evidence.number - 1), shadows_of(before)
  known = [(shadow, values[name]) for name, shadow in shadows.items() if name in values]
  return bool(known) and all(np.allclose(*pair, rtol=1e-6, atol=0.0) for pair in known)


def _zero_start(evidence: TrainingEvidence) -> Cause | None:
  """Names the side whose averages start at zero: a step later, all are a share of the variables."""
  shares = [_share_of_values(run) for run in (evidence.tf1, evidence.tf2)]
  if evidence.number > 1 or (shares[0] is None) == (shares[1] is None):
    return None
  if shares[1] is not None:
    return Cause(
      'the moving averages of the port start at 0, those of TF1 at the values of the variables: '
      f'after the first step they are {number_text(round(shares[1], 4))} of the variables; make '
      'them with the values that the variables have',
      explains=(About.SHADOWS,),
    )
  assert shares[0] is not None
  return Cause(
    'the moving averages of TF1 start at 0, those of the port do not: after the first step they '
    f'are {number_text(round(shares[0], 4))} of the variables (tf.train.ExponentialMovingAverage '
    'does that to tensors, not to variables); start at 0 in the port too',
    explains=(About.SHADOWS,),
  )


def _share_of_values(run: TrainingRun) -> float | None:
  """Returns by what number all shadows are their variables after the first step, if it is one."""
  shadows, values = shadows_of(run.steps[0].slots), values_after(run, 1)
  pairs = [
    (shadow.astype(np.float64), values[name].astype(np.float64))
    for name, shadow in shadows.items()
    if name in values and values[name].shape == shadow.shape
  ]
  whole = sum(float(np.sum(value * value)) for _, value in pairs)
  if not whole:
    return None
  share = sum(float(np.sum(shadow * value)) for shadow, value in pairs) / whole
  apart = (
    np.abs(s - share * v).max(initial=0.0) - _CLOSE * np.abs(v).max(initial=0.0) for s, v in pairs
  )
  return share if 0 < share < _MOST_SHARE and all(one <= 0 for one in apart) else None


def _late(evidence: TrainingEvidence, side: str) -> frozenset[str]:
  """Returns the variables whose shadows, unlike others, follow the values from before a step.

  Their first step leaves such shadows where they start, although the variables move.
  """
  run = evidence.tf1 if side == 'tf1' else evidence.tf2
  if evidence.number != 1:
    return frozenset()
  after, before = (shadows_of(slots) for slots in (run.steps[0].slots, run.slots_before))
  values, values_before = values_after(run, 1), values_after(run, 0)
  moving = {
    name: values_before[name]
    for name in after.keys() & values.keys() & values_before.keys()
    if not np.array_equal(values[name], values_before[name])
  }
  late = frozenset(
    name
    for name, start in moving.items()
    if np.array_equal(before.get(name, start), start) and np.array_equal(after[name], start)
  )
  return late if len(late) < len(moving) else frozenset()


def _lag(late: frozenset[str]) -> Cause:
  return Cause(
    f'TF1 averages the values of {listed(sorted(late))} from before each step, the port those '
    'after it: variables that are made within an RNN (dynamic_rnn, static_rnn) have a caching '
    'device, and are read once, at the start of the step, so that ExponentialMovingAverage runs '
    'one step behind for them; average what they were before apply_gradients',
    explains=(About.SHADOWS,),
    variables=tuple(sorted(late)),
  )


def _missing(evidence: TrainingEvidence) -> Cause | None:
  tf1 = sorted(slot.variable for slot in evidence.steps[0].slots if slot.role == SHADOW)
  if not tf1 or any(slot.role == SHADOW for slot in evidence.steps[1].slots):
    return None
  words = sorted({word for word, _ in evidence.tf2.not_copied if word})
  if evidence.tf2.not_copied:
    called = f' ({listed(words)})' if words else ''
    return Cause(
      f'TF1 keeps moving averages of {listed(tf1)}; what the port keeps in their place{called} are '
      'the variables themselves, so that it has no averages: copy the values, since '
      'keras.Variable(v.value) shares that of v, and keras.Variable(v) does not',
      explains=(About.SHADOWS,),
    )
  return Cause(
    f'TF1 keeps moving averages of {listed(tf1)}, the port keeps none, neither in what '
    'make_tf2_optimizer returns nor in variables that its step makes: apply a '
    'tf.train.ExponentialMovingAverage of its own after each step, or use_ema of the optimizer',
    explains=(About.SHADOWS,),
  )


def _start_after(evidence: TrainingEvidence) -> bool:
  """Returns whether the port makes its averages after the first step, of the values of then."""
  after, values = shadows_of(evidence.steps[1].slots), values_after(evidence.tf2, evidence.number)
  return (
    evidence.number == 1
    and any(
      not _is_as_stored(values[name], start)
      for name, start in values_after(evidence.tf2, 0).items()
      if name in after
    )
    and all(name in values and _is_as_stored(after[name], values[name]) for name in after)
  )


def _is_as_stored(one: _Array, other: _Array) -> bool:
  """Returns whether two values are the same, but for rounding to float32."""
  if one.shape != other.shape:
    return False
  apart = np.abs(one.astype(np.float64) - other).max(initial=0.0)
  return bool(apart <= _STORED * np.abs(other).max(initial=0.0))


def _decay(evidence: TrainingEvidence, side: str, without: frozenset[str]) -> float | None:
  """Returns the decay that all shadows of a side share; None where there is no one decay."""
  run = evidence.tf1 if side == 'tf1' else evidence.tf2
  kept = gone = 0.0
  for left, right, _ in _distances(run, evidence.number, without):
    kept += float(np.sum(left * right))
    gone += float(np.sum(right * right))
  if not gone:
    return None
  decay = kept / gone
  known = _distances(run, evidence.number, without)
  if not any(np.abs(right).max(initial=0.0) * _CLOSE >= stored for _, right, stored in known):
    return None  # where nothing moves by more than rounding, every decay would do
  for left, right, stored in _distances(run, evidence.number, without):
    allowance = _CLOSE * np.abs(right).max(initial=0.0) + stored
    if np.any(np.abs(left - decay * right) > allowance):
      return None
  return decay


def _distances(
  run: TrainingRun, number: int, without: frozenset[str]
) -> Iterator[tuple[_Array, _Array, float]]:
  """Yields how far each shadow is from its variable after the step, and was before it.

  And how far storing them may put that off.
  """
  before, after = (shadows_of(slots) for slots in slots_around(run, number))
  values, values_before = values_after(run, number), values_after(run, number - 1)
  for name, shadow in after.items():
    value = None if name in without else values.get(name)
    # One that is made in its first step starts at the value before it.
    start = before.get(name, values_before.get(name))
    if value is not None and start is not None and value.shape == shadow.shape == start.shape:
      wide = value.astype(np.float64)
      yield shadow - wide, start - wide, _STORED * float(np.abs(wide).max(initial=0.0))


def _ramp(updates: int) -> float:
  """`tf.train.ExponentialMovingAverage`, below its decay."""
  return (1 + updates) / (10 + updates)
