"""Variables that the graphs exchange against their names, where no number tells them apart."""

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from tf2verify.relation.layouts.map_entry import MapEntry

_Shapes = Mapping[str, tuple[int, ...]]
_PIECE = re.compile(r'[a-z]+|\d+')
_REASON = 'by name: with the other one the outputs do not agree'
_LETTERS = 'abcdefgh'


def named_exchanges(
  entries: Sequence[MapEntry], tf1_shapes: _Shapes, tf2_shapes: _Shapes
) -> Iterator[list[MapEntry]]:
  """Yields entries of which two have changed partners, as their names tell, all such ones first.

  Only variables of the same elements in the same order, but for axes of size 1: `v` of shape `[8]`
  and `coverage/w_c` of shape `[1, 1, 1, 8]`, say, in the port `v` and `coverage_w_c` of `[1, 8]`.

  Args:
    entries: the map.
    tf1_shapes: of the variables of tf1.
    tf2_shapes: of those of the port.
  """
  alone = [n for n, entry in enumerate(entries) if _is_alone(entry, tf1_shapes, tf2_shapes)]
  found: list[tuple[int, int]] = []
  for one, other in itertools.combinations(alone, 2):
    taken = {n for pair in found for n in pair}
    if taken.isdisjoint((one, other)) and _are_crossed(entries[one], entries[other]):
      fit = _squeezed(tf1_shapes[entries[one].tf1[0]]) == _squeezed(
        tf2_shapes[entries[other].tf2[0]]
      )
      found += [(one, other)] if fit else []
  for pairs in dict.fromkeys((tuple(found), *((pair,) for pair in found))):
    if pairs:
      changed = list(entries)
      for one, other in pairs:
        for n, m in ((one, other), (other, one)):
          changed[n] = _entry(entries[n].tf1[0], entries[m].tf2[0], tf1_shapes, tf2_shapes)
      yield changed


def _is_alone(entry: MapEntry, tf1_shapes: _Shapes, tf2_shapes: _Shapes) -> bool:
  if len(entry.tf1) != 1 or len(entry.tf2) != 1 or entry.added:
    return False
  shapes = tf1_shapes.get(entry.tf1[0]), tf2_shapes.get(entry.tf2[0])
  return None not in shapes and _squeezed(shapes[0] or ()) == _squeezed(shapes[1] or ())


def _are_crossed(one: MapEntry, other: MapEntry) -> bool:
  """Returns whether each name says that it is that of the other entry's partner, and no other."""
  names = [(_pieces(entry.tf1[0]), _pieces(entry.tf2[0])) for entry in (one, other)]
  (a, b), (c, d) = names
  return _are_same(a, d) and _are_same(c, b) and not _are_same(a, b) and not _are_same(c, d)


def _are_same(one: Sequence[str], other: Sequence[str]) -> bool:
  """Returns whether one of two names ends with the other one, word by word."""
  shorter, longer = sorted((one, other), key=len)
  return bool(shorter) and longer[-len(shorter) :] == shorter


def _pieces(name: str) -> list[str]:
  return _PIECE.findall(name.lower())


def _squeezed(shape: Sequence[int]) -> tuple[int, ...]:
  return tuple(size for size in shape if size != 1)


def _entry(tf1: str, tf2: str, tf1_shapes: _Shapes, tf2_shapes: _Shapes) -> MapEntry:
  shapes = tf1_shapes[tf1], tf2_shapes[tf2]
  if shapes[0] == shapes[1]:
    return MapEntry((tf1,), (tf2,), reason=_REASON)
  texts = []
  for shape in shapes:
    letters = iter(_LETTERS)
    texts.append(' '.join('1' if size == 1 else next(letters) for size in shape))
  sizes = tuple(zip(_LETTERS, _squeezed(shapes[0]), strict=False))
  return dataclasses.replace(
    MapEntry((tf1,), (tf2,), ' -> '.join(texts), sizes=sizes), reason=_REASON
  )
