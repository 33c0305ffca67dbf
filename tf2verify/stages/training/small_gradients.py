"""Further steps at gradients so small that no usual clipping reaches them.

A clipping by norm that every step reaches hides what gradients are multiplied by before it: a mean
of accumulated gradients that is a sum in the port, a scaled loss.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tf2verify.diagnosis.rules.wording import listed
from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.gradient_clips import JOINT, greatest_sizes, is_close, norm
from tf2verify.records.training import TrainingStep
from tf2verify.stages.training.both_sides import BothSides
from tf2verify.stages.training.step_quantities import UPDATE, QuantityPair, Steps

# The global norm of the gradients in these steps. Clippings are to 0.1 and more.
_NORM = 0.02
# So many, since gradients may be added up over several.
_STEPS = 4
_MOST_ELEMENTS = 5_000_000
# Of the greatest element of what a step adds, which has the momentum of greater gradients in it.
_APART = 2e-3
# In units in the last place of a variable, the rounding of what a step adds to it.
_ULPS = 16.0
_SHOWN = 3
# Returns what of a pair is more than rounding; None for nothing.
Left = Callable[[QuantityPair], QuantityPair | None]


def small_gradients(both: BothSides, left: Left) -> list[str]:
  """Returns what to say of steps that agree, and would not at small gradients.

  Args:
    both: the steps of both sides, which agree.
    left: returns what of a pair is more than rounding.
  """
  before = both.so_far()
  one, other = (run.steps[-1] for run in (before.tf1, before.tf2))
  size = greatest_sizes(one.gradients)[JOINT] if one.gradients and other.gradients else 0.0
  if not size > 2 * _NORM or not (_may_clip(one) or _may_clip(other)) or _is_large(one):
    return []
  factor = 2.0 ** round(math.log2(_NORM / size))
  try:
    for _ in range(_STEPS):
      after = both.take_scaled(factor)
      if found := updates_apart(before, after, left):
        return [
          f'all steps agree, and a further one at gradients that are {factor:.1g} times as large '
          f'does not: what is added to {listed(found, _SHOWN)} differs; compare what gradients are '
          'multiplied by before they are clipped, and the clipping'
        ]
      before = after
  except (NotApplicable, UserCodeError):
    return []  # what cannot be taken shows nothing
  return []


def _may_clip(step: TrainingStep) -> bool:
  """Returns whether an update may be given something else than the gradients."""
  applied = {record.name: record.value for record in step.applied_gradients}
  known = [(r.value, applied.get(r.name)) for r in step.gradients if r.value is not None]
  return any(value is None or not is_close(norm(value), norm(raw)) for raw, value in known)


def _is_large(step: TrainingStep) -> bool:
  return sum(r.value.size for r in step.variables if r.value is not None) > _MOST_ELEMENTS


def updates_apart(before: Steps, after: Steps, left: Left, share: float = _APART) -> list[str]:
  """Returns the variables to which both sides add something else in the last step.

  Args:
    before: the steps before it.
    after: the steps with it.
    left: returns what of a pair is more than rounding.
    share: of the greatest element that TF1 adds; what differs by less counts as the same.
  """
  earlier = _updates(before)
  values = {record.name: record.value for record in after.tf1.steps[-1].variables}
  found = []
  for name, pair in _updates(after).items():
    start, known = earlier.get(name), left(pair)
    if start is None or known is None:
      continue
    one, other = (
      None if now is None or then is None or now.shape != then.shape else now - then
      for now, then in ((known.tf1, start.tf1), (known.tf2, start.tf2))
    )
    if one is None or other is None or one.shape != other.shape:
      continue
    size = float(np.max(np.abs(one), initial=0.0))
    apart = float(np.max(np.abs(one - other), initial=0.0))
    if apart > share * size + _rounding(values.get(name)):
      found.append(name)
  return found


def _updates(steps: Steps) -> Mapping[str, QuantityPair]:
  pairs = steps.pairs(len(steps.tf1.steps))
  return {pair.variable: pair for pair in pairs if pair.quantity == UPDATE}


def _rounding(value: np.ndarray | None) -> float:
  if value is None or value.dtype.kind != 'f':
    return 0.0
  return float(_ULPS * np.finfo(value.dtype).eps * np.max(np.abs(value), initial=0.0))
