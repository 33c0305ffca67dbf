"""Which variables of a unit of tf1 are which of a unit of the port, and how their elements lie."""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from tf2verify.relation.derivation.flattened_rows import row_entries
from tf2verify.relation.layouts import derived_layouts
from tf2verify.relation.layouts.derived_layouts import Shape
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.names.roles import WORD, owner, telling_words
from tf2verify.relation.operations.variable_uses import LOOP, VariableUses, loose

# Some variables of tf1, and those of the port that hold their elements; one of the two is alone.
Group = tuple[list[str], list[str]]


@dataclasses.dataclass(frozen=True)
class Held:
  """How variables of one role hold the elements of those of the other side."""

  role: str
  entries: tuple[MapEntry, ...]  # those that may be theirs; likely ones first
  turned: int  # so many of them, the first ones, have rows in the order of what is flattened


class UnitEntries:
  """Makes the entries for the variables of two units that are a pair."""

  def __init__(
    self,
    tf1: VariableUses,
    tf2: VariableUses,
    tf1_shapes: Mapping[str, Shape],
    tf2_shapes: Mapping[str, Shape],
  ) -> None:
    """Takes both sides.

    Args:
      tf1: the units of tf1.
      tf2: those of the port.
      tf1_shapes: of all variables of tf1, in the order in which it makes them.
      tf2_shapes: likewise, of the port.
    """
    self._uses = tf1, tf2
    self._shapes = tf1_shapes, tf2_shapes
    self._firsts = _first_words(tf1_shapes), _first_words(tf2_shapes)

  def of_units(self, one: int, other: int, taken: Sequence[set[str]]) -> Iterator[Held]:
    """Yields, for each group of variables, the entries that may be theirs.

    Args:
      one: the unit of tf1.
      other: that of the port.
      taken: the variables of tf1, and of the port, that have a partner.
    """
    members = [self._uses[0].units[one].members, self._uses[1].units[other].members]
    if {role for role, _ in members[0]}.isdisjoint(role for role, _ in members[1]):
      members = [tuple((loose(role), name) for role, name in own) for own in members]
    for role in dict.fromkeys(role for role, _ in members[0]):
      ones, twos = (
        [name for r, name in own if r == role and name not in done]
        for own, done in zip(members, taken, strict=True)
      )
      if role == LOOP or not ones or not twos:
        continue
      for group in self._groups(ones, twos):
        usual = self._of_group(*group)
        is_pair = len(group[0]) == len(group[1]) == 1
        turned = row_entries(self._uses, group[0][0], group[1][0]) if is_pair else []
        if usual or turned:
          yield Held(role, (*turned, *usual), len(turned))

  def _of_group(self, ones: list[str], twos: list[str]) -> list[MapEntry]:
    flips = [
      [uses.flipped.get(name, False) for name in names]
      for uses, names in zip(self._uses, (ones, twos), strict=True)
    ]
    is_transposed = flips[0][0] != flips[1][0]
    if len(ones) == len(twos) == 1:
      shapes = self._shapes[0][ones[0]], self._shapes[1][twos[0]]
      layouts = derived_layouts.layouts_of_pair(*shapes, is_transposed)
      if not layouts and shapes[0] != shapes[1]:
        layouts = ['']  # a variable of another size: a finding
      return [MapEntry((ones[0],), (twos[0],), layout) for layout in layouts]
    side = 0 if len(ones) == 1 else 1
    whole, parts = (ones, twos) if side == 0 else (twos, ones)
    shaped = [(name, self._shapes[1 - side][name]) for name in self.in_order(1 - side, parts)]
    found = derived_layouts.splits(whole[0], self._shapes[side][whole[0]], shaped, is_transposed)
    return found if side == 0 else derived_layouts.merged(found)

  def _groups(self, ones: list[str], twos: list[str]) -> list[Group]:
    """Returns which variables of one role belong together, of direction and gain of a kernel, say.

    Shapes tell that: what is a part of something has its shape but for one axis, and all
    parts have as many elements as the whole. Where several have one shape, it is told by the
    operations that they pass, or by the input that they are of the one that reads them: the bounds
    of a quantization. What none of this tells is in no group.
    """
    if len(ones) == 1 or len(twos) == 1:
      return [(ones, twos)]
    by_shape = self._of_wholes(0, ones, twos)
    if not by_shape:
      by_shape = [(parts, whole) for whole, parts in self._of_wholes(1, twos, ones)]
    if by_shape:
      return by_shape
    for told in (self._path, self._slot):
      kinds = _by(told(0), ones), _by(told(1), twos)
      if len(kinds[0]) > 1 and kinds[0].keys() == kinds[1].keys():
        return [
          group for kind, names in kinds[0].items() for group in self._groups(names, kinds[1][kind])
        ]
    return []

  def _of_wholes(self, side: int, wholes: list[str], parts: list[str]) -> list[Group]:
    """Returns the parts of each of some variables of a side; nothing if shapes do not tell."""
    found = []
    for whole in wholes:
      own = [
        part
        for part in parts
        if derived_layouts.may_be_part(self._shapes[side][whole], self._shapes[1 - side][part])
      ]
      found.append(([whole], own))
    used = [part for _, own in found for part in own]
    return found if len(used) == len(set(used)) and all(own for _, own in found) else []

  def _path(self, side: int) -> Callable[[str], Hashable]:
    return lambda name: self._uses[side].paths.get(name, ())

  def _slot(self, side: int) -> Callable[[str], Hashable]:
    return self._uses[side].slots.get

  def in_order(self, side: int, names: Sequence[str]) -> list[str]:
    """Returns parts of one variable in an order that is the same for all variables of a layer.

    So kernels and biases are in one order, in every layer of a kind, and a bias that the port
    adds to the wrong part does not turn the order round. It is the order in which the words that
    tell the parts apart, or else their scopes, occur first among all variables of the side.

    Args:
      side: 0 for tf1, 1 for the port.
      names: of the parts.
    """
    listed = list(self._shapes[side])
    own = telling_words(names)
    if all(own):
      firsts = self._firsts[side]
      return sorted(names, key=lambda name: (min(firsts[w] for w in own[names.index(name)]), name))
    scopes = [owner(name) for name in listed]
    return sorted(names, key=lambda name: (scopes.index(owner(name)), listed.index(name)))


def _by(told: Callable[[str], Hashable], names: Iterable[str]) -> dict[Hashable, list[str]]:
  found: dict[Hashable, list[str]] = defaultdict(list)
  for name in names:
    found[told(name)].append(name)
  return found


def _first_words(names: Mapping[str, Shape]) -> dict[str, int]:
  found: dict[str, int] = {}
  for name in names:
    for word in WORD.findall(name.lower()):
      found.setdefault(word, len(found))
  return found
