"""Moving averages of weights that the port keeps in its own way."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.records.training import Slot, TrainingRun, TrainingStep
from tf2verify.relation.shadows import SHADOW, LayOut, Values, as_it_is, find_shadows
from tf2verify.relation.slots import DeclaredSlots, pair_slots

_NOTHING = np.empty(0)


@dataclasses.dataclass(frozen=True, eq=False)
class PortShadows:
  """What was found in the first step."""

  slots: tuple[Slot, ...]  # of the port, as it calls them, without values
  owners: Mapping[int, str]  # by their position, the variable of the port whose average it is
  # By TF1's name of a variable without a partner, what the port calls the state that may hold its
  # average.
  doubtful: Mapping[str, str]


def port_shadows(
  one: TrainingStep,
  other: TrainingStep,
  port: TrainingRun,
  pairs: Sequence[tuple[str, str]],
  declared: DeclaredSlots = None,
  lay_out: LayOut = as_it_is,
) -> PortShadows:
  """Looks for the averages that TF1 keeps, among what the port keeps under other names.

  Args:
    one: the first step of tf1.
    other: that of the port.
    port: its run, with what there was before the step.
    pairs: variable names of tf1 and tf2.
    declared: as the case declares `slot_names`.
    lay_out: gives state of the port that has the shape of a variable the shape of tf1's.
  """
  tf1_names = {tf2: tf1 for tf1, tf2 in pairs}
  known = {slot.variable for slot in other.slots if slot.role == SHADOW}
  ones = {slot.variable: slot for slot in one.slots if slot.role == SHADOW}
  wanted = {tf2: ones[tf1] for tf2, tf1 in tf1_names.items() if tf1 in ones and tf2 not in known}
  if not wanted:
    return PortShadows(_without_values(other.slots), {}, {})
  optimizers = [[s for s in step.slots if s.role != SHADOW] for step in (one, other)]
  rates = [one.learning_rate, other.learning_rate]
  alone = pair_slots(optimizers[0], optimizers[1], tf1_names, rates, declared).tf2_only
  places = [n for n, slot in enumerate(other.slots) if any(slot is left for left in alone)]
  slots = [other.slots[n] for n in places]
  values = _values(port, other)
  found = find_shadows(wanted, slots, port.slots_before, values, declared, lay_out)
  left = [tf1_names[name] for name in wanted if name not in found.owners.values()]
  doubtful = (other.slots[places[number]] for number in found.doubtful)
  called = sorted({slot.word or slot.name for slot in doubtful})
  return PortShadows(
    _without_values(other.slots),
    {places[number]: name for number, name in found.owners.items()},
    dict.fromkeys(left, ', '.join(called)) if called else {},
  )


def _without_values(slots: Sequence[Slot]) -> tuple[Slot, ...]:
  return tuple(dataclasses.replace(slot, value=_NOTHING) for slot in slots)


def _values(port: TrainingRun, step: TrainingStep) -> list[Values]:
  after = {record.name: record.value for record in step.variables}
  found = []
  for record in port.values_before:
    value, end = record.value, after.get(record.name)
    if type(value) is np.ndarray and type(end) is np.ndarray and value.dtype.kind == 'f':
      found.append(Values(record.name, value, end))
  return found
