"""A variable map derived from what the variables of both sides do."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tf2verify.records.observation import VariableRecord
from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.relation.derivation.leftover_pairs import leftover_pairs
from tf2verify.relation.derivation.name_contradictions import contradicted, crossed
from tf2verify.relation.derivation.part_activations import likely_order
from tf2verify.relation.derivation.result import Choice, Derivation, Place
from tf2verify.relation.derivation.shared_variables import shared_by
from tf2verify.relation.derivation.sibling_units import Siblings, siblings
from tf2verify.relation.derivation.undivided import undivided, undivided_inputs
from tf2verify.relation.derivation.unit_entries import UnitEntries
from tf2verify.relation.derivation.unit_pairs import UnitPairs
from tf2verify.relation.layouts import cell_layouts
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.layouts.stored_cells import StoredCell, cell_pairs, stored_cells
from tf2verify.relation.names.roles import may_be_one, owner
from tf2verify.relation.names.roles import role as role_of
from tf2verify.relation.operations.variable_uses import VariableUses

_Shapes = Mapping[str, tuple[int, ...]]
_Kind = tuple[str, bool]  # dtype, and whether it is trained
# So many ways to put units together are tried.
_MOST_DIVISIONS = 6
_CELL = 'the cells of both sides, in order, have these shapes'


def derive(
  tf1: OpGraph,
  tf2: OpGraph,
  tf1_variables: Sequence[VariableRecord],
  tf2_variables: Sequence[VariableRecord],
) -> Iterator[Derivation]:
  """Derives which variables of the port are which of the reference.

  Yields what the graphs may tell, the likely derivation first. There are several where they do
  not tell which units of one side the other side does together; numbers decide.

  Args:
    tf1: the graph of the reference.
    tf2: that of the port, whose variables bear their own names.
    tf1_variables: of the reference.
    tf2_variables: of the port.
  """
  shapes = [_shapes(variables) for variables in (tf1_variables, tf2_variables)]
  scalars = _scalars(tf1_variables), _scalars(tf2_variables)
  sides = VariableUses(tf1, shapes[0]), VariableUses(tf2, shapes[1])
  by_order = UnitPairs(*sides)
  yield from _derived(by_order, (tf1, tf2), shapes, scalars)
  # Names may tell what is of one kind in the graphs: norms of the gates of a cell.
  by_names = UnitPairs(*sides, by_names=True)
  if by_names.tf2_of != by_order.tf2_of:
    yield from _derived(by_names, (tf1, tf2), shapes, scalars)


def _derived(
  alone: UnitPairs,
  graphs: tuple[OpGraph, OpGraph],
  shapes: Sequence[_Shapes],
  scalars: tuple[Mapping[str, _Kind], Mapping[str, _Kind]],
) -> Iterator[Derivation]:
  """Yields what pairs of units tell, and what they tell with some of a side put together."""
  sides = alone.tf1, alone.tf2
  found = [(alone, (Siblings(), Siblings()))]
  for choice in range(_MOST_DIVISIONS):
    together = (
      siblings(sides[0], alone.left[0], sides[1], alone.left[1], choice),
      siblings(sides[1], alone.left[1], sides[0], alone.left[0], choice),
    )
    if any(known == together for _, known in found):
      break
    merged = (
      VariableUses(graphs[0], shapes[0], together[0].together),
      VariableUses(graphs[1], shapes[1], together[1].together),
    )
    found.append((UnitPairs(*merged, by_names=alone.by_names), together))
  most = max(_count(pairs) for pairs, _ in found)
  for pairs, together in found[:1] if _count(alone) == most else found:
    if _count(pairs) == most:
      told = _Entries(pairs, shapes[0], shapes[1], scalars).derivation()
      entries = [entry for choice in told.choices for entry in choice.alternatives[0]]
      otherwise = contradicted(entries, [one.rivals for one in together], shapes)
      yield dataclasses.replace(
        told,
        crossed=tuple(dict.fromkeys((*told.crossed, *otherwise))),
      )


def _shapes(variables: Iterable[VariableRecord]) -> dict[str, tuple[int, ...]]:
  return {v.name: tuple(size or 0 for size in v.shape) for v in variables}


def _scalars(variables: Iterable[VariableRecord]) -> dict[str, _Kind]:
  return {v.name: (v.dtype, v.trainable) for v in variables if v.shape == ()}


def _are_paired_singly(one: StoredCell, other: StoredCell) -> bool:
  """Returns whether each variable has a gate of its own on both sides, and they have one form."""
  return one.form == other.form and all(len(stored.gates) == 1 for stored in one.variables)


def _is_computed_with(name: str, kind: _Kind, graph: OpGraph) -> bool:
  """Returns whether one number is a part of the model, as a bias or a bound, and no counter."""
  dtype, is_trained = kind
  is_read = any(op.op_type == VARIABLE and op.name == name for op in graph.ops)
  return dtype.startswith(('float', 'bfloat')) and (is_trained or is_read)


def _count(pairs: UnitPairs) -> int:
  """Returns how many variables are in pairs of units."""
  return sum(len(pairs.tf1.units[one].members) for one in pairs.tf2_of)


class _Entries:
  """Makes entries of pairs of units."""

  def __init__(
    self,
    pairs: UnitPairs,
    tf1_shapes: _Shapes,
    tf2_shapes: _Shapes,
    scalars: tuple[Mapping[str, _Kind], Mapping[str, _Kind]],
  ) -> None:
    self._pairs = pairs
    self._scalars = scalars
    self._shapes = tf1_shapes, tf2_shapes
    self._unit_entries = UnitEntries(pairs.tf1, pairs.tf2, tf1_shapes, tf2_shapes)
    self._choices: list[Choice] = []
    self._taken: tuple[set[str], set[str]] = set(), set()
    self._exchangeable: list[str] = []
    members = [[pairs.tf1.units[one].members for one in kind] for kind in pairs.kinds]
    self._alike = [tuple(one[0][1] for one in kind if len(one) == 1) for kind in members]

  def derivation(self) -> Derivation:
    """Returns everything that the pairs tell."""
    self._cells()
    places = []
    by_order = {one for one, _ in self._pairs.alike}
    for one in sorted(self._pairs.tf2_of):
      other = self._pairs.tf2_of[one]
      if self._pairs.tf1.names[one]:
        continue
      before = len(self._choices)
      self._of_units(one, other)
      names = tuple(
        name
        for choice in self._choices[before:]
        for entry in choice.alternatives[0]
        for name in entry.tf1
      )
      if one in by_order:
        self._exchangeable += names
      # One side may take apart what is one operation of the other: what comes out is the same.
      last = self._pairs.tf1.units[one].ops[-1], self._pairs.tf2.units[other].ops[-1]
      places.append(Place(*last, names))
    self._of_same_name()
    self._only_ones_left()
    self._left_in_scopes()
    left = [
      tuple((name, self._why(side, name)) for name in shapes if name not in taken)
      for side, (shapes, taken) in enumerate(zip(self._shapes, self._taken, strict=True))
    ]
    return Derivation(
      tuple(self._choices),
      tuple(places),
      left[0],
      left[1],
      tuple(crossed([choice.alternatives[0] for choice in self._choices], self._shapes[1])),
      tuple(self._exchangeable),
      tuple(self._alike),
    )

  def _single_pairs(self) -> dict[str, str]:
    """Returns the port's variable of each of tf1 that has one for itself, so far."""
    return {
      entry.tf1[0]: entry.tf2[0]
      for choice in self._choices
      for entry in choice.alternatives[0]
      if len(entry.tf1) == len(entry.tf2) == 1
    }

  def _why(self, side: int, name: str) -> str:
    """Returns why a variable of a side has no partner."""
    said = f'{self._shapes[side][name]}, and no variable there has its place'
    pairs = self._single_pairs()
    partner = {other: one for one, other in pairs.items()} if side else pairs
    shapes = self._shapes[side], self._shapes[1 - side]
    graphs = self._pairs.tf1.graph, self._pairs.tf2.graph
    known = shared_by(name, partner, shapes, graphs[::-1] if side else graphs)
    if known is not None:
      said += (
        f'; {known[0]}, the partner of {known[1]}, is read by more operations than that: one '
        'variable may serve for both'
      )
    return said

  def _add(
    self,
    alternatives: Iterable[Sequence[MapEntry]],
    reason: str,
    is_split: bool = False,
    turned: int = 0,
  ) -> None:
    made = tuple(
      tuple(dataclasses.replace(self._bound(entry), reason=reason) for entry in entries)
      for entries in alternatives
    )
    if made:
      likely = None
      if is_split and not turned and all(len(entries) == 1 for entries in made):
        likely = likely_order((self._pairs.tf1, self._pairs.tf2), [entry for (entry,) in made])
      self._choices.append(Choice(made, is_split, turned, likely))
      for entry in made[0]:
        self._taken[0].update(entry.tf1)
        self._taken[1].update(entry.tf2)

  def _bound(self, entry: MapEntry) -> MapEntry:
    """Returns an entry with the sizes of all axes; a pair of other sizes as it is: a finding."""
    sides = [
      [shapes[name] for name in names]
      for shapes, names in zip(self._shapes, (entry.tf1, entry.tf2), strict=True)
    ]
    return entry.bound(*sides) if entry.layout else entry

  def _of_units(self, one: int, other: int) -> None:
    """Pairs the variables of two units, role by role."""
    reason = self._pairs.reasons.get(one, '')
    for held in self._unit_entries.of_units(one, other, self._taken):
      first = held.entries[0]
      is_split = len(first.tf1) + len(first.tf2) > 2
      alternatives = [[entry] for entry in held.entries]
      self._add(alternatives, f'{held.role}: {reason}', is_split, held.turned)

  def _cells(self) -> None:
    """Pairs cells of recurrent networks, however their gates, inputs and state are kept."""
    ones, others = (
      stored_cells(
        shapes, uses.repeated, usual, uses.recurrent, undivided(uses), undivided_inputs(uses)
      )
      for shapes, uses, usual in zip(
        self._shapes, (self._pairs.tf1, self._pairs.tf2), cell_layouts.USUAL_ORDERS, strict=True
      )
    )
    for one, other in cell_pairs(ones, others, self._scopes_in_pairs()):
      if not _are_paired_singly(one, other):
        self._add(cell_layouts.held_entries(one, other), _CELL)

  def _scopes_in_pairs(self) -> Mapping[tuple[str, str], int]:
    """Returns how many variables have partners by their places, by the scopes of both."""
    by_order = {one for one, _ in self._pairs.alike}
    found: Counter[tuple[str, str]] = Counter()
    for one, other in self._pairs.tf2_of.items():
      if one not in by_order:
        partners = dict(self._pairs.tf2.units[other].members)
        found.update(
          (owner(name), owner(partners[role]))
          for role, name in self._pairs.tf1.units[one].members
          if role in partners
        )
    return found

  def _of_same_name(self) -> None:
    """Pairs what has no partner, and one name on both sides."""
    for name, shape in self._shapes[0].items():
      is_free = name not in self._taken[0] and name not in self._taken[1]
      if is_free and self._shapes[1].get(name) == shape:
        self._add([[MapEntry((name,), (name,))]], 'the same name and shape on both sides')

  def _only_ones_left(self) -> None:
    """Pairs what has no partner, where role and shape leave one; then what is in their scopes.

    A layer that the port calls twice, or not at all, has no place that both graphs have.
    """
    scopes: dict[str, str] = {}
    for one, other in self._unique(lambda name: ''):
      self._add(
        [[MapEntry((one,), (other,))]], 'the only ones of this role and shape that are left'
      )
      scopes[owner(owner(one))] = owner(owner(other))
    back = {other: one for one, other in scopes.items()}
    for one, other in self._unique(
      lambda name: owner(owner(name)), scopes.get, lambda scope: scope if scope in back else None
    ):
      where = f'the only ones of this role and shape in {scopes[owner(owner(one))]}'
      self._add([[MapEntry((one,), (other,))]], where)
    # Names of somebody's own, `gates`, have no role; two roles that differ are never one variable.
    for one, other in self._unique(lambda name: '', role=lambda name: ''):
      if role_of(one) == role_of(other) or not (role_of(one) and role_of(other)):
        self._add([[MapEntry((one,), (other,))]], 'the only ones of this shape that are left')

    # What counts something need not be read by what is computed.
    for one, other in self._only_scalars():
      self._add(
        [[MapEntry((one,), (other,))]], 'the only ones of one element and this dtype that are left'
      )

  def _only_scalars(self) -> list[tuple[str, str]]:
    found: list[dict[_Kind, list[str]]] = [defaultdict(list), defaultdict(list)]
    for known, taken, kinds in zip(self._scalars, self._taken, found, strict=True):
      for name, kind in known.items():
        if name not in taken:
          kinds[kind].append(name)
    return [
      (ones[0], others[0])
      for kind, ones in found[0].items()
      if len(ones) == len(others := found[1].get(kind, [])) == 1 and may_be_one(ones[0], others[0])
    ]

  def _left_in_scopes(self) -> None:
    """Pairs what has no partner by its scope; names and order say which is which of several."""
    pairs = self._single_pairs()
    tables = self._pairs.tf1.tables, self._pairs.tf2.tables
    left = self._left_by_kind(0), self._left_by_kind(1)
    for kind, shapes in left[0].items():
      for reason, alternatives in leftover_pairs(pairs, shapes, left[1].get(kind, {}), tables):
        first = alternatives[0][0]
        self._add(alternatives, reason, is_split=len(first.tf1) + len(first.tf2) > 2)
        if len(alternatives[0]) > 1:
          names = tuple(name for entry in alternatives[0] for name in entry.tf1)
          self._exchangeable += names
          self._alike.append(names)

  def _left_by_kind(self, side: int) -> dict[_Kind | None, dict[str, tuple[int, ...]]]:
    """Returns the shapes of what has no partner; counters and flags apart from all else, by dtype.

    The kind of what the model computes with is None.
    """
    graph = (self._pairs.tf1, self._pairs.tf2)[side].graph
    found: dict[_Kind | None, dict[str, tuple[int, ...]]] = {None: {}}
    for name, shape in self._shapes[side].items():
      kind = self._scalars[side].get(name)
      if kind is not None and _is_computed_with(name, kind, graph):
        kind = None
      if name not in self._taken[side]:
        found.setdefault(kind, {})[name] = shape
    return found

  def _unique(
    self,
    scope_of: Callable[[str], str],
    tf1_scope: Callable[[str], str | None] = lambda scope: scope,
    tf2_scope: Callable[[str], str | None] = lambda scope: scope,
    role: Callable[[str], str | None] = lambda name: role_of(name) or None,
  ) -> list[tuple[str, str]]:
    """Returns the pairs of what is left that alone have a scope, role and shape on both sides.

    Args:
      scope_of: returns the scope of a name.
      tf1_scope: returns the port's for one of tf1, None where it is not known.
      tf2_scope: returns one of the port's, None where it is not known.
      role: returns the role of a name, None for one that is left out.
    """
    found: list[dict[object, list[str]]] = []
    for shapes, taken, known in zip(self._shapes, self._taken, (tf1_scope, tf2_scope), strict=True):
      kinds: dict[object, list[str]] = defaultdict(list)
      for name, shape in shapes.items():
        scope = known(scope_of(name))
        if name not in taken and role(name) is not None and scope is not None and shape:
          kinds[scope, role(name), shape].append(name)
      found.append(kinds)
    return [
      (ones[0], found[1][kind][0])
      for kind, ones in found[0].items()
      if len(ones) == 1 and len(found[1].get(kind, ())) == 1
    ]
