"""What a further step, which is forgotten, does otherwise on the two sides."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.gradient_clips import norm
from tf2verify.stages.training.steps.quantities import GRADIENT, UPDATE, QuantityPair, Steps

# Of how far the gradients of the sides are apart, what is added may be: neither side is given those
# of the other, and rounding may have grown in the steps before.
_FOLLOWS = 10.0
# Of the greatest element of what a step adds, which has the momentum of greater gradients in it.
_APART = 2e-3
# In units in the last place of a variable, the rounding of what a step adds to it.
_ULPS = 16.0
# The same at gradients that are far larger than those before.
_APART_AT_LARGE = 0.01
# Returns what of a pair is more than rounding; None for nothing.
Left = Callable[[QuantityPair], QuantityPair | None]


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


def agree_at_large(before: Steps, take: Callable[[], Steps]) -> bool:
  """Returns whether a step at far larger gradients does the same on both sides.

  To variables, and to what optimizers keep: an update whose size does not depend on that of the
  gradients, as that of Adam, would not tell.

  Args:
    before: the steps so far, which agree.
    take: takes one more on both sides, at these gradients.
  """
  try:
    after = take()
  except (NotApplicable, UserCodeError):
    return False
  if not all(map(_is_finite, _updates(after).values())):
    return False
  if updates_apart(before, after, lambda pair: pair, _APART_AT_LARGE):
    return False
  slots, now = before.slots(len(before.tf1.steps)), after.slots(len(after.tf1.steps)).pairs
  if any(slot.variable for slot in slots.tf1_only):
    return False  # what is not compared may be what tells
  if not {(p.role, p.variable) for p in slots.pairs} <= {(p.role, p.variable) for p in now}:
    return False
  arrays = [(np.asarray(pair.tf1), np.asarray(pair.tf2)) for pair in now]
  return all(
    one.shape == other.shape
    and np.max(np.abs(one - other), initial=0.0)
    <= _APART_AT_LARGE * np.max(np.abs(one), initial=0.0)
    for one, other in arrays
  )


def _is_finite(pair: QuantityPair) -> bool:
  return all(value is not None and bool(np.isfinite(value).all()) for value in (pair.tf1, pair.tf2))
