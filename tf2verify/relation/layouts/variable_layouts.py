"""How the values of variables lie on either side."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tf2verify.numerics.relayout import Relayout, without_ones
from tf2verify.records.observation import TensorRecord, VariableRecord
from tf2verify.relation.layouts.map_entry import MapEntry

# The port's own variables may be shorter or longer in sum of names than that.
_LONGEST_NAME = 120


_IN_OWN_LAYOUT = ', as the port has it'


def in_own_layout(own: str) -> str:
  """Returns what graphs call a variable of the port whose elements lie in another order."""
  return f'{own}{_IN_OWN_LAYOUT}'


def is_in_own_layout(name: str) -> bool:
  """Returns whether a graph calls a variable so."""
  return name.endswith(_IN_OWN_LAYOUT)


def in_step(own: str) -> str:
  """Returns what graphs of training steps call a variable of the port that tf1 has not so."""
  return f'{own} of tf2'


@dataclasses.dataclass(frozen=True)
class VariableLayout:
  """A pair whose sides hold the same elements in other shapes."""

  tf1: str  # the variable's name on the tf1 side
  tf2: str  # likewise
  tf1_shape: tuple[int, ...]  # its shape on the tf1 side
  tf2_shape: tuple[int, ...]  # likewise
  # How the elements lie; None where they have one order on both sides.
  entry: MapEntry | None = None

  def to_tf1(self, value: np.ndarray, constants: bool = True) -> np.ndarray:
    """Returns a value of the port as tf1 would hold it; any other array as it is.

    Args:
      value: of the variable, or anything that is kept for each of its elements.
      constants: whether the port's variable has a constant added that it has not.
    """
    if value.shape != self.tf2_shape:
      return value
    if self.entry is None:
      return value.reshape(self.tf1_shape)
    return self.entry.to_tf1([value], constants)[0]

  def to_tf2(self, value: np.ndarray, constants: bool = True) -> np.ndarray:
    """Returns a value of the reference as the port holds it; any other array as it is."""
    if value.shape != self.tf1_shape:
      return value
    if self.entry is None:
      return value.reshape(self.tf2_shape)
    return self.entry.to_tf2([value], constants)[0]

  def relayout(self) -> Relayout:
    """Returns the same without the names, and without constants that the port has added."""
    places = np.arange(math.prod(self.tf1_shape)).reshape(self.tf1_shape)
    elements = self.to_tf2(places, constants=False).reshape(-1)
    in_order = bool((elements == np.arange(elements.size)).all())
    moved = None if in_order else elements
    return Relayout(self.tf1_shape, None, self.tf2_shape, elements=moved)


@dataclasses.dataclass(frozen=True)
class Group:
  """Several variables of a side that hold the elements of one or more of the other.

  The port's are shown as those of tf1, each by a name that has the port's in it.
  """

  entry: MapEntry
  tf1_shapes: tuple[tuple[int, ...], ...]
  tf2_shapes: tuple[tuple[int, ...], ...]
  tf1_trainable: tuple[bool, ...]

  @property
  def names(self) -> tuple[str, ...]:
    """What the port's elements of each of tf1's variables are called."""
    together = '+'.join(self.entry.tf2)
    if len(together) > _LONGEST_NAME:
      together = f'{self.entry.tf2[0]}+…+{self.entry.tf2[-1]}'
    if len(self.entry.tf1) == 1:
      return (together,)
    return tuple(f'{together}[{name}]' for name in self.entry.tf1)

  def shown(self, records: Sequence[TensorRecord], constants: bool) -> list[TensorRecord]:
    """Returns the port's records as those of tf1.

    Args:
      records: one for each variable of the port; all of their shape, or without a value.
      constants: see `VariableLayout.to_tf1`.
    """
    values = [record.value for record in records]
    if all(value is None for value in values):
      return [TensorRecord(name, None) for name in self.names]
    dtype = next(value.dtype for value in values if value is not None)
    # What depends on a part of the variable alone is zero for the rest.
    whole = [
      np.zeros(shape, dtype) if value is None else value
      for value, shape in zip(values, self.tf2_shapes, strict=True)
    ]
    moved = self.entry.to_tf1(whole, constants)
    named = zip(self.names, moved, strict=True)
    return [TensorRecord(name, value, of_group=True) for name, value in named]

  def described(self, records: Sequence[VariableRecord]) -> list[VariableRecord]:
    """Returns the port's variables as those of tf1."""
    dtypes = sorted({record.dtype for record in records})
    sources = [record.source for record in records if record.source is not None]
    found = []
    for name, shape, trainable in zip(self.names, self.tf1_shapes, self.tf1_trainable, strict=True):
      # Of parts that differ, what tf1 has not: a difference that is seen.
      flags = [{r.trainable for r in records}, {r.trainable_flag for r in records}]
      trained, flag = (kinds.pop() if len(kinds) == 1 else not trainable for kinds in flags)
      found.append(
        VariableRecord(
          name,
          shape,
          ', '.join(dtypes),
          trainable=trained,
          trainable_flag=flag,
          source=sources[0] if sources else None,
        )
      )
    return found


class Layouts:
  """The layouts of a port's variables; what has none lies on both sides alike."""

  def __init__(self, layouts: Iterable[VariableLayout] = (), groups: Iterable[Group] = ()) -> None:
    """Takes one layout, or group, at most for each of the port's variables."""
    self._by_tf2: Mapping[str, VariableLayout] = {layout.tf2: layout for layout in layouts}
    self._groups = {name: group for group in groups for name in group.entry.tf2}
    self._by_shown = {name: group for group in self._groups.values() for name in group.names}

  @property
  def has_groups(self) -> bool:
    """Whether several variables of a side make up one of the other, or several."""
    return bool(self._groups)

  def to_tf1(self, name: str, value: np.ndarray, constants: bool = True) -> np.ndarray:
    """Returns what a variable of the port, by its tf2 name, is as a value of tf1."""
    layout = self._by_tf2.get(name)
    return value if layout is None else layout.to_tf1(value, constants)

  def to_tf2(self, name: str, value: np.ndarray, constants: bool = True) -> np.ndarray:
    """Returns what a value of tf1 is for a variable of the port, by its tf2 name."""
    layout = self._by_tf2.get(name)
    return value if layout is None else layout.to_tf2(value, constants)

  def relayouts(self, tf1_names: Mapping[str, str]) -> dict[str, Relayout]:
    """Returns how the port holds variables, by their tf1 names, as far as that differs.

    Args:
      tf1_names: of the port's variables, by its own names.
    """
    known = ((tf1, self._by_tf2.get(own)) for own, tf1 in tf1_names.items())
    return {tf1: layout.relayout() for tf1, layout in known if layout is not None}

  def shape_of(self, name: str, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Returns the shape in tf1 of a variable of the port that has a shape."""
    layout = self._by_tf2.get(name)
    return shape if layout is None else layout.tf1_shape

  def shown_names(self, name: str) -> tuple[str, ...]:
    """Returns the names under which a variable of the port, by its own name, is shown."""
    group = self._groups.get(name)
    return (name,) if group is None else group.names

  def own_names(self, shown: str) -> tuple[str, ...]:
    """Returns the names of the variables of the port that are shown under a name."""
    group = self._by_shown.get(shown)
    return (shown,) if group is None else group.entry.tf2

  def evened(self, factors: Mapping[str, float]) -> dict[str, float]:
    """Returns factors of gradients, one for all whose elements lie in the same variables.

    Args:
      factors: by the names under which the port's variables are shown; 0 for what is rounding.
    """
    found = dict(factors)
    for group in self._groups.values():
      names = [name for name in group.names if name in found]
      found.update(dict.fromkeys(names, min((factors[name] for name in names), default=0.0)))
    return found

  def lie_apart(self, name: str) -> bool:
    """Returns whether a variable of the port, by its own name, is no single one of tf1's."""
    return name in self._groups

  def lies_otherwise(self, name: str) -> bool:
    """Returns whether the elements of such a variable are in another order than in tf1."""
    layout = self._by_tf2.get(name)
    return name in self._groups or (layout is not None and layout.entry is not None)

  def grouped(
    self, records: Iterable[TensorRecord], constants: bool = True
  ) -> tuple[TensorRecord, ...]:
    """Returns records of the port's own variables, in which each group is shown as in tf1.

    Args:
      records: of variables that are no part of a group in the shape of tf1.
      constants: see `VariableLayout.to_tf1`.
    """
    found: list[TensorRecord | Group] = []
    members: dict[str, TensorRecord] = {}
    for record in records:
      group = self._groups.get(record.name)
      if group is None:
        found.append(record)
        continue
      members[record.name] = record
      if not any(group is known for known in found):
        found.append(group)
    shown: list[TensorRecord] = []
    for one in found:
      if isinstance(one, Group):
        own = [members.get(name, TensorRecord(name, None)) for name in one.entry.tf2]
        shown += one.shown(own, constants)
      else:
        shown.append(one)
    return tuple(shown)

  def described(self, records: Sequence[VariableRecord]) -> list[VariableRecord]:
    """Returns records of the port's own variables, in which each group is shown as in tf1."""
    known = {record.name: record for record in records}
    found: list[VariableRecord] = []
    for record in records:
      group = self._groups.get(record.name)
      if group is None:
        found.append(record)
      elif record.name == next(name for name in known if name in group.entry.tf2):
        found += group.described([known[name] for name in group.entry.tf2 if name in known])
    return found

  def ungrouped(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns values by the port's own names, of those by the names that are shown.

    What is not a part of a group is left in the shape of tf1. Of a group all are given, or none.
    """
    found: dict[str, np.ndarray] = {}
    done: list[Group] = []
    for name, value in values.items():
      group = self._by_shown.get(name)
      if group is None:
        found[name] = value
      elif not any(group is known for known in done):
        done.append(group)
        own = group.entry.to_tf2([values[name] for name in group.names])
        found.update(zip(group.entry.tf2, own, strict=True))
    return found

  def adds_constants(self, shown: str) -> bool:
    """Returns whether the port's variable has a constant added that tf1's has not."""
    group, layout = self._by_shown.get(shown), self._by_tf2.get(shown)
    entries = [one.entry for one in (group, layout) if one is not None]
    return any(entry is not None and bool(entry.added) for entry in entries)

  def neighbours(self, shown: str) -> tuple[str, ...]:
    """Returns the names that have to be given together with one; itself among them."""
    group = self._by_shown.get(shown)
    return (shown,) if group is None else group.names


def layout_of(tf1: VariableRecord, tf2: VariableRecord) -> VariableLayout | None:
  """Returns the layout of a pair; None where it needs none, or where there is none."""
  ones = tuple(size for size in tf1.shape if size is not None)
  others = tuple(size for size in tf2.shape if size is not None)
  known = len(ones) == len(tf1.shape) and len(others) == len(tf2.shape)
  if not known or tf1.dtype != tf2.dtype or ones == others:
    return None
  if without_ones(ones) != without_ones(others):
    return None
  return VariableLayout(tf1.name, tf2.name, ones, others)
