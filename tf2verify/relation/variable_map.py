"""A map between the elements of the variables of TF1 and of its port."""

import dataclasses
import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.errors import VariableMapError
from tf2verify.records.wording import listed
from tf2verify.relation import variable_map_file
from tf2verify.relation.layouts.map_entry import MapEntry

_Shape = tuple[int | None, ...]
_SHOWN = 5


@dataclasses.dataclass(frozen=True)
class VariableMap:
  """Which elements of TF1's variables are which of the port's.

  A bijection: every variable is in one entry, or on one side only. What a rename, a
  transposition, a reshape, a split or a merge does is exact in both directions; where a
  constant is added, the sum is rounded once.

  Attributes:
    entries: in the order of the port's variables, as far as a map is derived.
    tf1_only: variables that the port does without, and why.
    tf2_only: variables that TF1 does without, and why; they keep their initial values.
    source: the file that it was read from; '' without.
  """

  entries: tuple[MapEntry, ...] = ()
  tf1_only: tuple[tuple[str, str], ...] = ()
  tf2_only: tuple[tuple[str, str], ...] = ()
  source: str = dataclasses.field(default='', compare=False)

  def __post_init__(self) -> None:
    object.__setattr__(self, 'entries', tuple(self.entries))
    for field in ('tf1_only', 'tf2_only'):
      given = dict(getattr(self, field))
      object.__setattr__(self, field, tuple((n.removesuffix(':0'), r) for n, r in given.items()))
      lacking = [name for name, reason in given.items() if not str(reason).strip()]
      if lacking:
        raise VariableMapError(
          f'{field} of the variable map has no reason for {lacking[0]}: say why the other side '
          'does without it'
        )
    for side, only in (('tf1', self.tf1_only), ('tf2', self.tf2_only)):
      seen: dict[str, str] = dict.fromkeys(dict(only), f'{side}_only')
      for entry in self.entries:
        for name in getattr(entry, side):
          if name in seen:
            raise VariableMapError(
              f'the variable map names the {side} variable {name} twice: in {seen[name]} and in '
              f'{entry}; every variable belongs to one entry'
            )
          seen[name] = str(entry)

  @classmethod
  def of_names(cls, names: Mapping[str, str]) -> 'VariableMap':
    """Returns a map that only gives variables other names, from those of TF1."""
    return cls(tuple(MapEntry((one,), (other,)) for one, other in names.items()))

  @classmethod
  def read(cls, path: str | os.PathLike[str]) -> 'VariableMap':
    """Reads a map file.

    Raises:
      VariableMapError: it cannot be read, or is none; the message has file and line.
    """
    name = os.fspath(path)
    entries, tf1_only, tf2_only = variable_map_file.read(name)
    return cls(entries, tf1_only, tf2_only, source=name)

  def write(self, path: str | os.PathLike[str]) -> None:
    """Writes a map file, which `read` takes."""
    with open(path, 'w', encoding='utf-8') as file:
      file.write(self.to_text())

  def to_text(self) -> str:
    """Returns the map as the text of a map file."""
    return variable_map_file.to_text(self.entries, self.tf1_only, self.tf2_only)

  @property
  def tf1_names(self) -> tuple[str, ...]:
    """TF1's variables of all entries."""
    return tuple(name for entry in self.entries for name in entry.tf1)

  @property
  def tf2_names(self) -> tuple[str, ...]:
    """The port's variables of all entries, in their order."""
    return tuple(name for entry in self.entries for name in entry.tf2)

  def to_tf2(self, values: Mapping[str, Any], constants: bool = True) -> dict[str, np.ndarray]:
    """Returns the port's arrays by name.

    Args:
      values: TF1's arrays by name; those that the map leaves to TF1 may be there.
      constants: False for what a constant is not added to: gradients, slots.

    Raises:
      VariableMapError: a variable is missing, not in the map, or of a shape that does not fit.
    """
    given = self._checked(values, self.tf1_names, self.tf1_only, 'tf1')
    found: dict[str, np.ndarray] = {}
    for entry in self.entries:
      moved = entry.to_tf2([given[name] for name in entry.tf1], constants)
      found.update(zip(entry.tf2, moved, strict=True))
    return found

  def to_tf1(self, values: Mapping[str, Any], constants: bool = True) -> dict[str, np.ndarray]:
    """Returns TF1's arrays by name, of the port's; the inverse of `to_tf2`."""
    given = self._checked(values, self.tf2_names, self.tf2_only, 'tf2')
    found: dict[str, np.ndarray] = {}
    for entry in self.entries:
      moved = entry.to_tf1([given[name] for name in entry.tf2], constants)
      found.update(zip(entry.tf1, moved, strict=True))
    return found

  def _checked(
    self,
    values: Mapping[str, Any],
    names: Sequence[str],
    only: Sequence[tuple[str, str]],
    side: str,
  ) -> dict[str, np.ndarray]:
    given = {name.removesuffix(':0'): np.asarray(value) for name, value in values.items()}
    missing = [name for name in names if name not in given]
    unknown = [name for name in given if name not in names and name not in dict(only)]
    if missing or unknown:
      text = f'{self._called()} and the {side} values do not fit'
      if missing:
        text += f': no value for {listed(missing, _SHOWN)}'
      if unknown:
        text += f'{"; " if missing else ": "}the map does not name {listed(unknown, _SHOWN)}'
      closest = missing and unknown and difflib.get_close_matches(missing[0], unknown, 1, 0.6)
      raise VariableMapError(text + (f'. Is {closest[0]} meant?' if closest else ''))
    return given

  def _called(self) -> str:
    return f'the variable map {self.source}' if self.source else 'the variable map'

  def bound(self, tf1: Mapping[str, _Shape], tf2: Mapping[str, _Shape]) -> 'VariableMap':
    """Returns the map with all sizes, for two sides whose variables have these shapes.

    Variables that the map does not name are not paired.

    Raises:
      VariableMapError: the map names a variable that a side has not, or a layout does not fit.
    """
    for side, names, only, shapes in (
      ('tf1', self.tf1_names, self.tf1_only, tf1),
      ('tf2', self.tf2_names, self.tf2_only, tf2),
    ):
      unknown = [name for name in (*names, *dict(only)) if name not in shapes]
      if unknown:
        closest = difflib.get_close_matches(unknown[0], list(shapes), 1, 0.5)
        it_has = listed(list(shapes), _SHOWN)
        slip = f'. Is {closest[0]} meant?' if closest else f'; it has {it_has}'
        swapped = tf2 if side == 'tf1' else tf1
        if unknown[0] in swapped:
          slip = '. The other side does: TF1 is on the left, the port on the right'
        raise VariableMapError(
          f'{self._called()} names {listed(unknown, _SHOWN)}, which the {side} side does not '
          f'have{slip}'
        )
    entries = []
    for entry in map(MapEntry.simplified, self.entries):
      sides = [tf1[name] for name in entry.tf1], [tf2[name] for name in entry.tf2]
      if any(None in shape for side_shapes in sides for shape in side_shapes):
        entries.append(entry)
        continue
      ones, others = ([tuple(int(s or 0) for s in shape) for shape in shapes] for shapes in sides)
      if entry.patterns is None and ones[0] != others[0]:
        try:
          entries.append(entry.bound(ones, others))
        except VariableMapError:  # a port of another shape is a finding, and no fault of the map
          entries.append(entry)
        continue
      try:
        entries.append(entry.bound(ones, others))
      except VariableMapError as error:
        raise VariableMapError(f'{self._called()}: {error}') from error
    return dataclasses.replace(self, entries=tuple(entries))

  def in_order_of(self, tf2: Sequence[str]) -> 'VariableMap':
    """Returns the map with its entries in the order of the port's variables."""
    places = {name: number for number, name in enumerate(tf2)}
    entries = sorted(
      self.entries, key=lambda entry: min(places.get(name, len(places)) for name in entry.tf2)
    )
    return dataclasses.replace(self, entries=tuple(entries))
