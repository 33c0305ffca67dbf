"""Pairs of the variables whose place in the graphs tells nothing, by scope, size and order.

What other variables of a layer do pairs the layer's scopes. In a pair of scopes, as many variables
of one shape that are left on both sides belong together; numbers decide in which order.
"""

import difflib
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from tf2verify.numerics.relayout import without_ones
from tf2verify.relation.layouts.derived_layouts import (
  Shape,
  layouts_of_pair,
  may_be_part,
  merged,
  regroupings,
  splits,
)
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.layouts.part_grids import part_grids
from tf2verify.relation.layouts.parts_and_one import parts_and_one
from tf2verify.relation.names.roles import WORD, may_be_one, role, told_one_to_one
from tf2verify.relation.names.words import meaning, same_names

_Shapes = Mapping[str, tuple[int, ...]]
_NUMBER = re.compile(r'\d+')
# Of so many variables, every order is an alternative.
_MOST_ORDERED = 3


def leftover_pairs(
  pairs: Mapping[str, str],
  tf1: _Shapes,
  tf2: _Shapes,
  tables: tuple[Collection[str], Collection[str]] = ((), ()),
) -> Iterator[tuple[str, tuple[tuple[MapEntry, ...], ...]]]:
  """Yields the entries for variables that are left, as alternatives, with the reason.

  Args:
    pairs: of tf1 and the port, what is known.
    tf1: shapes of the variables of tf1 that are left, in the order of the side.
    tf2: likewise, of the port.
    tables: variables of both sides in which rows are looked up: nothing else has as many elements
      and other axes.
  """
  left = dict(tf1), dict(tf2)
  for scope, other in _scopes(pairs, tf1):
    for kind in _KINDS:
      inside = _inside(left[0], scope), _inside(left[1], other)
      for ones, others in _groups(*inside, kind, tables if kind is _elements else ((), ())):
        alternatives = _alternatives(ones, others, tf1, tf2)
        if not alternatives:
          continue
        number = 'one' if len(ones) == 1 else str(len(ones))
        where = scope or 'the model'
        yield f'the only {number} of this size that are left in {where}', alternatives
        _remove(left, ones, others)
    for find in (of_parts, parts_and_one, part_grids):
      for alternatives in find(_inside(left[0], scope), _inside(left[1], other)):
        if not all(_are_left(left, entry) for entry in alternatives[0]):
          continue  # what one variable was just found to be made of is no part of another one
        yield f'the only parts of this size that are left in {scope or "the model"}', alternatives
        for entry in alternatives[0]:
          _remove(left, entry.tf1, entry.tf2)


def _are_left(left: Sequence[dict[str, Shape]], entry: MapEntry) -> bool:
  return left[0].keys() >= set(entry.tf1) and left[1].keys() >= set(entry.tf2)


def _remove(left: Sequence[dict[str, Shape]], ones: Sequence[str], others: Sequence[str]) -> None:
  for found, names in zip(left, (ones, others), strict=True):
    for name in names:
      del found[name]


def of_parts(ones: _Shapes, others: _Shapes) -> Iterator[tuple[tuple[MapEntry, ...], ...]]:
  """Yields the entries for variables of one side that are parts of one of the other, by shapes.

  Of several of one shape, the parts of each are those of one scope, and all are in order.
  """
  for side, (wholes, parts) in enumerate(((ones, others), (others, ones))):
    shapes: dict[Shape, list[str]] = defaultdict(list)
    for name, shape in wholes.items():
      shapes[shape].append(name)
    for shape, names in shapes.items():
      fitting = {
        name: part
        for name, part in parts.items()
        if math.prod(part) < math.prod(shape) and may_be_part(shape, part)
      }
      made = [
        [_parted(whole, shape, {name: parts[name] for name in own}, side) for whole, own in pairs]
        for pairs in _divisions(names, shape, fitting)
      ]
      made = [division for division in made if all(division)]
      if len(made) == 1:
        yield from (tuple((entry,) for entry in entries) for entries in made[0])
      elif made:
        yield tuple(tuple(entries[0] for entries in division) for division in made)


def _parted(whole: str, shape: Shape, parts: _Shapes, side: int) -> list[MapEntry]:
  """Returns the entries by which a variable of a side is parts of the other one."""
  found = splits(whole, shape, list(parts.items()))
  entries = found if side == 0 else merged(found)
  are_told = (may_be_one(one, two) for e in entries[:1] for one in e.tf1 for two in e.tf2)
  return entries if all(are_told) else []


def _divisions(
  wholes: Sequence[str], shape: Shape, parts: _Shapes
) -> list[list[tuple[str, list[str]]]]:
  """Returns how parts may belong to some variables of one shape; likely ways first."""
  found: list[list[tuple[str, list[str]]]] = []
  for groups in (*_by_scopes(parts), _by_kinds(parts, len(wholes))):
    sizes = {sum(math.prod(parts[name]) for name in own) for own in groups}
    are_parts = all(len(own) > 1 for own in groups)
    if len(groups) == len(wholes) and sizes == {math.prod(shape)} and are_parts:
      found.append(list(zip(wholes, groups, strict=True)))
      break
  found += [one for one in _by_stems(wholes, shape, parts) if one not in found]
  # Heads of a layer have numbers, and each may have the parts of several variables.
  for alike in _alike_parts(parts) if len(wholes) > 1 or not found else ():
    for groups in _by_numbers(alike):
      fitting = [own for own in groups if len(own) * math.prod(parts[own[0]]) == math.prod(shape)]
      division = list(zip(wholes, fitting, strict=False))
      if len(fitting) == len(wholes) and len(fitting[0]) > 1 and division not in found:
        found.append(division)
  return found


def _by_stems(
  wholes: Sequence[str], shape: Shape, parts: _Shapes
) -> Iterator[list[tuple[str, list[str]]]]:
  """Yields how parts belong to wholes if those of each are called the same but for a number.

  Weights of layers that TF1 keeps as rows of one variable: `w` beside `w_0` and `w_1`.
  """
  stems: dict[str, list[str]] = defaultdict(list)
  for name in parts:
    stems[_stem(name)].append(name)
  groups = [own for own in stems.values() if _are_whole(own, shape, parts)]
  if not 1 < len(wholes) == len(groups) <= _MOST_ORDERED:
    return
  names = [_stem(own[0]) for own in groups]
  told = same_names([_stem(whole) for whole in wholes], names) or told_one_to_one(wholes, names)
  for order in itertools.permutations(range(len(groups))):
    if all(order[one] == other for one, other in told.items()):
      yield [(whole, groups[n]) for whole, n in zip(wholes, order, strict=True)]


def _are_whole(names: Sequence[str], shape: Shape, parts: _Shapes) -> bool:
  return len(names) > 1 and sum(math.prod(parts[name]) for name in names) == math.prod(shape)


def _alike_parts(parts: _Shapes) -> list[list[str]]:
  """Returns names by what they end in and their shapes: kernels apart from biases."""
  found: dict[Hashable, list[str]] = defaultdict(list)
  for name, shape in parts.items():
    found[name.split('/')[-1], shape].append(name)
  return list(found.values())


def _by_scopes(names: Iterable[str]) -> Iterator[list[list[str]]]:
  """Yields names by their outermost scopes, more of them each time."""
  listed = list(names)
  for depth in range(max((name.count('/') for name in listed), default=0) + 1):
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in listed:
      groups[tuple(name.split('/')[:depth])].append(name)
    yield list(groups.values())


def _by_numbers(names: Iterable[str]) -> Iterator[list[list[str]]]:
  """Yields names that differ in one number alone, the last one first: heads of a layer."""
  listed = list(names)
  most = max((len(_NUMBER.findall(name)) for name in listed), default=0)
  for at in range(1, most + 1):
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in listed:
      pieces = _NUMBER.split(name)
      numbers = _NUMBER.findall(name)
      if len(numbers) >= at:
        numbers[-at] = ''
      groups[tuple(itertools.chain(pieces, numbers))].append(name)
    yield list(groups.values())


def _by_kinds(shapes: _Shapes, count: int) -> list[list[str]]:
  """Returns names in so many groups, in order; each has as many of one last name and shape."""
  kinds: dict[Hashable, list[str]] = defaultdict(list)
  for name, shape in shapes.items():
    kinds[name.split('/')[-1], shape].append(name)
  if any(len(names) % count for names in kinds.values()):
    return []
  return [
    [
      name
      for names in kinds.values()
      for name in names[n * len(names) // count :][: len(names) // count]
    ]
    for n in range(count)
  ]


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
  ones: _Shapes,
  others: _Shapes,
  kind: Callable[[str, Shape], Hashable],
  apart: tuple[Collection[str], Collection[str]],
) -> Iterator[tuple[list[str], list[str]]]:
  """Yields what is of one kind as often on both sides; some are of no kind that others are of."""
  found: tuple[dict[Hashable, list[str]], ...] = (defaultdict(list), defaultdict(list))
  for kinds, shapes, own in zip(found, (ones, others), apart, strict=True):
    for name, shape in shapes.items():
      kinds[kind(name, shape), name in own].append(name)
  for key, names in found[0].items():
    if len(names) == len(found[1].get(key, ())):
      yield names, found[1][key]


def _stem(name: str) -> str:
  """Returns the last component of a name without its numbers: `w` for `flow/w0`."""
  return ''.join(map(meaning, WORD.findall(name.lower().rpartition('/')[2])))


def _elements(name: str, shape: Shape) -> int:
  del name
  return math.prod(shape)


# What tells which variables may be which, the most telling first: the sizes of the axes and what
# they are called, the sizes and what each is to its layer, the sizes alone, the number of elements.
_KINDS: tuple[Callable[[str, Shape], Hashable], ...] = (
  lambda name, shape: (without_ones(shape), _stem(name)),
  lambda name, shape: (without_ones(shape), role(name) or name),
  lambda name, shape: without_ones(shape),
  _elements,
)


def _alternatives(
  ones: Sequence[str], others: Sequence[str], tf1: _Shapes, tf2: _Shapes
) -> tuple[tuple[MapEntry, ...], ...]:
  """Returns the ways in which some variables can be others, the likely one first.

  Of several, each has the same shape but for axes of length 1. One alone may lie in another order.
  """
  if len(ones) == 1:
    (one,), (other,) = ones, others
    if not may_be_one(one, other):
      return ()
    shapes = tf1[one], tf2[other]
    layouts = layouts_of_pair(*shapes) or regroupings(*shapes)
    return tuple((MapEntry((one,), (other,), layout),) for layout in layouts)
  if any(
    without_ones(tf1[one]) != without_ones(tf2[other])
    for one, other in zip(ones, others, strict=True)
  ):
    return ()
  # What names tell is no choice: numbers would hide that the port exchanges two variables.
  names = same_names(ones, others) or told_one_to_one(ones, others)
  told = {ones[n]: others[m] for n, m in names.items()}
  rest = [other for other in others if other not in told.values()]
  orders = [_completed(ones, told, rest)]
  if len(rest) <= _MOST_ORDERED:
    # Stable: with names that say nothing, both sides make them in the same order.
    found = [_completed(ones, told, order) for order in itertools.permutations(rest)]
    orders = sorted(found, key=lambda order: -_alike(ones, order))
  return tuple(
    tuple(
      MapEntry((one,), (other,), layouts_of_pair(tf1[one], tf2[other])[0])
      for one, other in zip(ones, order, strict=True)
    )
    for order in orders
    if all(may_be_one(one, other) for one, other in zip(ones, order, strict=True))
  )


def _completed(
  ones: Sequence[str], told: Mapping[str, str], rest: Iterable[str]
) -> tuple[str, ...]:
  """Returns partners: those that names tell, and others in an order for what is left."""
  left = iter(rest)
  return tuple(told[one] if one in told else next(left) for one in ones)


def _alike(ones: Sequence[str], others: Sequence[str]) -> float:
  """Returns how much names are like each other, pair by pair, by their last component."""
  ratios = (
    difflib.SequenceMatcher(None, one.split('/')[-1], other.split('/')[-1]).ratio()
    for one, other in zip(ones, others, strict=True)
  )
  return round(sum(ratios), 1)
