"""Variables that each hold a part of each of several variables of the other side.

A convolution over time, written as a product for each of its taps, whose kernels have the columns
of filter and gate side by side: every tap has a part of both kernels, and each kernel all taps.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tf2verify.numerics.relayout import without_ones
from tf2verify.relation.layouts.derived_layouts import Shape, merged
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.names.roles import may_be_one

_Shapes = Mapping[str, Shape]
_AXES = 'abcdefgh'
# Of more of them, there are too many orders to try.
_MOST = 3


def part_grids(ones: _Shapes, others: _Shapes) -> Iterator[tuple[tuple[MapEntry, ...], ...]]:
  """Yields the entries for such variables, as alternatives: all orders, the given one first.

  Args:
    ones: shapes of the variables of tf1 in a scope.
    others: of those of the port in its partner.
  """
  for side, (stacks, slabs) in enumerate(((ones, others), (others, ones))):
    of_slabs = _by_shape(slabs)
    for shape, names in _by_shape(stacks).items():
      for slab, parts in of_slabs.items():
        layouts = _layouts(shape, len(names), slab, len(parts))
        pairs = itertools.product(*((names, parts) if side == 0 else (parts, names)))
        if layouts and all(may_be_one(one, other) for one, other in pairs):
          entries = [MapEntry(tuple(names), tuple(parts), *layout) for layout in layouts]
          entries = entries if side == 0 else merged(entries)
          yield tuple((entry,) for entry in entries)


def _by_shape(shapes: _Shapes) -> dict[Shape, list[str]]:
  found: dict[Shape, list[str]] = defaultdict(list)
  for name, shape in shapes.items():
    if len(shape) == len(without_ones(shape)):
      found[shape].append(name)
  return {shape: names for shape, names in found.items() if 2 <= len(names) <= _MOST}


def _layouts(
  stack: Shape, stacks: int, slab: Shape, slabs: int
) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
  """Returns the layouts, with their sizes; nothing where the shapes do not fit.

  Args:
    stack: shape of variables that each have all parts one above the other along one axis.
    stacks: how many of these there are.
    slab: shape of variables that each have the parts of all of those, side by side.
    slabs: how many of these there are.
  """
  for axis, size in enumerate(stack):
    rest = [*stack[:axis], *stack[axis + 1 :]]
    fitting = [
      wide
      for wide, own in enumerate(rest)
      if size == slabs and [*rest[:wide], own * stacks, *rest[wide + 1 :]] == list(slab)
    ]
    if len(rest) > 1 and fitting:
      return list(_written(axis, fitting[-1], rest, stacks, slabs))
  return []


def _written(
  axis: int, wide: int, rest: list[int], stacks: int, slabs: int
) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
  own, ends = list(_AXES[: len(rest)]), [f'z{n + 1}' for n in range(stacks)]
  levels = [f'y{n + 1}' for n in range(slabs)]
  sizes = (*((level, 1) for level in levels), *((end, rest[wide]) for end in ends))
  # An axis of one element needs a place in the shape of a slab: it is merged with a neighbor.
  beside = next(n for n in range(len(rest)) if n != wide)
  orders = itertools.product(itertools.permutations(levels), itertools.permutations(ends))
  for stacked, in_slab in orders:
    lefts = []
    for end in ends:
      axes = [*own[:wide], end, *own[wide + 1 :]]
      lefts.append(' '.join([*axes[:axis], f'({"+".join(stacked)})', *axes[axis:]]))
    rights = []
    for level in levels:
      axes = [*own[:wide], f'({"+".join(in_slab)})', *own[wide + 1 :]]
      axes[beside] = f'({level} {axes[beside]})'
      rights.append(' '.join(axes))
    yield f'{", ".join(lefts)} -> {", ".join(rights)}', sizes
