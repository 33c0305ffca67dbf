"""Further steps at gradients so small that no usual clipping reaches them.

A clipping by norm that every step reaches hides what gradients are multiplied by before it: a mean
of accumulated gradients that is a sum in the port, a scaled loss.
"""

import math

from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.gradient_clips import JOINT, greatest_sizes, is_close, norm
from tf2verify.records.training import TrainingStep
from tf2verify.records.wording import listed
from tf2verify.stages.training.steps.both_sides import BothSides
from tf2verify.stages.training.steps.updates_apart import Left, updates_apart

# The global norm of the gradients in these steps. Clippings are to 0.1 and more.
_NORM = 0.02
# So many, since gradients may be added up over several.
_STEPS = 4
_MOST_ELEMENTS = 5_000_000
_SHOWN = 3


def small_gradients(both: BothSides, left: Left) -> list[str]:
  """Returns what to say of steps that agree, and would not at small gradients.

  Args:
    both: the steps of both sides, which agree.
    left: returns what of a pair is more than rounding.
  """
  before = both.now()
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
