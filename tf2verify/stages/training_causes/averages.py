"""Moving averages of the weights that follow at another pace."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.records.training import Slot, TrainingRun
from tf2verify.stages.training_causes.cause import About, Cause, listed, number_text
from tf2verify.stages.training_causes.evidence import Evidence

_Array = np.ndarray[Any, Any]
_SHADOW = 'shadow'
_CLOSE = 1e-3


def moving_average(evidence: Evidence) -> Cause | None:
  """Names the decays in effect at the step, as the shadows of both sides show them."""
  late = _late(evidence.tf1, evidence.number)
  late -= evidence.by_tf1(_late(evidence.tf2, evidence.number))
  one, other = _decay(evidence, 'tf1', late), _decay(evidence, 'tf2')
  if one is None or other is None:
    return _missing(evidence)
  if late and abs(one - other) <= _CLOSE:
    return _lag(late)
  if abs(one - other) <= _CLOSE:
    return None
  if evidence.number == 1 and abs(other) <= _CLOSE:
    return Cause(
      'the moving averages of the port start at the values after the first step, those of TF1 at '
      'the values before it: tf.train.ExponentialMovingAverage makes them when it is applied; call '
      'its apply once before the first step',
      frozenset({About.SHADOWS}),
    )
  if evidence.number == 1 and abs(other - 1) <= _CLOSE * abs(one - 1):
    return Cause(
      'after the first step the moving averages of the port are still the values before it: they '
      'are applied before the update, those of TF1 after it; apply them after apply_gradients',
      frozenset({About.SHADOWS}),
    )
  text = (
    f'at step {evidence.number} the moving averages keep {number_text(one)} of themselves in TF1 '
    f'(the decay in effect) and {number_text(other)} in the port'
  )
  ramp = {_ramp(evidence.number - 1), _ramp(evidence.number)}
  # A few digits are all that a float32 average of float32 values shows.
  if any(abs(one - known) <= _CLOSE for known in ramp):
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
  return Cause(text, frozenset({About.SHADOWS}))


def _late(run: TrainingRun, number: int) -> frozenset[str]:
  """Returns the variables whose shadows follow the values from before the step."""
  before, after = (_shadows(slots) for slots in _slots_around(run, number))
  values, values_before = _values(run, number), _values(run, number - 1)
  late = set()
  for name, shadow in after.items():
    value, value_before = values.get(name), values_before.get(name)
    start = before.get(name, value_before)
    known = (start, value, value_before)
    if any(one is None or one.shape != shadow.shape for one in known):
      continue
    start, value, value_before = (np.asarray(one) for one in known)
    if number == 1:  # both are then the start, and the shadow rests
      follows = np.array_equal(shadow, start) and np.array_equal(start, value_before)
    else:
      follows = _follows(shadow, start, value_before)
    if follows and not _follows(shadow, start, value) and not np.array_equal(value, value_before):
      late.add(name)
  return frozenset(late)


def _follows(shadow: _Array, start: _Array, value: _Array) -> bool:
  """Tells whether a shadow has moved towards a value by one share in all elements."""
  moved, way = shadow.astype(np.float64) - start, value.astype(np.float64) - start
  size = float(np.sum(way * way))
  share = float(np.sum(moved * way)) / size if size else 0.0
  room = _CLOSE * np.abs(way).max(initial=0.0) + 4 * np.spacing(np.abs(shadow))
  return share > _CLOSE and bool(np.all(np.abs(moved - share * way) <= room))


def _lag(late: frozenset[str]) -> Cause:
  return Cause(
    f'TF1 averages the values of {listed(sorted(late))} from before each step, the port those '
    'after it: variables that are made within an RNN (dynamic_rnn, static_rnn) have a caching '
    'device, and are read once, at the start of the step, so that ExponentialMovingAverage runs '
    'one step behind for them; average what they were before apply_gradients',
    frozenset({About.SHADOWS}),
    late,
  )


def _missing(evidence: Evidence) -> Cause | None:
  tf1 = sorted(slot.variable for slot in evidence.steps[0].slots if slot.role == _SHADOW)
  if not tf1 or any(slot.role == _SHADOW for slot in evidence.steps[1].slots):
    return None
  return Cause(
    f'TF1 keeps moving averages of {listed(tf1)}, the port keeps none: apply a '
    'tf.train.ExponentialMovingAverage of its own after each step, or use_ema of the optimizer',
    frozenset({About.SHADOWS}),
  )


def _decay(evidence: Evidence, side: str, without: frozenset[str] = frozenset()) -> float | None:
  """Returns the decay that all shadows of a side share; None where there is no one decay."""
  run = evidence.tf1 if side == 'tf1' else evidence.tf2
  kept = gone = 0.0
  for left, right in _distances(run, evidence.number, without):
    kept += float(np.sum(left * right))
    gone += float(np.sum(right * right))
  if not gone:
    return None
  decay = kept / gone
  for left, right in _distances(run, evidence.number, without):
    if np.any(np.abs(left - decay * right) > _CLOSE * np.abs(right).max(initial=0.0)):
      return None
  return decay


def _distances(
  run: TrainingRun, number: int, without: frozenset[str]
) -> Iterator[tuple[_Array, _Array]]:
  """Yields how far each shadow is from its variable after the step, and was before it."""
  before, after = (_shadows(slots) for slots in _slots_around(run, number))
  values, values_before = _values(run, number), _values(run, number - 1)
  for name, shadow in after.items():
    value = None if name in without else values.get(name)
    # One that is made in its first step starts at the value before it.
    start = before.get(name, values_before.get(name))
    if value is not None and start is not None and value.shape == shadow.shape == start.shape:
      wide = value.astype(np.float64)
      yield shadow - wide, start - wide


def _ramp(updates: int) -> float:
  """`tf.train.ExponentialMovingAverage`, below its decay."""
  return (1 + updates) / (10 + updates)


def _slots_around(run: TrainingRun, number: int) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
  before = run.steps[number - 2].slots if number > 1 else run.slots_before
  return before, run.steps[number - 1].slots


def _shadows(slots: tuple[Slot, ...]) -> dict[str, _Array]:
  return {s.variable: s.value for s in slots if s.role == _SHADOW}


def _values(run: TrainingRun, number: int) -> dict[str, _Array]:
  """Returns the variables after a step; before the first one for 0."""
  records = run.steps[number - 1].variables if number else run.values_before
  return {r.name: r.value for r in records if r.value is not None}
