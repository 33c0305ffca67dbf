"""Which unit of one graph has the place of which of the other."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from tf2verify.relation.names.roles import owner, told_one_to_one
from tf2verify.relation.operations.variable_uses import ADDED, LINEAR, SCALE, VariableUses, loose
from tf2verify.relation.operations.way_labels import Detail, Label

_Neighbours = list[tuple[int, Label]]
_Ends = Sequence[Sequence[int]] | None
# How far a place is looked at, in units.
_FARTHEST = 12
# How many units an activation may be away: a product has its gain and its bias before that.
_BENDS_BEHIND = 3


class UnitPairs:
  """Units of both sides in pairs, found by their places.

  A place is what a unit is (roles and sizes of its variables), what its neighbours are, what
  theirs are, and so on. Only what one place of each side has is a pair, the nearest look
  first, so that a fault somewhere changes nothing far from it.

  Attributes:
    tf1: the units of tf1.
    tf2: those of the port.
    tf2_of: the port's unit of each paired unit of tf1.
    reasons: why, for each paired unit of tf1.
    alike: the pairs that were taken by order, of several that have the same place.
    kinds: of these, the units of tf1 that have it.
    by_names: whether names were asked before order.
  """

  def __init__(self, tf1: VariableUses, tf2: VariableUses, by_names: bool = False) -> None:
    """Pairs what has one place.

    Args:
      tf1: the units of tf1.
      tf2: those of the port.
      by_names: whether names tell of several that have the same place which are pairs.
    """
    self.tf1, self.tf2, self.by_names = tf1, tf2, by_names
    self.tf2_of: dict[int, int] = {}
    self.reasons: dict[int, str] = {}
    self.alike: list[tuple[int, int]] = []
    self.kinds: list[tuple[int, ...]] = []
    self._pair_ends()
    for chosen, told, kind in (
      (_is_main, Detail.WAY, _members),
      (_is_main, Detail.NOTHING, _members),
      (_is_any, Detail.WAY, _members),
      (_is_any, Detail.NOTHING, _members),
      (_is_main, Detail.WAY, _main_members),
      (_is_any, Detail.WAY, _main_members),
      (_is_any, Detail.NOTHING, _main_members),
    ):
      self._pair_by_places(chosen, told, kind)
    self._pair_between()
    for told in (Detail.WAY, Detail.NOTHING):
      self._pair_by_places(_is_any, told, _loose_members)
    self._pair_in_detail()
    self._pair_behind()
    self._pair_alike()

  def _pair_in_detail(self) -> None:
    """Pairs what only the activations tell apart, or the arithmetic, that comes after it."""
    for told in (Detail.ACTIVATIONS, Detail.ARITHMETIC):
      self._pair_by_places(_is_any, told, _members)

  def _pair_alike(self) -> None:
    """Pairs what several places of one kind have, in order: they can be exchanged."""
    while True:
      sides = [
        _Side(uses, range(len(uses.units)), _members, Detail.NOTHING)
        for uses in (self.tf1, self.tf2)
      ]
      ones, others = self._places(sides, _FARTHEST)
      same = [
        (units, others[place])
        for place, units in ones.items()
        if len(units) == len(others.get(place, ())) and self._may_be_one(units[0], others[place][0])
      ]
      if not same:
        return
      units, partners = min(same, key=lambda found: found[0])
      names = _names(self.tf1, units), _names(self.tf2, partners)
      named = told_one_to_one(*names) if self.by_names else {}
      followed = {} if named else self._told_by_following(units, partners)
      named = named or followed
      number = min(named, default=0)
      one, other = units[number], partners[named.get(number, 0)]
      self.tf2_of[one] = other
      by = 'activations' if followed else 'names' if named else 'order'
      if len(units) > 1 and not named:
        self.alike.append((one, other))
        self.kinds.append(tuple(units))
      self.reasons[one] = (
        f'one of {len(units)} places that can be exchanged, by their {by}'
        if len(units) > 1
        else 'the only place of its kind'
      )
      for told in (Detail.WAY, Detail.NOTHING):
        self._pair_by_places(_is_any, told, _members)
      self._pair_in_detail()

  def _told_by_following(self, ones: Sequence[int], others: Sequence[int]) -> dict[int, int]:
    """Returns which units are followed by the same activations, or arithmetic, by their positions.

    What comes after that may be another layer on either side: a recurrent one has many forms.
    """
    if len(ones) == 1:
      return {}
    behind = _Following(self.tf1), _Following(self.tf2)
    for told in (Detail.ACTIVATIONS, Detail.ARITHMETIC):
      kinds = [
        [side.bends(unit, told) for unit in units]
        for side, units in zip(behind, (ones, others), strict=True)
      ]
      if set(kinds[0]) == set(kinds[1]) and len(set(kinds[0])) == len(ones):
        return {n: kinds[1].index(kind) for n, kind in enumerate(kinds[0])}
    return {}

  def _pair_ends(self) -> None:
    places = {name: n for n, name in enumerate(self.tf2.names) if name}
    for number, name in enumerate(self.tf1.names):
      if name in places:
        self.tf2_of[number] = places[name]

  @property
  def left(self) -> tuple[list[int], list[int]]:
    """The units of both sides without a partner."""
    taken = set(self.tf2_of.values())
    return (
      [n for n, name in enumerate(self.tf1.names) if not name and n not in self.tf2_of],
      [n for n, name in enumerate(self.tf2.names) if not name and n not in taken],
    )

  def _pair_by_places(
    self,
    chosen: Callable[[VariableUses, int], bool],
    told: Detail,
    kind: Callable[[VariableUses, int], Hashable],
  ) -> None:
    taken = set(self.tf2_of.values())
    sides = []
    for uses, paired in ((self.tf1, self.tf2_of.keys()), (self.tf2, taken)):
      some = [n for n in range(len(uses.units)) if n in paired or chosen(uses, n)]
      sides.append(_Side(uses, some, kind, told))
    while True:
      for radius in range(_FARTHEST + 1):
        found = self._alone(sides, radius)
        if found:
          break
      else:
        return
      for one, other in found:
        self.tf2_of[one] = other
        near = 'its own kind' if not radius else f'the units up to {radius} away'
        self.reasons[one] = f'the only place of its kind, by {near}'

  def _places(self, sides: 'Sequence[_Side]', radius: int) -> list[dict[int, list[int]]]:
    """Returns the units of each side that have no partner, by their place as far as it is seen."""
    anchors = (
      {one: ('pair', one) for one in self.tf2_of},
      {other: ('pair', one) for one, other in self.tf2_of.items()},
    )
    return [
      _by_place(side.places(known, radius), known)
      for side, known in zip(sides, anchors, strict=True)
    ]

  def _alone(self, sides: 'Sequence[_Side]', radius: int) -> list[tuple[int, int]]:
    """Returns the pairs of units that alone have their place, as far as it is looked at."""
    ones, others = self._places(sides, radius)
    return [
      (units[0], others[place][0])
      for place, units in ones.items()
      if len(units) == 1
      and len(others.get(place, ())) == 1
      and self._may_be_one(units[0], others[place][0])
    ]

  def _may_be_one(self, one: int, other: int) -> bool:
    """Returns whether units are not matrix products with matrices of different shapes.

    What has as many elements may be the same in another layout; not if both sides multiply by it.
    """
    shapes = [
      [uses.matrices.get(name) for role, name in uses.units[unit].members if role == LINEAR]
      for uses, unit in ((self.tf1, one), (self.tf2, other))
    ]
    return any(len(side) != 1 or None in side for side in shapes) or shapes[0] == shapes[1]

  def _pair_between(self) -> None:
    """Pairs what is left by the pairs that it lies between, where only one of its kind does."""

    def ends(uses: VariableUses, known: Collection[int], left: int) -> _Ends:
      return uses.around(known, left)

    while self._pair_by_ends(ends, 'the only one of its kind between the same units'):
      pass

  def _pair_behind(self) -> None:
    """Pairs what is left by what it reads, where that is known and only one of its kind reads it.

    What one side adds to a product, and then to something else, the other may sum otherwise.
    """
    before = {
      uses: {n: [one for one, _ in near] for n, near in uses.order(range(len(uses.units))).items()}
      for uses in (self.tf1, self.tf2)
    }

    def ends(uses: VariableUses, known: Collection[int], left: int) -> _Ends:
      nearest = before[uses][left]
      is_told = nearest and all(one in known for one in nearest)
      # What is read more than once has several places.
      is_told = is_told and uses.repeated.isdisjoint(n for _, n in uses.units[left].members)
      return (nearest,) if is_told else None

    while self._pair_by_ends(ends, 'the only one of its kind that reads the same units'):
      pass

  def _pair_by_ends(
    self, ends: Callable[[VariableUses, Collection[int], int], _Ends], reason: str
  ) -> bool:
    """Pairs what is left by pairs around it, where only one of its kind has them.

    Args:
      ends: returns the units around one, of those that have a partner; None to leave it out.
      reason: for the pairs.

    Returns:
      Whether anything was paired.
    """
    partner = {other: one for one, other in self.tf2_of.items()}
    places: list[dict[Hashable, list[int]]] = []
    for uses, known, left in zip(
      (self.tf1, self.tf2), ({one: one for one in self.tf2_of}, partner), self.left, strict=True
    ):
      found: dict[Hashable, list[int]] = defaultdict(list)
      for number in left:
        around = ends(uses, known.keys(), number)
        if around is not None:
          named = tuple(frozenset(known[n] for n in end) for end in around)
          found[_members(uses, number), named].append(number)
      places.append(found)
    pairs = [
      (units[0], places[1][place][0])
      for place, units in places[0].items()
      if len(units) == len(places[1].get(place, ())) == 1
      and self._may_be_one(units[0], places[1][place][0])
    ]
    for one, other in pairs:
      self.tf2_of[one] = other
      self.reasons[one] = reason
    return bool(pairs)


class _Side:
  """Some units of a side, and their neighbours."""

  def __init__(
    self,
    uses: VariableUses,
    chosen: Sequence[int],
    kind: Callable[[VariableUses, int], Hashable],
    told: Detail,
  ) -> None:
    self._kinds = {n: kind(uses, n) for n in chosen}
    self._before: dict[int, _Neighbours] = {n: [] for n in chosen}
    self._behind: dict[int, _Neighbours] = {n: [] for n in chosen}
    for unit, nearest in uses.order(chosen).items():
      for other, label in nearest:
        known = told.of(label)
        self._before[unit].append((other, known))
        self._behind[other].append((unit, known))

  def places(self, anchors: Mapping[int, Hashable], radius: int) -> dict[int, int]:
    """Returns a number for the place of each unit; the same on both sides for the same place."""
    now = {n: hash(anchors.get(n, kind)) for n, kind in self._kinds.items()}
    for _ in range(radius):
      following = {}
      for n, own in now.items():
        if n in anchors:
          following[n] = own
          continue
        around = [
          tuple(sorted((tuple(sorted(label)), now[other]) for other, label in neighbours[n]))
          for neighbours in (self._before, self._behind)
        ]
        following[n] = hash((own, around[0], around[1]))
      now = following
    return now


def _by_place(places: dict[int, int], known: Collection[int]) -> dict[int, list[int]]:
  found: dict[int, list[int]] = defaultdict(list)
  for unit, place in places.items():
    if unit not in known:
      found[place].append(unit)
  return found


def _names(uses: VariableUses, units: Sequence[int]) -> list[str]:
  """Returns what the scope of each unit's variables is called."""
  return [' '.join(owner(name) for _, name in uses.units[unit].members) for unit in units]


class _Following:
  """What follows each unit of a side."""

  def __init__(self, uses: VariableUses) -> None:
    self._behind: dict[int, _Neighbours] = defaultdict(list)
    for unit, nearest in uses.order(range(len(uses.units))).items():
      for other, label in nearest:
        self._behind[other].append((unit, label))

  def bends(self, unit: int, told: Detail) -> Label:
    """Returns the activations, or arithmetic, that come next: behind the bias of a product, say."""
    units = [unit]
    for _ in range(_BENDS_BEHIND):
      ways = [way for one in units for way in self._behind[one]]
      found = frozenset(token for _, label in ways for token in told.bends(label))
      if found:
        return found
      units = [other for other, _ in ways]
    return frozenset()


def _is_main(uses: VariableUses, unit: int) -> bool:
  return uses.units[unit].is_main


def _is_any(uses: VariableUses, unit: int) -> bool:
  del uses, unit
  return True


def _members(uses: VariableUses, unit: int) -> Hashable:
  if uses.names[unit]:
    return uses.names[unit]
  return _totals(uses, unit)


def _main_members(uses: VariableUses, unit: int) -> Hashable:
  """Returns what a unit is without what another implementation may add or leave out."""
  if uses.names[unit]:
    return uses.names[unit]
  members = _totals(uses, unit)
  return tuple(member for member in members if member[0] not in (SCALE, ADDED)) or members


def _totals(uses: VariableUses, unit: int) -> tuple[tuple[str, int], ...]:
  """Returns the number of elements for each role: what one side splits, the other may merge."""
  found: dict[str, int] = {}
  for role, name in uses.units[unit].members:
    found[role] = found.get(role, 0) + uses.sizes[name]
  return tuple(sorted(found.items()))


def _loose_members(uses: VariableUses, unit: int) -> Hashable:
  """Returns what a unit is where a product with a vector counts as a scale, whose sum it is."""
  if uses.names[unit]:
    return uses.names[unit]
  found: Counter[str] = Counter()
  for role, name in uses.units[unit].members:
    found[loose(role)] += uses.sizes[name]
  return tuple(sorted(found.items()))
