"""Products of one side that one product of the other side may do together."""

from collections import defaultdict
from collections.abc import Sequence

from tf2verify.relation.variable_uses import ADDED, LINEAR, VariableUses


def siblings(
  uses: VariableUses, left: Sequence[int], other: VariableUses, other_left: Sequence[int]
) -> list[frozenset[int]]:
  """Returns the products of one side that one product of the other side may do together."""
  wanted = {
    (role, other.sizes[name])
    for unit in other_left
    for role, name in other.units[unit].members
    if len(other.units[unit].members) == 1
  }
  order = uses.order(range(len(uses.units)))
  groups: dict[tuple[str, frozenset[int]], list[int]] = defaultdict(list)
  for unit in left:
    members = uses.units[unit].members
    if len(members) == 1 and members[0][0] == LINEAR:
      groups[(LINEAR, frozenset(n for n, _ in order[unit]))].append(unit)
  found: list[frozenset[int]] = []
  merged: dict[int, int] = {}
  for group in groups.values():
    total = sum(uses.sizes[uses.units[unit].members[0][1]] for unit in group)
    if len(group) > 1 and (LINEAR, total) in wanted:
      merged.update((unit, len(found)) for unit in group)
      found.append(frozenset(op for unit in group for op in uses.units[unit].ops))
  behind: dict[int, list[int]] = defaultdict(list)
  for unit in left:
    members, nearest = uses.units[unit].members, [n for n, _ in order[unit]]
    if len(members) == 1 and members[0][0] == ADDED and len(nearest) == 1 and nearest[0] in merged:
      behind[merged[nearest[0]]].append(unit)
  for group in behind.values():
    total = sum(uses.sizes[uses.units[unit].members[0][1]] for unit in group)
    if len(group) > 1 and (ADDED, total) in wanted:
      found.append(frozenset(op for unit in group for op in uses.units[unit].ops))
  return found
