"""What the steps that are taken do not reach: later learning rates, and steps after they change.

A schedule may stay as it is for thousands of steps. Both sides are asked for the rate at counts far
beyond; and where the rate changes there alone, one more step is taken at half the rate, which shows
what an optimizer makes of a change: whether its momentum holds gradients, or steps.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.rules.training.counts import RESTING
from tf2verify.diagnosis.rules.updates.later_rates import (
  ATOL,
  COUNTS,
  RTOL,
  are_same,
  counts_that_tell,
  first_apart,
  later_rates,
  told,
)
from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.tolerance import Tolerance, ToleranceTable
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Difference
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.wording import number_text
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.training.steps.both_sides import BothSides
from tf2verify.stages.training.steps.quantities import LEARNING_RATE, UPDATE, QuantityPair, Steps

_MORE_STEPS = 'training_steps_to_take takes more steps'
_RATES_RUN = f'step counts up to {COUNTS[-1]:,}'
STEP_RUN = 'a further step, at half the learning rate'
_FACTOR = 0.5
# What a rate changes by at least where the steps are said to have seen it change.
_CHANGE = 0.01
# Of the greatest element of what a step adds: no rounding, of which nothing is measured here.
_APART = 0.01

_OF_RESTING = f'the steps of TF1 do not count{RESTING}, whereas the rate of the port changes later'

# Returns what a comparison leaves of a pair; None for nothing.
_Left = Callable[[QuantityPair], QuantityPair | None]
# Returns the causes that the numbers of a step show.
_Explain = Callable[[Steps, int], Sequence[Cause]]


@dataclasses.dataclass(frozen=True)
class Later:
  """What is said of later steps."""

  hints: tuple[tuple[str, str], ...] = ()  # by the run of a difference, its cause
  # What else a blind spot says if the port never tells its rate: that of TF1 changes later; or ''.
  of_unknown_rates: str = ''

  def hint(self, difference: Difference) -> str:
    """Returns the cause of a difference, or what is known of it already."""
    return dict(self.hints).get(difference.run) or difference.hint

  def also(self, hints: Iterable[tuple[str, str]]) -> 'Later':
    """Returns the same with further causes."""
    return dataclasses.replace(self, hints=(*self.hints, *hints))


def compare_later(both: BothSides, left: _Left, explain: _Explain, comparison: Comparison) -> Later:
  """Compares later rates, and a step after a change, where both sides have a schedule.

  Args:
    both: both sides, whose steps agree.
    left: returns what of a pair is more than rounding.
    explain: names the causes of what differs in a step.
    comparison: takes the findings.
  """
  try:
    tf1 = both.rates_of_tf1(COUNTS)
  except NotApplicable as reason:
    return _compare_others(both, str(reason), comparison, is_known=False)
  try:
    known = both.rates(counts_that_tell(both.rates))
  except (NotApplicable, UserCodeError) as reason:
    said, unknown = _unseen(both, tf1)
    is_told = not said or _has_no_rates(both)
    comparison.blind_spots += [] if is_told else [f'{said}; {unknown}: {reason}; {_MORE_STEPS}']
    found = _compare_others(both, str(reason), comparison)
    more = f'; {said}; {_MORE_STEPS}' if said and is_told else ''
    return dataclasses.replace(found, of_unknown_rates=more)
  hints: list[tuple[str, str]] = []
  key = TensorKey(LEARNING_RATE, '(at later steps)', _RATES_RUN)
  ones, others = (np.asarray(side, np.float32) for side in told(*known))
  greatest = float(np.max(np.abs(ones), initial=0.0))
  allowed = ToleranceTable((('float32', Tolerance(RTOL, ATOL * greatest)),))
  comparison.tensors(key, ones, others, allowed)
  if not all(are_same(*known)):
    rests = both.paces.resting is not None
    cause = _OF_RESTING if rests else later_rates(both.rates) or first_apart(both.rates)
    return Later(((_RATES_RUN, cause),))
  further = _compare_others(both, 'it has several optimizers', comparison)
  if further.hints:
    return further
  if _changes(tf1) and not _changes(_taken(both)):
    hints += _step_after_change(both, left, explain, comparison)
  return Later(tuple(hints))


def _compare_others(
  both: BothSides, reason: str, comparison: Comparison, is_known: bool = True
) -> Later:
  """Compares rates of the port that no optimizer of tf1 has, where it tells all of its own.

  The steps that were taken agree, so a constant rate of tf1 is what the port has had in these.

  Args:
    both: both sides.
    reason: why other rates are not known.
    comparison: takes the findings.
    is_known: whether the rate of tf1's first optimizer is, at any count.
  """
  try:
    schedules = both.rates_of_port()
  except UserCodeError as error:
    comparison.blind_spots.append(
      f'a learning rate of the port is not known at later steps: {error}'
    )
    return Later()
  hints: list[tuple[str, str]] = []
  for now, *rates in schedules:
    taken = len(both.so_far().tf1.steps)
    later = [(n, r) for n, r in zip(COUNTS, rates, strict=True) if n > taken]
    far = [(n, r) for n, r in later if abs(r - now) > _CHANGE * abs(now)]
    if not far:
      continue
    count, rate = far[0]
    said = (
      f'{number_text(now)} in the last step that was taken and {number_text(rate)} at step count'
    )
    is_constant = both.has_constant_rates
    if not is_constant and not (is_known and both.tells_all_rates):
      comparison.blind_spots.append(
        f'a learning rate of the port is {said} {count:,}; that of TF1 is not known there: '
        f'{reason}; training_steps_to_take takes more steps'
      )
      continue
    key = TensorKey(LEARNING_RATE, f'(at later steps, {number_text(now)} so far)', _RATES_RUN)
    others = np.asarray([r for _, r in later], np.float32)
    allowed = ToleranceTable((('float32', Tolerance(RTOL, ATOL * abs(now))),))
    comparison.tensors(key, np.full_like(others, now), others, allowed)
    text = f'a learning rate of the port is {said} {count:,}, and no optimizer of TF1 has that'
    if is_constant:
      text = (
        f'the learning rates of TF1 are constant, and one of the port is {said} {count:,}: give '
        'the optimizer of the port the number in place of the schedule'
      )
    hints.append((_RATES_RUN, text))
  return Later(tuple(hints))


def _step_after_change(
  both: BothSides, left: _Left, explain: _Explain, comparison: Comparison
) -> Iterator[tuple[str, str]]:
  before = both.so_far()
  try:
    after = both.take_at_rate(_FACTOR)
  except (NotApplicable, UserCodeError) as reason:
    comparison.blind_spots.append(
      'the learning rate changes only after the steps that were taken, and how the optimizers '
      f'apply the change was not compared: {reason}; training_steps_to_take takes more steps'
    )
    return
  number = len(after.tf1.steps)
  earlier = {p.variable: p for p in before.pairs(number - 1) if p.quantity == UPDATE}
  found, names = len(comparison.differences), dict(after.names)
  for pair in after.pairs(number):
    start, known = earlier.get(pair.variable), left(pair)
    if pair.quantity != UPDATE or start is None or known is None:
      continue
    one, other = _added(known.tf1, start.tf1), _added(known.tf2, start.tf2)
    if one is None or other is None:
      continue
    port = names.get(pair.variable, pair.variable)
    key = TensorKey(UPDATE, pair.subject, STEP_RUN, '' if port == pair.variable else port)
    size = float(np.max(np.abs(one), initial=0.0))
    allowed = ToleranceTable(((one.dtype.name, Tolerance(_APART, _APART * size)),))
    comparison.tensors(key, one, other, allowed)
  if len(comparison.differences) > found:
    text = next((cause.text for cause in explain(after, number)), '')
    yield STEP_RUN, text


def _added(after: np.ndarray | None, before: np.ndarray | None) -> np.ndarray | None:
  """Returns what a step adds to the change since the start; None where it is not known."""
  if after is None or before is None or after.shape != before.shape:
    return None
  added: np.ndarray = after - before
  return added


def _unseen(both: BothSides, tf1: Sequence[float]) -> tuple[str, str]:
  """Returns what to say of rates of TF1 that change later alone, and of the port's not being known.

  Both are '' if those of TF1 do not change later.
  """
  taken = _taken(both)
  later = [(n, r) for n, r in zip(COUNTS, tf1, strict=True) if n > len(taken)]
  far = [(n, r) for n, r in later if taken and abs(r - taken[-1]) > _CHANGE * abs(taken[-1])]
  if not far:
    return '', ''
  count, rate = far[0]
  where, also = 'in the steps that were taken', ', nor how the optimizers apply the change'
  if _changes(taken):
    where, also = 'in the last step that was taken', ''
  return (
    f'the learning rate of TF1 is {number_text(taken[-1])} {where} and {number_text(rate)} at step '
    f'count {count:,}',
    f'that of the port is not known there{also}',
  )


def _has_no_rates(both: BothSides) -> bool:
  return all(step.learning_rate is None for step in both.so_far().tf2.steps)


def _taken(both: BothSides) -> list[float]:
  steps = both.so_far().tf1.steps
  return [step.learning_rate for step in steps if step.learning_rate is not None]


def _changes(rates: Sequence[float]) -> bool:
  greatest = max(map(abs, rates), default=0.0)
  return bool(rates) and max(rates) - min(rates) > _CHANGE * greatest
