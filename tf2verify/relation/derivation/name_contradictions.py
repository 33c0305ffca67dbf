"""Variables paired differently than clear names tell: exchanges, which a map must not hide."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.names.exchanged_names import exchanged
from tf2verify.relation.names.roles import told_pairs, words
from tf2verify.relation.names.words import beginning

_Shapes = Mapping[str, tuple[int, ...]]


def crossed(
  alternatives: Iterable[Sequence[MapEntry]], tf2_shapes: _Shapes
) -> Iterator[tuple[str, str]]:
  """Yields pairs by name, of variables that the graphs pair differently, one with one.

  Args:
    alternatives: the entries of each choice, the likely ones.
    tf2_shapes: of the variables of the port.
  """
  partner = {
    entries[0].tf1[0]: entries[0].tf2[0]
    for entries in alternatives
    if len(entries) == 1 and len(entries[0].tf1) == len(entries[0].tf2) == 1
  }
  ones = _by_words(partner.keys())
  others = _by_words(partner.values())
  clear = {
    name: others[key]
    for key, name in ones.items()
    if name is not None and others.get(key) not in (None, partner[name])
  }
  same = {
    name: other
    for name, other in clear.items()
    if other is not None and tf2_shapes[partner[name]] == tf2_shapes[other]
  }
  told: set[str] = set()
  for found in (same, *exchanged(partner, tf2_shapes)):
    # Only where it is an exchange among these: any other variable would be left over.
    is_exchange = sorted(found.values()) == sorted(partner[name] for name in found)
    if is_exchange and told.isdisjoint(found):
      told.update(found)
      yield from found.items()


def _by_words(names: Iterable[str]) -> dict[tuple[str, ...], str | None]:
  """Returns names by their words after what all have in common; None for several of one."""
  listed = list(names)
  parts = [words(name) for name in listed]
  # A word of each is left.
  common = min((len(beginning(parts)), *(max(len(part) - 1, 0) for part in parts)))
  found: dict[tuple[str, ...], str | None] = {}
  for name, part in zip(listed, parts, strict=True):
    key = part[common:]
    found[key] = None if key in found else name
  return found


def contradicted(
  entries: Sequence[MapEntry],
  rivals: Sequence[Sequence[tuple[str, ...]]],
  shapes: Sequence[_Shapes],
) -> Iterator[tuple[str, str]]:
  """Yields pairs by name, of variables that were divided into groups differently.

  Args:
    entries: the likely ones.
    rivals: of tf1 and the port, variables of which some were put together.
    shapes: of the variables of both sides.
  """
  for side, divided in enumerate(rivals):
    for names in divided:
      own = [e for e in entries if not set(names).isdisjoint((e.tf1, e.tf2)[side])]
      ones, others = [n for e in own for n in e.tf1], [n for e in own for n in e.tf2]
      for one, other in told_pairs(ones, others):
        swapped = _swap(own, one, other)
        if swapped is not None and shapes[swapped[0]][swapped[1]] == shapes[swapped[0]][swapped[2]]:
          yield one, other


def by_name(entries: Iterable[MapEntry], pairs: Iterable[tuple[str, str]]) -> list[MapEntry]:
  """Returns entries in which pairs by name are together: a map must not hide an exchange.

  Args:
    entries: as the graphs tell them.
    pairs: of tf1 and the port, which these tell otherwise.
  """
  found = list(entries)
  for one, other in pairs:
    swapped = _swap(found, one, other)
    if swapped is not None:
      side, name, its = swapped
      found = [_exchanged(entry, side, {name: its, its: name}) for entry in found]
  return found


def _swap(entries: Sequence[MapEntry], one: str, other: str) -> tuple[int, str, str] | None:
  """Returns the side, and its two variables that have to be exchanged to pair two by name."""
  first = next((entry for entry in entries if one in entry.tf1), None)
  second = next((entry for entry in entries if other in entry.tf2), None)
  if first is None or second is None or first is second:
    return None
  # What stays of a group has to be as before: only one that is alone can take a place in it.
  if len(first.tf1) == len(first.tf2) == len(second.tf1) == 1:
    return 1, first.tf2[0], other
  if len(second.tf1) == len(second.tf2) == len(first.tf2) == 1:
    return 0, second.tf1[0], one
  return None


def _exchanged(entry: MapEntry, side: int, names: Mapping[str, str]) -> MapEntry:
  sides = [list(entry.tf1), list(entry.tf2)]
  sides[side] = [names.get(name, name) for name in sides[side]]
  if (tuple(sides[0]), tuple(sides[1])) == (entry.tf1, entry.tf2):
    return entry
  reason = 'by name only: the graphs exchange it'
  return dataclasses.replace(entry, tf1=tuple(sides[0]), tf2=tuple(sides[1]), reason=reason)
