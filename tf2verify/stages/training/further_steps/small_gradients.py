"""Further steps at gradients so small that no usual clipping reaches them.

A clipping by norm that every step reaches hides what gradients are multiplied by before it: a mean
of accumulated gradients that is a sum in the port, a scaled loss.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.gradient_clips import JOINT, greatest_sizes, is_close, norm
from tf2verify.records.training import TrainingStep
from tf2verify.records.wording import listed
from tf2verify.stages.training.steps.both_sides import BothSides
from tf2verify.stages.training.steps.quantities import GRADIENT, UPDATE, QuantityPair, Steps

# The global norm of the gradients in these steps. Clippings are to 0.1 and more.
_NORM = 0.02
# So many, since gradients may be added up over several.
_STEPS = 4
# Of how far the gradients of the sides are apart, what is added may be: neither side is given those
# of the other, and rounding may have grown in the steps before.
_FOLLOWS = 10.0
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


def updates_apart(before: Steps, after: Steps, left: Left, share: float = _APART) -> list[str]:
  """Returns the variables to which both sides add something else in the last step.

  Args:
    before: the steps up to the one before it, which it goes on from.
    after: the steps with it.
    left: returns what of a pair is more than rounding.
    share: of the greatest element that TF1 adds; what differs by less counts as the same, as does
      what differs by about as much as the gradients of the step.
  """
  earlier, gradients = _updates(before), _gradients_apart(after)
  values = {record.name: record.value for record in after.tf1.steps[-1].variables}
  of_all = gradients.pop('', 0.0)  # by which a norm of all moves the others
  found = []
  for name, pair in _updates(after).items():
    known, began = left(pair), earlier.get(name)
    # Elements that are rounding alone have those of tf1 before the step as well as after it.
    start = None if began is None else left(began)
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
    allowed = max(share, _FOLLOWS * max(gradients.get(name, 0.0), of_all))
    if apart > allowed * size + _rounding(values.get(name)):
      found.append(name)
  return found


def _gradients_apart(steps: Steps) -> dict[str, float]:
  """Returns how far the sides' gradients in the last step are apart, by variable and, '', of all.

  That is a part of the greatest element of tf1's, and of their global norm.
  """
  found, whole, apart = {}, [0.0], [0.0]
  for pair in steps.pairs(len(steps.tf1.steps)):
    one, other = pair.tf1, pair.tf2
    if pair.quantity != GRADIENT or one is None or other is None or one.shape != other.shape:
      continue
    difference = np.subtract(one, other, dtype=np.float64)
    size = float(np.max(np.abs(one), initial=0.0))
    found[pair.variable] = float(np.max(np.abs(difference), initial=0.0)) / size if size else 0.0
    whole.append(norm(one))
    apart.append(norm(difference))
  size = math.hypot(*whole)
  return {**found, '': math.hypot(*apart) / size if size else 0.0}


def _updates(steps: Steps) -> Mapping[str, QuantityPair]:
  pairs = steps.pairs(len(steps.tf1.steps))
  return {pair.variable: pair for pair in pairs if pair.quantity == UPDATE}


def _rounding(value: np.ndarray | None) -> float:
  if value is None or value.dtype.kind != 'f':
    return 0.0
  return float(_ULPS * np.finfo(value.dtype).eps * np.max(np.abs(value), initial=0.0))
