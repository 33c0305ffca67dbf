"""Variables of one side that are parts of one of the other side, or another one of their shape.

A kernel of three gates and one of a highway, say, for four kernels of one shape: which of them is
not a part is not told by shapes, and numbers decide.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tf2verify.relation.layouts.derived_layouts import Shape, may_be_part, merged, splits
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.names.roles import may_be_one

_Shapes = Mapping[str, Shape]
# Of more parts, there are too many orders to try.
_MOST_PARTS = 3


def parts_and_one(ones: _Shapes, others: _Shapes) -> Iterator[tuple[tuple[MapEntry, ...], ...]]:
  """Yields the entries for such variables, as alternatives.

  Args:
    ones: shapes of the variables of tf1 in a scope.
    others: of those of the port in its partner.
  """
  for side, (wholes, parts) in enumerate(((ones, others), (others, ones))):
    by_shape = _by_shape(wholes)
    for shape, own in _by_shape(parts).items():
      for whole, names in by_shape.items():
        count = math.prod(whole) // max(math.prod(shape), 1)
        alone = by_shape.get(shape, [])
        is_one = len(names) == len(alone) == 1 and len(own) == count + 1
        if is_one and 2 <= count <= _MOST_PARTS and may_be_part(whole, shape):
          found = _alternatives((names[0], whole), alone[0], own, shape, side)
          if found:
            yield found


def _by_shape(shapes: _Shapes) -> dict[Shape, list[str]]:
  found: dict[Shape, list[str]] = defaultdict(list)
  for name, shape in shapes.items():
    found[shape].append(name)
  return found


def _alternatives(
  whole: tuple[str, Shape], alone: str, own: list[str], shape: Shape, side: int
) -> tuple[tuple[MapEntry, ...], ...]:
  """Returns an alternative for each of some variables that is not a part, and each order."""
  found: list[tuple[MapEntry, ...]] = []
  for other in reversed(own):
    pair = (alone, other) if side == 0 else (other, alone)
    rest = [name for name in own if name != other]
    # Each order of the rest is one in which they are given: the first entry is for that.
    for order in itertools.permutations(rest):
      entries = splits(*whole, [(name, shape) for name in order])
      entries = entries if side == 0 else merged(entries)
      if entries and may_be_one(*pair):
        found.append((entries[0], MapEntry((pair[0],), (pair[1],))))
  return tuple(found)
