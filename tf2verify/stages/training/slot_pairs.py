"""Which slots of the two optimizers are pairs, and what is said of those that are not."""

import itertools
from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.formulas.update_rules import SCALED_MOMENTUM
from tf2verify.errors import CaseDefinitionError
from tf2verify.records.training import Slot, TrainingRun
from tf2verify.records.wording import listed
from tf2verify.reference.slot_roles import OWN_MOMENTUM
from tf2verify.relation.slots import COUNTS, DeclaredSlots, declared_name
from tf2verify.stages.training.steps.quantities import Steps

_SHOWN = 6
# Of a number: a power of a decay that is closer is the same.
_SAME = 1e-4
_WORDS = {
  OWN_MOMENTUM: 'a momentum of an optimizer class of your own, whose numbers are no multiple of '
  'those of the other side'
}


def slots_alone(steps: Steps) -> list[str]:
  """Returns notes on the slots that have no partner: that only one side has, or may have."""
  paired = steps.slots(len(steps.tf1.steps))
  undecided = [pair for pair in steps.undecided_slots() if _may_count_alike(*pair)]
  notes = [_undecided(undecided)] if undecided else []
  alone = [
    [slot for slot in slots if not any(slot is one for pair in undecided for one in pair)]
    for slots in (_used(paired.tf1_only, steps.tf1), _used(paired.tf2_only, steps.tf2))
  ]
  last = steps.tf1.steps[-1].slots, steps.tf2.steps[-1].slots
  for side, slots, kept in zip(('tf1', 'tf2'), alone, last, strict=True):
    found = _said_of(slots, kept)
    if found:
      notes.append(f'only {side} keeps {"; ".join(found)}: not compared')
  if len(notes) == 2 and not undecided:
    notes[1] += '; where two of them are the same, declare it with slot_names'
  return notes


def _used(slots: Sequence[Slot], run: TrainingRun) -> list[Slot]:
  """Returns the slots that later steps read, and that tell more than how many steps there were.

  RMSProp of TF1 keeps a momentum also if it is 0: it is what the last step has added.
  """
  settings = [record.setting('momentum') for record in run.optimizers]
  is_idle = bool(settings) and all(momentum == 0.0 for momentum in settings)
  return [
    slot
    for slot in slots
    if not (is_idle and slot.role == SCALED_MOMENTUM) and not _counts_steps(slot, run)
  ]


def _may_count_alike(one: Slot, other: Slot) -> bool:
  """Returns whether slots may be one; what tells of the steps alone has the same numbers then.

  A power of a decay and a count are two ways to know how many steps were taken. Numbers of other
  slots may differ because of a mistake.
  """
  are_counts = [slot.role in COUNTS for slot in (one, other)]
  if not any(are_counts):
    return True
  return not all(are_counts) and np.allclose(one.value, other.value, _SAME, 0.0)


def _counts_steps(slot: Slot, run: TrainingRun) -> bool:
  """Returns whether a slot of the optimizer as a whole is one number, one more after each step."""
  if slot.variable or slot.value.shape:
    return False
  known = [
    float(one.value)
    for step in run.steps
    for one in step.slots
    if (one.name, one.key, one.variable) == (slot.name, slot.key, '')
  ]
  # Before the first step an object of one's own may have no state yet.
  return len(known) > 1 and all(two == one + 1.0 for one, two in itertools.pairwise(known))


def _said_of(alone: Sequence[Slot], kept: Sequence[Slot]) -> list[str]:
  """Returns what a side keeps alone: roles, with their variables where others have partners.

  Args:
    alone: its slots without a partner.
    kept: all of them.
  """
  variables: dict[tuple[str, ...], list[str]] = {}
  for role in sorted({slot.role for slot in alone if slot.role not in COUNTS}):
    here, all_of_them = (_variables(slots, role) for slots in (alone, kept))
    variables.setdefault(here if here != all_of_them else (), []).append(role)
  moving = {slot.role for slot in alone if slot.holds_something}
  found = []
  for names, roles in variables.items():
    said = '' if moving.intersection(roles) else ', which stay at zero'
    of = f' of {listed(names, _SHOWN)}' if names else ''
    found.append(', '.join(_WORDS.get(role, role) for role in roles) + of + said)
  return found


def _variables(slots: Sequence[Slot], role: str) -> tuple[str, ...]:
  return tuple(sorted({slot.variable for slot in slots if slot.role == role and slot.variable}))


def _undecided(pairs: Sequence[tuple[Slot, Slot]]) -> str:
  ours, theirs = (
    ', '.join(sorted({slot.role for slot in side})) for side in zip(*pairs, strict=True)
  )
  one, other = pairs[0]
  return (
    f'tf1 keeps {ours}, and tf2 keeps {theirs} for the same variables: their numbers do not show '
    'whether these are the same, so they are not compared; if they are, declare '
    f'slot_names = {{{one.role!r}: {other.word or other.role!r}}}'
  )


def check_slot_names(steps: Steps, declared: DeclaredSlots) -> None:
  """Raises `CaseDefinitionError` where `slot_names` names a slot that is not there."""
  if declared is None:
    return
  if isinstance(declared, str) or not (callable(declared) or hasattr(declared, 'items')):
    raise CaseDefinitionError(
      f'slot_names is {declared!r:.80}; it must be a mapping from slots of tf1 to those of tf2, or '
      'a method of one name'
    )
  ones, others = steps.tf1.steps[-1].slots, steps.tf2.steps[-1].slots
  keys = () if callable(declared) else tuple(declared)
  wrong = [key for key in keys if not any(slot.is_called(key) for slot in ones)]
  if wrong:
    raise CaseDefinitionError(
      f'slot_names names {wrong[0]!r}, and tf1 keeps no such slot; it keeps: {_listed(ones)}'
    )
  for slot in ones:
    name = declared_name(slot, declared)
    if name and not any(other.is_called(name) for other in others):
      raise CaseDefinitionError(
        f'slot_names gives {name!r} for {slot.name}, and tf2 keeps no such slot; it keeps: '
        f'{_listed(others)}'
      )


def _listed(slots: tuple[Slot, ...]) -> str:
  found = dict.fromkeys(f'{slot.name} ({slot.role})' for slot in slots)
  return listed(list(found), _SHOWN) or 'none'
