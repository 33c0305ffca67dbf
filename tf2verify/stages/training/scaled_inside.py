"""Gradients that one side changes before it gives them to the update, and the other within it.

A rate of its own for some layers may be a factor of their gradients, or of the update in a class of
optimizer. What the update is given differs then; what it makes of it does not.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.wording import names_text
from tf2verify.stages.training.steps.quantities import (
  APPLIED,
  SLOT,
  UPDATE,
  QuantityPair,
  greatest,
)

# Of the greatest element: what the update itself may differ by, where the gradients that it is
# given differ by far more.
_SMALL, _LARGE = 1e-3, 1e-2
# Of what rounding may hide in an update: that of its variable, and of its own.
_CLEARLY, _RELATIVE = 3.0, 1e-5
# Update rules that show a factor of the gradient in every step.
PROPORTIONAL = frozenset(('sgd', 'momentum'))


def scaled_inside(
  pairs: Sequence[QuantityPair],
  differences: Sequence[Difference],
  has_slots: bool,
  known_before: Collection[str] = (),
) -> frozenset[str]:
  """Returns the variables whose gradients differ only as they are given to the update.

  Args:
    pairs: what is compared of a step.
    differences: what differs of it.
    has_slots: whether the optimizer of TF1 keeps something that is to be compared: an update that
      divides gradients by their size shows no factor, and what it keeps does.
    known_before: variables of which an earlier step has shown it.
  """
  known_differences = {(d.quantity, d.tf1_subject): d for d in differences}
  by_variable: dict[str, list[QuantityPair]] = {}
  for pair in pairs:
    by_variable.setdefault(pair.variable, []).append(pair)
  found, tells, others_differ = set(), False, False
  for name, known in by_variable.items():
    sizes = {} if not name else _sizes(known, known_differences)
    apart = sizes.get(APPLIED, 0.0)
    if not (apart > _LARGE or _would_show(known, sizes, name in known_before)):
      continue
    if _is_inside(sizes, has_slots):
      found.add(name)
      tells |= _tells(known, sizes[APPLIED])
    else:
      others_differ = True
  # Where other updates show what the gradients differ by, those too small to do so tell nothing.
  return frozenset(found if tells or not others_differ else ())


def without(pairs: Sequence[QuantityPair], variables: Collection[str]) -> list[QuantityPair]:
  """Returns pairs without the gradients that the updates of some variables are given."""
  return [p for p in pairs if p.quantity != APPLIED or p.variable not in variables]


def inside_notes(variables: Collection[str]) -> list[str]:
  """Returns what to say of such variables."""
  if not variables:
    return []
  return [
    f'the gradients passed to the updates of {names_text(sorted(variables))} differ, but the '
    'updates and the slots agree: one side scales the gradients before the update, clips them, or '
    'adds a decay to them, the other within it'
  ]


def _sizes(
  pairs: Sequence[QuantityPair], differences: Mapping[tuple[str, str], Difference]
) -> dict[str, float]:
  """Returns by how much, of the greatest element, the quantities of a variable differ at most."""
  found: dict[str, float] = {}
  for p in pairs:  # an optimizer may keep several slots for a variable
    size = _relative(differences.get((p.quantity, p.subject)), p)
    found[p.quantity] = max(size, found.get(p.quantity, 0.0))
  return found


def _is_inside(sizes: Mapping[str, float], has_slots: bool) -> bool:
  others = [size for quantity, size in sizes.items() if quantity != APPLIED]
  return UPDATE in sizes and (SLOT in sizes or not has_slots) and max(others) < _SMALL


def _would_show(pairs: Sequence[QuantityPair], sizes: Mapping[str, float], is_known: bool) -> bool:
  """Returns whether all that updates make of gradients agrees, and would not by rounding alone.

  Of gradients that differ by less than `_LARGE`: by a decay of weights, say. What one step has
  shown, the next ones need not show again.
  """
  apart = sizes.get(APPLIED, 0.0)
  if not apart or any(size for quantity, size in sizes.items() if quantity != APPLIED):
    return False
  updates = [p for p in pairs if p.quantity == UPDATE and p.tf1 is not None]
  return bool(updates) and all(
    is_known or apart * greatest(p.tf1) > _CLEARLY * (p.extra_atol + _RELATIVE * greatest(p.tf1))
    for p in updates
    if p.tf1 is not None
  )


def _tells(pairs: Sequence[QuantityPair], factor: float) -> bool:
  """Returns whether an update is large enough for a difference of such gradients to show in it."""
  updates = (p for p in pairs if p.quantity == UPDATE and p.tf1 is not None)
  return any(
    min(factor, 1.0) * greatest(p.tf1) > p.extra_atol for p in updates if p.tf1 is not None
  )


def _relative(difference: Difference | None, pair: QuantityPair) -> float:
  """Returns how far two tensors are apart, of the greatest element of tf1's."""
  if difference is None:
    return 0.0
  array, size = difference.array, 0.0 if pair.tf1 is None else greatest(pair.tf1)
  if difference.aspect is not Aspect.VALUES or array is None or not size:
    return math.inf
  return array.greatest_absolute / size
