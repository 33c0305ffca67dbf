"""Which state of a port holds the moving averages of its weights, whatever it is called."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tf2verify.records.training import Slot
from tf2verify.reference.slot_roles import is_average_word
from tf2verify.relation.slots import COUNTS, DeclaredSlots, declared_name, has_known_meaning

_Array = np.ndarray[Any, Any]


class LayOut(Protocol):
  """Gives an average that a port keeps of a variable as tf1 would hold it."""

  def __call__(self, variable: str, value: _Array, has_shape: bool = False) -> _Array:
    """Returns the average.

    Args:
      variable: its name in the port.
      value: as the port keeps it.
      has_shape: whether it has tf1's shape and order already, so that only a constant that the
        port's variable has added, such as a forget bias, is to be taken off.
    """


SHADOW = 'shadow'
# What is said of an average, before the name of its variable.
SHADOW_OF = f'{SHADOW} of '
_CLOSE = 1e-3
# Units in the last place of a float32 that storing an average and its variable may be off.
_UNITS = 8.0 * 2.0**-23


@dataclasses.dataclass(frozen=True, eq=False)
class Values:
  """What a variable of the port is around a step."""

  name: str  # its name on the side of the port
  before: _Array  # before the step
  after: _Array  # after it


@dataclasses.dataclass(frozen=True, eq=False)
class FoundShadows:
  """What was found."""

  owners: Mapping[int, str]  # by position among the slots, the variable whose average it is
  # Positions of those that may be averages, of variables that cannot be told.
  doubtful: tuple[int, ...]


def as_it_is(variable: str, value: _Array, has_shape: bool = False) -> _Array:
  """Returns a value for a variable that has tf1's shape and order."""
  del variable, has_shape
  return value


def find_shadows(
  wanted: Mapping[str, Slot],
  slots: Sequence[Slot],
  before: Sequence[Slot],
  values: Sequence[Values],
  declared: DeclaredSlots = None,
  lay_out: LayOut = as_it_is,
) -> FoundShadows:
  """Pairs state with variables, of which TF1 keeps averages and the port none by that name.

  By what the case declares; then by words for an average, and the variable that the
  state belongs to by name, key or position, unless the value that it starts from is that
  of another one; what is under other words where it moves as an average does.

  Args:
    wanted: TF1's averages, by the name of the port's variable.
    slots: of the port after a step, without those that are pairs already.
    before: those before it, where they are known.
    values: of the variables.
    declared: see `OptionalHooks.slot_names`.
    lay_out: for state of which no variable is known.
  """
  search = _Search(wanted, slots, before, values, lay_out)
  search.as_declared(declared)
  if search.left():
    search.by_value()
  if search.left():
    search.by_word()
  return FoundShadows(search.owners, search.doubtful() if search.left() else ())


class _Search:
  def __init__(
    self,
    wanted: Mapping[str, Slot],
    slots: Sequence[Slot],
    before: Sequence[Slot],
    values: Sequence[Values],
    lay_out: LayOut,
  ) -> None:
    self._wanted = wanted
    self._lay_out = lay_out
    self._values = {known.name: known for known in values if known.name in wanted}
    self._slots = {n: slot for n, slot in enumerate(slots) if _may_be_average(slot)}
    self._starts = _starts(slots, before)
    self.owners: dict[int, str] = {}

  def left(self) -> list[str]:
    """Returns the variables without average."""
    return [name for name in self._wanted if name not in self.owners.values()]

  def as_declared(self, declared: DeclaredSlots) -> None:
    """Takes what the case says."""
    for name, shadow in self._wanted.items():
      its = declared_name(shadow, declared)
      for number, slot in self._free():
        if its and slot.is_called(its) and slot.variable in (name, ''):
          self.owners[number] = name
          break

  def by_value(self) -> None:
    """Takes what follows a variable as its average does; by order among equals."""
    for name in self.left():
      fitting = [
        (slot.variable != name, not _is_near(slot.value, self._wanted[name].value), number)
        for number, slot in self._free(name)
        if name in self._values and self._follows(number, slot, self._values[name])
      ]
      if fitting:
        self.owners[min(fitting)[-1]] = name

  def by_word(self) -> None:
    """Takes what is called an average, of the variable that it is said to be of."""
    for number, slot in self._free():
      wanted = self._wanted.get(slot.variable) if _is_called_average(slot) else None
      if wanted is None or slot.variable not in self.left():
        continue
      if slot.value.shape == wanted.value.shape:
        self.owners[number] = slot.variable

  def doubtful(self) -> tuple[int, ...]:
    """Returns what may be averages, by its words or the number of its elements."""
    left = [self._wanted[name].value for name in self.left()]
    whole = sum(value.size for value in left)
    sizes = {value.size for value in left if value.size > 1}
    return tuple(
      number
      for number, slot in self._free()
      if _is_called_average(slot)
      or (not slot.variable and slot.value.size in sizes and slot.value.shape != (1,))
      or (not slot.variable and whole > 1 and slot.value.size == whole)
    )

  def _free(self, name: str = '') -> list[tuple[int, Slot]]:
    """Returns what has no owner yet, as that of a variable would be."""
    free = [(n, slot) for n, slot in self._slots.items() if n not in self.owners]
    return [(n, _laid_out(slot, name, self._lay_out)) for n, slot in free]

  def _follows(self, number: int, slot: Slot, values: Values) -> bool:
    """Returns whether a state is between where it was and the variable, by one decay."""
    if slot.value.shape != values.after.shape:
      return False
    starts = self._possible_starts(number, slot, values)
    return any(_is_between(slot.value, start, values.after) for start in starts)

  def _possible_starts(self, number: int, slot: Slot, values: Values) -> list[_Array]:
    """Returns what a state of a variable's shape may have been before the step."""
    known = self._starts.get(number)
    if known is not None and slot.variable in ('', values.name):
      known = self._lay_out(values.name, known, bool(slot.variable))
    if known is None or known.shape != values.after.shape:
      return [values.before]
    if any(_agree(known, value) for value in (values.before, values.after)):
      return [known]
    # It may have been set since it was made; but one element is between any two.
    found = [values.before] if values.after.size > 1 else []
    # Anything may lie between zero and a variable.
    return [known, *found] if _is_called_average(slot) and not np.any(known) else found


def _is_between(value: _Array, start: _Array, end: _Array) -> bool:
  """Returns whether all elements have gone from a start towards an end by one decay."""
  wide = end.astype(np.float64)
  kept, gone = value - wide, start - wide
  square = float(np.sum(gone * gone))
  decay = float(np.sum(kept * gone)) / square if square else 0.0
  if not -_CLOSE <= decay <= 1.0 + _CLOSE:
    return False
  size = max(float(np.abs(value).max(initial=0.0)) for value in (wide, start))
  allowance = _CLOSE * float(np.abs(gone).max(initial=0.0)) + _UNITS * size
  return bool(np.all(np.abs(kept - decay * gone) <= allowance))


def _laid_out(slot: Slot, name: str, lay_out: LayOut) -> Slot:
  if slot.variable not in ('', name) or not name or not isinstance(slot.value, np.ndarray):
    return slot
  return dataclasses.replace(slot, value=lay_out(name, slot.value, bool(slot.variable)))


def _is_near(one: _Array, other: _Array) -> bool:
  size = float(np.abs(other).max(initial=0.0))
  return one.shape == other.shape and bool(np.allclose(one, other, 0.0, _CLOSE * size))


def _agree(one: _Array, other: _Array) -> bool:
  return one.shape == other.shape and bool(np.allclose(one, other, _UNITS, 0.0))


def _may_be_average(slot: Slot) -> bool:
  is_whole = type(slot.value) is np.ndarray and slot.value.dtype.kind == 'f'
  return is_whole and slot.role not in COUNTS and not has_known_meaning(slot)


def _is_called_average(slot: Slot) -> bool:
  # The name begins with that of the optimizer, which may have averages besides what it is called.
  return is_average_word(f'{slot.role} {slot.word or slot.name}')


def _starts(slots: Sequence[Slot], before: Sequence[Slot]) -> dict[int, _Array]:
  """Returns the earlier values of slots by position; those of one name are told by order."""
  known: dict[tuple[str, str, str], list[_Array]] = {}
  for slot in before:
    known.setdefault(_key(slot), []).append(slot.value)
  counts = collections.Counter(map(_key, slots))
  found = {}
  for number, slot in enumerate(slots):
    values = known.get(_key(slot), [])
    place = sum(_key(other) == _key(slot) for other in slots[:number])
    if len(values) == counts[_key(slot)]:
      found[number] = values[place]
  return found


def renamed(
  slots: Sequence[Slot],
  like: Sequence[Slot],
  owners: Mapping[int, str],
  lay_out: LayOut = as_it_is,
) -> tuple[Slot, ...]:
  """Returns slots of another step, those that were found to be averages under that role.

  Args:
    slots: of the other step.
    like: of the step in which they were found.
    owners: by position among the latter.
    lay_out: for state of which no variable was known.
  """
  said: dict[tuple[str, str, str], list[str]] = {}
  for number, slot in enumerate(like):
    said.setdefault(_key(slot), []).append(owners.get(number, ''))
  counts = collections.Counter(map(_key, slots))
  taken: collections.Counter[tuple[str, str, str]] = collections.Counter()
  result = []
  for slot in slots:
    key = _key(slot)
    known = said.get(key, [])
    owner = known[taken[key]] if len(known) == counts[key] else ''
    taken[key] += 1
    if owner:
      slot = dataclasses.replace(_laid_out(slot, owner, lay_out), role=SHADOW, variable=owner)
    result.append(slot)
  return tuple(result)


def _key(slot: Slot) -> tuple[str, str, str]:
  return slot.role, slot.variable, slot.name
