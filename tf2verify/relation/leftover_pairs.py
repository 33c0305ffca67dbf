"""Pairs of the variables whose place in the graphs tells nothing, by scope, size and order.

What other variables of a layer do pairs the layer's scopes. In a pair of scopes, as many variables
of one shape that are left on both sides belong together; numbers decide in which order.
"""

import difflib
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from tf2verify.numerics.relayout import without_ones
from tf2verify.relation.derived_layouts import layouts_of_pair, regroupings
from tf2verify.relation.map_entry import MapEntry
from tf2verify.relation.roles import role

_Shapes = Mapping[str, tuple[int, ...]]
# Of so many variables, every order is an alternative.
_MOST_ORDERED = 3


def leftover_pairs(
  pairs: Mapping[str, str], tf1: _Shapes, tf2: _Shapes
) -> Iterator[tuple[str, tuple[tuple[MapEntry, ...], ...]]]:
  """Yields the entries for variables that are left, as alternatives, with the reason.

  Args:
    pairs: of tf1 and the port, what is known.
    tf1: shapes of the variables of tf1 that are left, in the order of the side.
    tf2: likewise, of the port.
  """
  left = dict(tf1), dict(tf2)
  for scope, other in _scopes(pairs, tf1):
    for kind in (without_ones, math.prod):  # the sizes of the axes, then the number of elements
      inside = _inside(left[0], scope), _inside(left[1], other)
      for ones, others in _groups(*inside, kind):
        alternatives = _alternatives(ones, others, tf1, tf2)
        if not alternatives:
          continue
        number = 'one' if len(ones) == 1 else str(len(ones))
        where = scope or 'the model'
        yield f'the only {number} of this size that are left in {where}', alternatives
        for found, names in zip(left, (ones, others), strict=True):
          for name in names:
            del found[name]


def _scopes(pairs: Mapping[str, str], left: _Shapes) -> Iterator[tuple[str, str]]:
  """Yields scopes of tf1 with what is left, the innermost first, and those of the port."""
  inside: dict[str, set[str]] = defaultdict(set)
  for name in pairs:
    for scope in scopes_around(name):
      inside[scope].add(name)
  wanted = dict.fromkeys(scope for name in left for scope in scopes_around(name) if scope in inside)
  partners = set(pairs.values())
  for scope in sorted(wanted, key=lambda one: -one.count('/')):
    others = {pairs[name] for name in inside[scope]}
    found = _widest(others, partners)
    if found is not None:
      yield scope, found
  yield '', ''


def _widest(names: set[str], partners: set[str]) -> str | None:
  """Returns the widest scope that holds these variables and no other that has a partner."""
  rest = partners - names
  found = None
  for scope in reversed(scopes_around(min(names))):
    start = scope + '/'
    if any(name.startswith(start) for name in rest):
      break
    found = scope
  return found if found and all(name.startswith(found + '/') for name in names) else None


def scopes_around(name: str) -> list[str]:
  """Returns the scopes around a name, the outermost first, the root left out."""
  parts = name.split('/')
  return ['/'.join(parts[:count]) for count in range(1, len(parts))]


def _inside(left: _Shapes, scope: str) -> _Shapes:
  return {name: shape for name, shape in left.items() if not scope or name.startswith(scope + '/')}


def _groups(
  ones: _Shapes, others: _Shapes, kind: Callable[[tuple[int, ...]], Hashable]
) -> Iterator[tuple[list[str], list[str]]]:
  """Yields what is of one kind as often on both sides."""
  found: tuple[dict[Hashable, list[str]], ...] = (defaultdict(list), defaultdict(list))
  for kinds, shapes in zip(found, (ones, others), strict=True):
    for name, shape in shapes.items():
      kinds[kind(shape)].append(name)
  for key, names in found[0].items():
    if len(names) == len(found[1].get(key, ())):
      yield names, found[1][key]


def _alternatives(
  ones: Sequence[str], others: Sequence[str], tf1: _Shapes, tf2: _Shapes
) -> tuple[tuple[MapEntry, ...], ...]:
  """Returns the ways in which some variables can be others, the likely one first.

  Of several, each has the same shape but for axes of length 1. One alone may lie in another order.
  """
  if len(ones) == 1:
    (one,), (other,) = ones, others
    if not _may_be(one, other):
      return ()
    shapes = tf1[one], tf2[other]
    layouts = layouts_of_pair(*shapes) or regroupings(*shapes)
    return tuple((MapEntry((one,), (other,), layout),) for layout in layouts)
  if any(
    without_ones(tf1[one]) != without_ones(tf2[other])
    for one, other in zip(ones, others, strict=True)
  ):
    return ()
  orders = [tuple(others)]
  if len(ones) <= _MOST_ORDERED:
    # Stable: with names that say nothing, both sides make them in the same order.
    orders = sorted(itertools.permutations(others), key=lambda order: -_alike(ones, order))
  return tuple(
    tuple(
      MapEntry((one,), (other,), layouts_of_pair(tf1[one], tf2[other])[0])
      for one, other in zip(ones, order, strict=True)
    )
    for order in orders
    if all(_may_be(one, other) for one, other in zip(ones, order, strict=True))
  )


def _may_be(one: str, other: str) -> bool:
  """Returns whether names allow that one is the other: a gamma is no beta."""
  return role(one) == role(other) or not (role(one) and role(other))


def _alike(ones: Sequence[str], others: Sequence[str]) -> float:
  """Returns how much names are like each other, pair by pair, by their last component."""
  ratios = (
    difflib.SequenceMatcher(None, one.split('/')[-1], other.split('/')[-1]).ratio()
    for one, other in zip(ones, others, strict=True)
  )
  return round(sum(ratios), 1)
