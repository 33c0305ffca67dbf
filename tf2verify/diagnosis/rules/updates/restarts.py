"""Slots that start anew: in each step, since an optimizer is made again, or on one side alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence, VariableStep
from tf2verify.diagnosis.formulas.forms import Found
from tf2verify.diagnosis.formulas.update_rules import ROLES
from tf2verify.diagnosis.rules.updates.settings import found_form, stepped
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.wording import listed

_Array = np.ndarray[Any, Any]
_Slots = Mapping[str, _Array]


def restarted_slots(evidence: TrainingEvidence) -> Cause | None:
  """Names slots that are, before a later step, what they were before the first one.

  The step of the port is then that of TF1's rule from those slots. A count of steps that Adam
  corrects its bias by may start anew as well.
  """
  if evidence.number == 1 or any(len(run.optimizers) != 1 for run in (evidence.tf1, evidence.tf2)):
    return None
  pairs = [p for p in evidence.moves if p.tf1.gradient is not None and p.tf1.slots]
  if not pairs or not all(pair.has_same_gradient for pair in pairs):
    return None
  starts = [_starts(evidence, pair) for pair in pairs]
  rule = found_form(evidence, pairs, 'tf1', 0)
  if rule is None or not all(starts):
    return None
  if _explain(pairs, [pair.tf1.slots for pair in pairs], rule, evidence.number):
    return None
  for number in (evidence.number, 1):
    if _explain(pairs, starts, rule, number):
      roles = sorted({role for slots in starts for role in slots} & ROLES[rule.form.rule])
      counts = ', and the count of steps' if number != evidence.number else ''
      return Cause(
        f'in step {evidence.number} the port starts again from the slots as they are before the '
        f'first step ({listed(roles)}{counts}): the optimizer, or its slots, are created again '
        'in every step; create them once',
        explains=(About.UPDATE, About.SHADOWS),
      )
  return None


def kept_slots(evidence: TrainingEvidence) -> Cause | None:
  """Names slots that one side alone sets back to zero in a step, as sums of gradients are."""
  for role in sorted({role for pair in evidence.moves for role in pair.tf1.slots}):
    pairs = [pair for pair in evidence.moves if role in pair.tf1.slots]
    own = [_called(pair, role) for pair in pairs]
    if not all(own):
      continue
    resets = [
      (_is_reset(pair.tf1, role), _is_reset(pair.tf2, other))
      for pair, other in zip(pairs, own, strict=True)
    ]
    if set(resets) in ({(True, False)}, {(False, True)}):
      one, two, fix = 'TF1', 'the port', 'assign zeros to them once they are applied'
      if not resets[0][0]:
        one, two, fix = two, one, 'keep them'
      return Cause(
        f'step {evidence.number} of {one} sets the slots {role!r} of its variables back to zero, '
        f'that of {two} does not: {fix} in the port',
        explains=(About.UPDATE, About.SHADOWS),
      )
  return None


def _called(pair: StepPair, role: str) -> str:
  """Returns what the port calls a slot of tf1: its role, or what holds the same before the step."""
  value = pair.tf1.slots[role]
  names = (role,) if role in pair.tf2.slots else tuple(pair.tf2.slots)
  return next(
    (
      name
      for name in names
      if value.shape == pair.tf2.slots[name].shape
      and np.allclose(value, pair.tf2.slots[name], rtol=1e-3, atol=1e-12)
    ),
    '',
  )


def _is_reset(step: VariableStep, role: str) -> bool:
  after = step.slots_after.get(role)
  return after is not None and bool(np.any(step.slots[role])) and not np.any(after)


def _starts(evidence: TrainingEvidence, pair: StepPair) -> _Slots:
  """Returns the slots of a variable before the first step; none if that is not known."""
  found = {
    slot.role: slot.value for slot in evidence.tf1.slots_before if slot.variable == pair.name
  }
  known = {role: found[role] for role in pair.tf1.slots if role in found}
  is_whole = len(known) == len(pair.tf1.slots)
  return known if is_whole and all(v.shape == pair.tf1.start.shape for v in known.values()) else {}


def _explain(pairs: Sequence[StepPair], slots: Sequence[_Slots], rule: Found, number: int) -> bool:
  """Returns whether the port steps by TF1's rule from given slots."""
  for pair, known in zip(pairs, slots, strict=True):
    found = stepped(rule.form, pair.tf1, known, number)
    if not pair.explains(found.update - rule.decay * pair.tf1.before, pair.tf2.update):
      return False
    for role, value in found.slots.items():
      other = pair.tf2.slots_after.get(role)
      if other is not None and not np.allclose(value, other, rtol=1e-3, atol=1e-12):
        return False
  return True
