"""What a port yields, by the names and in the shapes in which its variables are shown."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tf2verify.records.observation import RandomDraw, TensorRecord
from tf2verify.records.training import Slot
from tf2verify.reference.variables import static_shape, variable_name
from tf2verify.relation.layouts.variable_layouts import Layouts
from tf2verify.relation.shadows import SHADOW
from tf2verify.sides.optimizers.state import SlotVariable
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.layers.port import Port, array_of


def shown_names(layouts: Layouts, own: Iterable[str]) -> tuple[str, ...]:
  """Returns the names under which variables of the port are shown, sorted."""
  return tuple(sorted({shown for name in own for shown in layouts.shown_names(name)}))


def shown_draws(layouts: Layouts, draws: Iterable[RandomDraw]) -> tuple[RandomDraw, ...]:
  """Returns random draws, those for a part of a group as those for the first of tf1's."""
  return tuple(
    dataclasses.replace(draw, variable=layouts.shown_names(draw.variable)[0])
    if draw.variable and layouts.lie_apart(draw.variable)
    else draw
    for draw in draws
  )


class ValuesGiven:
  """Values for all variables of a port, made one after the other."""

  def __init__(self, port: Port, run: RunSpec) -> None:
    """Takes a port that has its variables, and the run that fills them."""
    self._port = port
    self._run = run
    self._filled: set[str] = set()

  def __iter__(self) -> Iterator[tuple[str, np.ndarray]]:
    initial = {record.name: record.value for record in self._port.initial_values()}
    for record in self._port.inventory():
      value = self._run.value_for(record)
      if value is not None:
        self._filled.update(self._port.layouts.own_names(record.name))
      yield record.name, np.asarray(initial[record.name] if value is None else value)

  @property
  def filled(self) -> list[object]:
    """The variables that no longer need their initial value."""
    return [v for v in self._port.variables() if variable_name(v) in self._filled]


def _shown_slot(port: Port, slot: SlotVariable, value: object) -> Slot:
  """Returns a slot of one variable of a port, of a group in its own shape."""
  shown = port.layouts.to_tf1(slot.variable, array_of(value), _has_constants(slot.role))
  names = slot.role, slot.variable, slot.name
  return Slot(*names, shown, slot.word, slot.key, of_place=slot.of_place)


def shown_slots(port: Port, slots: Iterable[tuple[SlotVariable, object]]) -> tuple[Slot, ...]:
  """Returns slots as those for tf1's variables: of a group all of one word together.

  Args:
    port: the port.
    slots: with their values.
  """
  found: list[Slot] = []
  groups: dict[tuple[str, str], list[Slot]] = {}
  shapes = {variable_name(v): static_shape(v.shape) for v in port.variables()}
  for slot in (_shown_slot(port, known, value) for known, value in slots):
    apart = port.layouts.lie_apart(slot.variable)
    if apart and np.shape(slot.value) == shapes.get(slot.variable):
      groups.setdefault((slot.role, slot.word), []).append(slot)
    else:
      found.append(slot)
  for (role, word), several in groups.items():
    found += _together(port.layouts, role, word, several)
  return tuple(found)


def _together(layouts: Layouts, role: str, word: str, several: Sequence[Slot]) -> list[Slot]:
  records = [TensorRecord(slot.variable, slot.value) for slot in several]
  found = []
  for record in layouts.grouped(records, _has_constants(role)):
    owners = layouts.own_names(record.name)
    first = next(slot for slot in several if slot.variable in owners)
    value = np.asarray(record.value)
    found.append(Slot(role, record.name, first.name, value, word, first.key, of_group=True))
  return found


def slot_with(port: Port, slot: Slot, value: np.ndarray) -> Slot:
  """Returns a slot that is shown with another value, given as the port holds it."""
  if port.layouts.lie_apart(slot.variable):
    return slot  # of a group that is shown as one: the others' values are not known here
  shown = port.layouts.to_tf1(slot.variable, value, _has_constants(slot.role))
  return dataclasses.replace(slot, value=shown) if shown.shape == slot.value.shape else slot


def _has_constants(role: str) -> bool:
  """Returns whether a slot holds values of its variable, and not what belongs to its gradients."""
  return role == SHADOW
