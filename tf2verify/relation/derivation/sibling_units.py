"""Units of one side that one unit of the other side may do together.

A kernel with the columns of two, and whatever belongs to them: biases, gains of normalized kernels,
and what comes behind before the two are put together. A table with the rows of several. Products
that are summed, of which the other side makes one, with what they read put together.
"""

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.operations.variable_uses import LINEAR, LOOKUP, LOOP, VariableUses

# Units of more are not divided into groups, but taken as one.
_MOST_DIVIDED = 5
# So many of the last parts of names are looked at.
_DEEPEST = 3

Shape = tuple[int, ...]
_Totals = tuple[tuple[str, int], ...]
_Key = tuple[tuple[str, ...], tuple[Shape, ...], frozenset[int]]


@dataclasses.dataclass(frozen=True)
class Siblings:
  """Units that are put together.

  Attributes:
    together: the operations of each.
    rivals: variables of one role, among which those of each were chosen.
  """

  together: tuple[frozenset[int], ...] = ()
  rivals: tuple[tuple[str, ...], ...] = ()


def siblings(
  uses: VariableUses,
  left: Sequence[int],
  other: VariableUses,
  other_left: Sequence[int],
  choice: int = 0,
) -> Siblings:
  """Returns the units of one side that one unit of the other side may do together.

  Units that are done together read the same, have the same roles, and together as many
  elements for each role as a unit of the other side. What products that are summed read may differ.

  Args:
    uses: the units of a side.
    left: those without a partner.
    other: the units of the other side.
    other_left: those without a partner.
    choice: which division to take where several fit: two of three units of one size, say.
  """
  wanted = Counter(_totals(other, [unit]) for unit in other_left)
  if not wanted or len(left) < 2:
    return Siblings()
  order = uses.order(range(len(uses.units)))
  before = {unit: [n for n, _ in nearest] for unit, nearest in order.items()}
  group_of: dict[int, int] = {}
  found: list[frozenset[int]] = []
  summed = list(_summed(uses, left, wanted))
  found += [frozenset(op for unit in some for op in uses.units[unit].ops) for some in summed]
  left = [unit for unit in left if not any(unit in some for some in summed)]
  while True:
    made: set[int] = set()
    for (_, _, read), units in _groups(uses, left, before, group_of).items():
      # Of what reads something that was put together just now, there may be more.
      divisions = _divisions(uses, units, wanted) if made.isdisjoint(read) else []
      if not divisions:
        continue
      for together in divisions[choice % len(divisions)]:
        group_of.update(dict.fromkeys(together, min(together)))
        found.append(frozenset(op for unit in together for op in uses.units[unit].ops))
        made.update(together)
    if not made:
      return Siblings(tuple(found), tuple(_rivals(uses, before, group_of)))


def _rivals(
  uses: VariableUses, before: Mapping[int, Sequence[int]], grouped: Collection[int]
) -> Iterator[tuple[str, ...]]:
  """Yields variables of one role, of units that read the same, some of which are in a group.

  What is behind any of such units counts as behind each of them.
  """
  like: dict[int, int] = {}
  while True:
    alike = _groups(uses, range(len(uses.units)), before, like).values()
    some = [units for units in alike if any(unit in grouped for unit in units)]
    if not some:
      return
    for units in some:
      like.update(dict.fromkeys(units, min(units)))
      found: dict[str, dict[str, None]] = defaultdict(dict)
      for unit in units:
        for role, name in uses.units[unit].members:
          found[role][name] = None
      yield from map(tuple, found.values())


def _groups(
  uses: VariableUses,
  left: Sequence[int],
  before: Mapping[int, Sequence[int]],
  group_of: Mapping[int, int],
) -> dict[_Key, list[int]]:
  """Returns the units that are in no group, by their roles and what they read."""
  found: dict[_Key, list[int]] = defaultdict(list)
  for unit in left:
    members = uses.units[unit].members
    roles = tuple(role for role, _ in members)
    if unit not in group_of and roles and LOOP not in roles:
      # The rows of one table are of one size.
      rows = tuple(uses.shape(name)[1:] for role, name in members if role == LOOKUP)
      found[roles, rows, frozenset(group_of.get(n, n) for n in before[unit])].append(unit)
  return {key: units for key, units in found.items() if len(units) > 1}


def _summed(
  uses: VariableUses, left: Sequence[int], wanted: Counter[_Totals]
) -> Iterator[tuple[int, ...]]:
  """Yields products whose results are only summed, if the other side has one of all their sizes."""
  consumers = uses.graph.consumers()
  sums: dict[int, list[int]] = defaultdict(list)
  for unit in left:
    if [role for role, _ in uses.units[unit].members] != [LINEAR]:
      continue
    end = uses.units[unit].ops[-1]
    while len(consumers[end]) == 1 and _adds(uses, consumers[end][0][0]):
      end = consumers[end][0][0]
    if end != uses.units[unit].ops[-1]:
      sums[end].append(unit)
  for units in sums.values():
    if len(units) < 2 or not wanted[_totals(uses, units)]:
      continue
    ends = {op for unit in units for op in uses.units[unit].ops}
    before = {n for op in ends for n, _ in uses.graph.ops[op].inputs}
    if not ends & uses.graph.ancestors(before):
      yield tuple(units)


def _adds(uses: VariableUses, position: int) -> bool:
  return family(uses.graph.ops[position].op_type) in ('AddV2', 'AddN')


def _divisions(
  uses: VariableUses, units: Sequence[int], wanted: Counter[_Totals]
) -> list[list[tuple[int, ...]]]:
  """Returns the ways to put units together so that the other side has what comes out.

  The way that names tell comes first, then those that leave least alone.
  """
  ways = _partitions(tuple(units)) if len(units) <= _MOST_DIVIDED else iter([[tuple(units)]])
  found = []
  for way in ways:
    together = [some for some in way if len(some) > 1]
    totals = Counter(_totals(uses, some) for some in together)
    if together and all(wanted[one] >= count for one, count in totals.items()):
      alone = sum(_totals(uses, some) not in wanted for some in way if len(some) == 1)
      found.append((alone, len(way), together))
  found.sort(key=lambda one: one[:2])
  told = _by_names(uses, units, wanted)
  return [*told, *(together for _, _, together in found if together not in told)]


def _by_names(
  uses: VariableUses, units: Sequence[int], wanted: Counter[_Totals]
) -> list[list[tuple[int, ...]]]:
  """Returns the way in which units that are called alike in different scopes are put together.

  `head_0/query/kernel` and `head_1/query/kernel`, beside `head_0/key/kernel`; nothing without one.
  """
  for depth in range(2, _DEEPEST + 1):
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for unit in units:
      groups[tuple(uses.units[unit].members[0][1].split('/')[-depth:])].append(unit)
    together = [tuple(some) for some in groups.values()]
    totals = Counter(_totals(uses, some) for some in together)
    is_parted = len(groups) > 1 and all(len(some) > 1 for some in together)
    if is_parted and all(wanted[one] >= count for one, count in totals.items()):
      return [together]
  return []


def _partitions(units: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
  """Yields all ways to divide units into groups."""
  if not units:
    yield []
    return
  first, rest = units[0], units[1:]
  for size in range(len(rest), -1, -1):
    for some in itertools.combinations(rest, size):
      for others in _partitions(tuple(unit for unit in rest if unit not in some)):
        yield [(first, *some), *others]


def _totals(uses: VariableUses, units: Sequence[int]) -> _Totals:
  """Returns the number of elements for each role."""
  found: Counter[str] = Counter()
  for unit in units:
    for role, name in uses.units[unit].members:
      found[role] += uses.sizes[name]
  return tuple(sorted(found.items()))
