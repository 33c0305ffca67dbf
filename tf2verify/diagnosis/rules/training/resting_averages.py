"""Moving averages of the weights that a step leaves as they are."""

from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.training import Slot, TrainingRun
from tf2verify.records.wording import listed
from tf2verify.relation.shadows import SHADOW, SHADOW_OF

_Array = np.ndarray[Any, Any]
_CLOSE = 1e-3


def at_rest(evidence: TrainingEvidence) -> Cause | None:
  """Names averages that no step of the port changes, though their variables and TF1's move."""
  later = range(evidence.number + 1, len(evidence.tf2.steps) + 1)
  known = [n for n in later if evidence.tf2.steps[n - 1].slots]  # most steps keep no arrays
  rests = [_resting(evidence.tf2, n) for n in (evidence.number, *known)]
  resting = evidence.by_tf1(set.intersection(*rests))
  moving = shadows_of(evidence.steps[0].slots).keys() - _resting(evidence.tf1, evidence.number)
  moved = evidence.moved_later[1]
  names = [n for n, _ in evidence.pairs if n in resting & moving and SHADOW_OF + n not in moved]
  if not names or not later:
    return None  # averages that are applied before the update rest in the first step alone
  elements = sum(shadows_of(evidence.steps[0].slots)[name].size for name in names)
  others = len(evidence.by_tf1(shadows_of(evidence.steps[1].slots))) > len(names)
  return Cause(
    f'no step of the port updates the moving averages of {listed(names)}, those of TF1 follow '
    f'their variables{": the port updates its other averages only" if others else ""}; give apply '
    '(or what updates the averages by hand) these variables in each step as well',
    explains=(About.SHADOWS,),
    variables=tuple(names),
    numbers=f'{elements:,} elements of the averages are unchanged after {len(later) + 1} steps',
  )


def rests_there(evidence: TrainingEvidence, one: float, other: float) -> Cause | None:
  """Names the side that leaves all averages as they are in a step, after others that agree.

  Args:
    evidence: of the step.
    one: the decay of TF1 in effect there.
    other: that of the port.
  """
  tf1, port = (evidence.tf1, 'TF1', one), (evidence.tf2, 'the port', other)
  for (run, who, decay), (_, whose, moving) in ((port, tf1), (tf1, port)):
    if evidence.number == 1 or abs(decay - 1) > _CLOSE * abs(moving - 1):
      continue
    rests = _resting(run, evidence.number)
    if rests != shadows_of(run.steps[evidence.number - 1].slots).keys():
      continue
    before, after = (values_after(run, evidence.number - back) for back in (1, 0))
    is_idle = all(np.array_equal(before[name], after[name]) for name in rests)
    idle = ', in which it updates no variable' if is_idle else ''
    is_port = run is evidence.tf2
    advice = 'update them in every step' if is_port else 'leave them as they are in such steps'
    if is_idle:
      advice += (
        f', {"outside" if is_port else "inside"} of what decides whether gradients are applied'
      )
    return Cause(
      f'{who} leaves its moving averages (EMA) as they are at step {evidence.number}{idle}, those '
      f'of {whose} follow their variables there: {advice}',
      explains=(About.SHADOWS,),
    )
  return None


def _resting(run: TrainingRun, number: int) -> set[str]:
  """Returns variables whose averages a step leaves as they were, and away from the variables."""
  before, after = (shadows_of(slots) for slots in slots_around(run, number))
  values, values_before = values_after(run, number), values_after(run, number - 1)
  starts = {**values_before, **before}
  return {
    name
    for name, shadow in after.items()
    if name in values
    and name in starts
    and np.array_equal(shadow, starts[name])
    and not np.array_equal(shadow, values[name])
  }


def slots_around(run: TrainingRun, number: int) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
  """Returns the slots before a step and after it."""
  before = run.steps[number - 2].slots if number > 1 else run.slots_before
  return before, run.steps[number - 1].slots


def shadows_of(slots: tuple[Slot, ...]) -> dict[str, _Array]:
  """Returns the averages among slots, by the names of their variables."""
  return {s.variable: s.value for s in slots if s.role == SHADOW}


def values_after(run: TrainingRun, number: int) -> dict[str, _Array]:
  """Returns the variables after a step; before the first one for 0."""
  records = run.steps[number - 1].variables if number else run.values_before
  return {r.name: r.value for r in records if r.value is not None}
