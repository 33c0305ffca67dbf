"""State in lists whose order is that of another list of variables than the layer's."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tf2verify.records.training import Slot, TrainingRun
from tf2verify.relation.slots import are_same, meaning, shape, tells


def owners_by_values(
  tf1: Sequence[Slot], tf2: Sequence[Slot], tf1_names: Mapping[str, str]
) -> dict[str, str]:
  """Returns, by the key of a slot that a list holds, the variable of the port that it belongs to.

  The lists of an optimizer of one's own are in the order of the variables that it was given, which
  is known only by what they hold: where the slots of TF1 fit other places better, they belong to
  those variables.

  Args:
    tf1: the reference's slots after a step.
    tf2: the port's.
    tf1_names: from the port's variable names to those of tf1.
  """
  port = {one: other for other, one in tf1_names.items()}
  found: dict[str, str] = {}
  for kind, listed in _lists(tf2):
    ones = [one for one in tf1 if meaning(one) == kind and one.variable in port]
    ours = {one.variable: one for one in ones}
    if len(ours) != len(ones):
      continue  # several optimizers
    guessed = [
      one
      for slot in listed
      if (one := ours.get(tf1_names.get(slot.variable, slot.variable))) and are_same(one, slot, 1.0)
    ]
    if len(guessed) == len(listed):
      continue
    fitting = dict(_fitting(ones, listed))
    if len(fitting) > len(guessed):
      found.update((key, port[name]) for key, name in fitting.items())
      found.update(_of_the_rest(ones, listed, fitting, port))
  return found


def with_owners(run: TrainingRun, owners: Mapping[str, str]) -> TrainingRun:
  """Returns a run whose slots have their variables, by key."""
  if not owners:
    return run
  steps = [dataclasses.replace(s, slots=_with_owners(s.slots, owners)) for s in run.steps]
  return dataclasses.replace(run, steps=tuple(steps))


def _with_owners(slots: Iterable[Slot], owners: Mapping[str, str]) -> tuple[Slot, ...]:
  return tuple(
    dataclasses.replace(slot, variable=owners[slot.key]) if slot.key in owners else slot
    for slot in slots
  )


def _lists(slots: Sequence[Slot]) -> Iterator[tuple[str, list[Slot]]]:
  """Yields what is known by its place alone, by what it means."""
  found: dict[str, list[Slot]] = collections.defaultdict(list)
  for slot in slots:
    if slot.of_place and slot.key:
      found[meaning(slot)].append(slot)
  yield from found.items()


def _fitting(ones: Sequence[Slot], listed: Sequence[Slot]) -> Iterator[tuple[str, str]]:
  """Yields key and tf1 variable of slots that hold the same numbers, and no others do."""
  for one in ones:
    if not tells(one.value):
      continue
    fits = [slot for slot in listed if shape(one.value) == shape(slot.value)]
    fits = [slot for slot in fits if are_same(one, slot, 1.0)]
    if len(fits) == 1:
      yield fits[0].key, one.variable


def _of_the_rest(
  ones: Sequence[Slot],
  listed: Sequence[Slot],
  fitting: Mapping[str, str],
  port: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
  """Yields key and variable, '' if unknown, of slots whose numbers tell nothing, or differ."""
  taken = set(fitting.values())
  left = [one for one in ones if one.variable not in taken]
  for slot in listed:
    if slot.key in fitting:
      continue
    alike = [one for one in left if shape(one.value) == shape(slot.value)]
    same = [one for one in alike if are_same(one, slot, 1.0)]
    one = same[0] if same else alike[0] if len(alike) == 1 else None
    left = [known for known in left if known is not one]
    yield slot.key, '' if one is None else port[one.variable]
