"""Pairs of variables that may be paired the other way round: two biases in one sum."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tf2verify.numerics.relayout import without_ones
from tf2verify.relation.layouts.derived_layouts import Shape, layouts_of_pair
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.names.roles import may_be_one, told_one_to_one

# The entries of two variables of tf1, each with the partner of the other one.
Exchange = tuple[MapEntry, MapEntry]


def exchanges(
  entries: Sequence[MapEntry],
  groups: Sequence[Sequence[str]],
  tf1: Mapping[str, Shape],
  tf2: Mapping[str, Shape],
) -> Iterator[Exchange]:
  """Yields exchanges that graphs and names allow; whether numbers do is to be tried.

  Args:
    entries: of a map.
    groups: of tf1, variables whose places are of one kind.
    tf1: shapes of the variables of tf1.
    tf2: of those of the port.
  """
  single = {entry.tf1[0]: entry for entry in entries if len(entry.tf1) == len(entry.tf2) == 1}
  for group in groups:
    known = [name for name in dict.fromkeys(group) if name in single]
    for one, other in itertools.combinations(known, 2):
      partners = single[one].tf2[0], single[other].tf2[0]
      shapes = {without_ones(s) for s in (tf1[one], tf1[other], *(tf2[p] for p in partners))}
      is_told = bool(told_one_to_one((one, other), partners))
      may_be = may_be_one(one, partners[1]) and may_be_one(other, partners[0])
      if len(shapes) == 1 and not is_told and may_be:
        yield _entry(one, partners[1], tf1, tf2), _entry(other, partners[0], tf1, tf2)


def exchanged(entries: Sequence[MapEntry], exchange: Exchange) -> tuple[MapEntry, ...]:
  """Returns the entries of a map with two of them exchanged."""
  new = {entry.tf1: entry for entry in exchange}
  return tuple(new.get(entry.tf1, entry) for entry in entries)


def _entry(one: str, other: str, tf1: Mapping[str, Shape], tf2: Mapping[str, Shape]) -> MapEntry:
  shapes = tf1[one], tf2[other]
  entry = MapEntry((one,), (other,), layouts_of_pair(*shapes)[0], reason='interchangeable')
  return entry.bound([shapes[0]], [shapes[1]]) if entry.layout else entry
