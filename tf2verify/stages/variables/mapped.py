"""A case's variable map, held against the variables of both sides."""

import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import Any

from tf2verify.errors import CaseDefinitionError
from tf2verify.records.observation import VariableRecord
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.layouts.variable_layouts import Group, Layouts, VariableLayout
from tf2verify.relation.names.alignment import Alignment
from tf2verify.relation.variable_map import VariableMap
from tf2verify.sides.side import Declaration, Inventory


@dataclasses.dataclass(frozen=True)
class Mapped:
  """A variable map that fits both sides.

  Attributes:
    variable_map: with the sizes of all axes.
    layouts: of the pairs of one variable and one.
    groups: of the other entries.
  """

  variable_map: VariableMap
  layouts: tuple[VariableLayout, ...]
  groups: tuple[Group, ...]

  def presentation(self) -> Layouts:
    """Returns how the port's variables are shown."""
    return Layouts(self.layouts, self.groups)

  def shown_names(self) -> dict[str, str]:
    """Returns by which names the port's variables are shown, by those of tf1."""
    found = {e.tf1[0]: e.tf2[0] for e in self.variable_map.entries if _is_pair(e)}
    for group in self.groups:
      found.update(zip(group.entry.tf1, group.names, strict=True))
    return found

  def alignment(self, tf1: Inventory, tf2: Inventory) -> Alignment:
    """Returns the pairs of the map; what it does not name has no partner.

    Args:
      tf1: the variables of the reference.
      tf2: those of the port, as they are shown.
    """
    names = self.shown_names()
    ones = [variable.name for variable in tf1.variables]
    others = [variable.name for variable in tf2.variables]
    return Alignment(
      pairs=tuple((name, names[name]) for name in ones if name in names),
      only_tf1=tuple(name for name in ones if name not in names),
      only_tf2=tuple(name for name in others if name not in names.values()),
      duplicates_tf1=(),
      duplicates_tf2=(),
      looked_for=(),
    )


DERIVE = 'derive'


def declared_map(declaration: Declaration) -> VariableMap | None:
  """Returns the map that a case declares; None where it has none, or wants it to be derived.

  Raises:
    CaseDefinitionError: `variable_map` is none, or its file cannot be read.
  """
  given: Any = getattr(declaration, 'variable_map', None)
  if given is None or (isinstance(given, str) and given == DERIVE):
    return None
  if getattr(declaration, 'variable_names', None) is not None:
    raise CaseDefinitionError(
      'the case declares variable_map and variable_names: which is it? A map gives names as well; '
      'leave variable_names out'
    )
  if isinstance(given, VariableMap):
    return given
  if isinstance(given, (str, os.PathLike)):
    return VariableMap.read(_path_of(declaration, os.fspath(given)))
  hint = ''
  if isinstance(given, Mapping):
    hint = '. If only names differ, VariableMap.of_names takes a mapping, or use variable_names'
  raise CaseDefinitionError(
    f'variable_map is a {type(given).__name__}; it must be None, a tf2verify.VariableMap, the path '
    f"of a map file, or 'derive'{hint}"
  )


def _path_of(declaration: Declaration, path: str) -> str:
  """Returns where a map file is: next to the file of the case, or in the working folder."""
  if os.path.isabs(path):
    return path
  cls = getattr(declaration, 'case_class', type(declaration))
  setter = next((c for c in cls.__mro__ if 'variable_map' in vars(c)), cls)
  tried = []
  for known in (setter, cls):
    file = getattr(sys.modules.get(known.__module__), '__file__', None)
    if file is not None:
      tried.append(os.path.join(os.path.dirname(os.path.abspath(file)), path))
  tried.append(os.path.abspath(path))
  found = next((one for one in tried if os.path.exists(one)), None)
  if found is None:
    raise CaseDefinitionError(
      f'variable_map = {path!r}: there is no such file (looked for: '
      f'{", ".join(dict.fromkeys(tried))}); the path is relative to the file '
      'of the case, and `python -m tf2verify map PATH::Case --out FILE` writes it'
    )
  return found


def fitted(variable_map: VariableMap, tf1: Inventory, tf2: Inventory) -> Mapped:
  """Holds a map against the variables of both sides.

  Args:
    variable_map: the map.
    tf1: the variables of the reference.
    tf2: those of the port, as they are.

  Raises:
    VariableMapError: it does not fit.
    CaseDefinitionError: a side has two variables of one name.
  """
  ones, others = _by_name(tf1, 'tf1'), _by_name(tf2, 'tf2')
  bound = variable_map.bound(
    {name: record.shape for name, record in ones.items()},
    {name: record.shape for name, record in others.items()},
  )
  layouts, groups = [], []
  for entry in bound.entries:
    shapes = [_shapes(entry.tf1, ones), _shapes(entry.tf2, others)]
    if not _is_pair(entry):
      trainable = tuple(ones[name].trainable for name in entry.tf1)
      groups.append(Group(entry, shapes[0], shapes[1], trainable))
    elif entry.layout:
      one, other = shapes[0][0], shapes[1][0]
      moved = None if entry.keeps_order else entry
      layouts.append(VariableLayout(entry.tf1[0], entry.tf2[0], one, other, moved))
  return Mapped(bound, tuple(layouts), tuple(groups))


def _by_name(inventory: Inventory, side: str) -> dict[str, VariableRecord]:
  found = {variable.name: variable for variable in inventory.variables}
  if len(found) < len(inventory.variables):
    names = [variable.name for variable in inventory.variables]
    twice = next(name for name in names if names.count(name) > 1)
    raise CaseDefinitionError(
      f'{twice} names several variables on the {side} side, so a map cannot tell them apart: '
      'give the layers that make them different names'
    )
  return found


def _shapes(
  names: tuple[str, ...], records: Mapping[str, VariableRecord]
) -> tuple[tuple[int, ...], ...]:
  return tuple(tuple(size or 0 for size in records[name].shape) for name in names)


def _is_pair(entry: MapEntry) -> bool:
  return len(entry.tf1) == len(entry.tf2) == 1


def layout_text(entry: MapEntry) -> str:
  """Returns how the variables of an entry lie; '' where they lie alike."""
  if not entry.layout:
    return ''
  added = ''.join(f', {value:g} added to {axis}' for axis, value in entry.added)
  return f'layout {entry.layout}{added}'
