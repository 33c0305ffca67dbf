"""How the elements of variables may lie that have one place."""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence

from tf2verify.numerics.relayout import without_ones
from tf2verify.relation.layouts.map_entry import MapEntry

Shape = tuple[int, ...]
# An axis of a pattern: a name, or several in parentheses.
_AXIS = re.compile(r'\([^)]*\)|\S+')
_AXES = 'abcdefghijklmnopqrstuvwxyz'
# Orders of more parts are not listed.
_MOST_PARTS = 4


def layouts_of_pair(tf1: Shape, tf2: Shape, is_transposed: bool = False) -> list[str]:
  """Returns the layouts in which one variable can hold the elements of one; likely ones first.

  Args:
    tf1: the shape in tf1.
    tf2: the shape in the port.
    is_transposed: whether one side alone transposes the matrix that it reads.

  Returns:
    '' stands for the same shape; nothing where there is none.
  """
  if math.prod(tf1) != math.prod(tf2):
    return []
  if tf1 == tf2 and not (is_transposed and len(tf1) == 2 and tf1[0] == tf1[1]):
    return ['']
  found = []
  refined = _refined(tf1, tf2)
  if refined is not None and tf1 != tf2:
    found.append(refined)
  ones, others = without_ones(tf1), without_ones(tf2)
  if sorted(ones) == sorted(others) and len(ones) in (2, 3, 4):
    names = _AXES[: len(ones)]
    for order in itertools.permutations(range(len(ones))):
      is_other = order != tuple(range(len(ones)))
      if is_other and tuple(ones[n] for n in order) == others:
        left, right = _with_ones(tf1, names), _with_ones(tf2, [names[n] for n in order])
        found.append(f'{left} -> {right}')
  return found


def regroupings(tf1: Shape, tf2: Shape) -> list[str]:
  """Returns the layouts in which one axis of one side is several axes of the other side.

  The other axes are of different sizes, so that they are known by these, in whatever order.
  Nothing where there is no such layout.

  Args:
    tf1: the shape in tf1.
    tf2: the shape in the port.
  """
  ones, others = without_ones(tf1), without_ones(tf2)
  if len(ones) > len(others):
    turned = (layout.partition(' -> ') for layout in regroupings(tf2, tf1))
    return [f'{right} -> {left}' for left, _, right in turned]
  common = set(ones) & set(others)
  whole = [size for size in ones if size not in common]
  parts = [size for size in others if size not in common]
  unique = len({*ones}) == len(ones) and len({*others} & common) == len(others) - len(parts)
  if not unique or len(whole) != 1 or not 2 <= len(parts) <= _MOST_PARTS:
    return []
  if math.prod(parts) != whole[0]:
    return []
  names = iter(_AXES)
  own = {size: next(names) for size in ones if size in common}
  split = [next(names) for _ in parts]
  left = iter(split)
  right = _with_ones(tf2, [own[size] if size in common else next(left) for size in others])
  return [
    _with_ones(tf1, [own.get(size, f'({" ".join(order)})') for size in ones]) + f' -> {right}'
    for order in itertools.permutations(split)
  ]


def _with_ones(shape: Shape, names: Sequence[str]) -> str:
  left = iter(names)
  return ' '.join('1' if size == 1 else next(left) for size in shape) or '[]'


def _refined(tf1: Shape, tf2: Shape) -> str | None:
  """Returns the layout of the same elements in the same order; None where axes do not divide."""
  cuts = sorted({*_cuts(tf1), *_cuts(tf2)})
  if any(later % earlier for earlier, later in itertools.pairwise(cuts)):
    return None
  names = dict(zip(cuts, _AXES, strict=False))

  def written(shape: Shape) -> str:
    axes, before = [], 1
    for size in shape:
      after = before * size
      inner = [names[cut] for cut in cuts if before < cut <= after]
      axes.append('1' if not inner else inner[0] if len(inner) == 1 else f'({" ".join(inner)})')
      before = after
    return ' '.join(axes) or '[]'

  # From the last axis on: that is the order in which elements lie.
  return f'{written(tf1)} -> {written(tf2)}' if len(cuts) <= len(_AXES) else None


def _cuts(shape: Shape) -> Iterator[int]:
  product = 1
  for size in shape:
    product *= size
    if product > 1:
      yield product


def splits(
  name: str, shape: Shape, parts: Sequence[tuple[str, Shape]], is_transposed: bool = False
) -> list[MapEntry]:
  """Returns the entries by which variables of the port are parts of one of tf1's.

  The parts lie end to end along one axis, the last one if that is possible. In the place of the
  last axis a part may have several, or two; of another axis, none if it has one element there.
  The parts may all have their axes in another order.

  Args:
    name: of the variable of tf1.
    shape: of it.
    parts: name and shape of the port's variables.
    is_transposed: whether one side alone transposes the matrix that it reads.

  Returns:
    An entry for each order of the parts, that in which they are given first; of many parts it is
    the only one.
  """
  names = [part for part, _ in parts]
  shapes = [without_ones(part) or part[-1:] for _, part in parts]
  long = without_ones(shape)
  if not any(shapes) and long == (len(parts),) and all(part for _, part in parts):
    return _of_elements(name, shape, parts)
  if not all(shapes):
    return []
  ways: list[tuple[Callable[[], list[_Division]], Sequence[Shape]]] = [
    (lambda: _firsts(_along_any(long, shapes, is_transposed)), shapes)
  ]
  if not is_transposed:
    ways = [
      (lambda: _firsts(_along_last(long, shapes)), shapes),
      (lambda: _stacked(long, shapes), shapes),
      *ways,
    ]
  if shape == long:  # one row of a part is an axis of it
    whole_parts = [part for _, part in parts]
    ways.append((lambda: _firsts(_along_any(shape, whole_parts, is_transposed)), whole_parts))
  divisions: list[_Division] = []
  for way, own in ways:
    divisions = divisions or [
      (head, ends, tail, patterns, sizes)
      for head, ends, tail, written, sizes in way()
      if (patterns := _in_shapes(parts, own, written)) is not None
    ]
  entries = []
  given = range(len(parts))
  for order in itertools.permutations(given) if len(parts) <= _MOST_PARTS else [given]:
    for head, ends, tail, patterns, sizes in divisions:
      parted = f'({"+".join(ends[n] for n in order)})'
      whole = _with_ones(shape, [*head.split(), parted, *tail.split()])
      layout = f'{whole} -> {", ".join(patterns)}'
      entries.append(MapEntry((name,), tuple(names), layout, tuple(sizes.items())))
  return entries


def _firsts(division: '_Division | None') -> 'list[_Division]':
  return [] if division is None else [division]


def _in_shapes(
  parts: Sequence[tuple[str, Shape]], shapes: Sequence[Shape], patterns: Sequence[str]
) -> list[str] | None:
  """Returns the patterns of parts with their axes of one element; None where they do not fit."""
  axes = [_AXIS.findall(pattern) for pattern in patterns]
  if any(len(own) != len(part) for own, part in zip(axes, shapes, strict=True)):
    return None
  return [
    _with_ones(part, own)
    if len(own) == len(without_ones(part))
    else ' '.join([*['1'] * (len(part) - len(own)), *own])
    for (_, part), own in zip(parts, axes, strict=True)
  ]


def _of_elements(name: str, shape: Shape, parts: Sequence[tuple[str, Shape]]) -> list[MapEntry]:
  """Returns the entries by which variables of one element each make one: biases of heads."""
  ends = [f'z{number + 1}' for number in range(len(parts))]
  patterns = [
    ' '.join([*['1'] * (len(part) - 1), end]) for end, (_, part) in zip(ends, parts, strict=True)
  ]
  sizes = tuple((end, 1) for end in ends)
  names = tuple(part for part, _ in parts)
  wholes = [
    _with_ones(shape, [f'({"+".join(order)})'])
    for order in (itertools.permutations(ends) if len(ends) <= _MOST_PARTS else [ends])
  ]
  return [MapEntry((name,), names, f'{whole} -> {", ".join(patterns)}', sizes) for whole in wholes]


# Of a whole: the axes ahead, the parts of the axis that is divided, the axes after; then the
# pattern of each part, and the sizes of the parts.
_Division = tuple[str, list[str], str, list[str], dict[str, int]]


def _along_last(shape: Shape, parts: Sequence[Shape]) -> _Division | None:
  """Returns how parts lie along the last axis; a part may have several axes in its place."""
  ahead = math.prod(shape[:-1])
  if not shape or any(math.prod(part) % ahead for part in parts):
    return None
  if sum(math.prod(part) // ahead for part in parts) != shape[-1]:
    return None
  own = _AXES[: len(without_ones(shape[:-1]))]
  head = '' if not shape[:-1] else _with_ones(shape[:-1], own)
  ends, patterns = [], []
  sizes: dict[str, int] = {}
  for number, part in enumerate(parts):
    behind = _behind(part, ahead)
    if behind is None or part[: len(part) - len(behind)] != shape[:-1]:
      return None
    axes = [f'{letter}{number + 1}' for letter in _AXES[-len(behind or '1') :]]
    sizes.update(zip(axes, behind or (1,), strict=True))
    ends.append(' '.join(axes))
    # One column needs a place in the shape of the part: it is merged with the axis ahead.
    single = [*own[:-1], f'({" ".join([*own[-1:], *axes])})']
    patterns.append(' '.join([*own, *axes] if behind else single))
  return head, ends, '', patterns, sizes


def _stacked(shape: Shape, parts: Sequence[Shape]) -> list[_Division]:
  """Returns how parts may lie one above the other, along an axis that they do not have.

  The whole may have several axes in the place of one of a part, as a kernel with heads has.
  """
  found: list[_Division] = []
  for axis, size in reversed(list(enumerate(shape))):
    rest = (*shape[:axis], *shape[axis + 1 :])
    if not rest or size != len(parts) or 1 in rest or len(set(parts)) != 1:
      continue
    layout = _same_order(rest, parts[0])
    if layout is None:
      continue
    own, part = (_AXIS.findall(written) for written in layout)
    sizes = {f'z{number + 1}': 1 for number in range(size)}
    # An axis of one element needs a place in the shape of the part: it is merged with a neighbour.
    at = min(axis, len(part) - 1)
    patterns = [
      ' '.join((*part[:at], _with_one(part[at], z, axis == at), *part[at + 1 :])) for z in sizes
    ]
    found.append((' '.join(own[:axis]), list(sizes), ' '.join(own[axis:]), patterns, sizes))
  return found


def _same_order(one: Shape, other: Shape) -> tuple[str, str] | None:
  """Returns the patterns of two shapes of the same elements in the same order, if these divide."""
  if one == other:
    return (' '.join(_AXES[: len(one)]),) * 2
  refined = _refined(one, other) if math.prod(one) == math.prod(other) else None
  return None if refined is None else (refined.split(' -> ')[0], refined.split(' -> ')[1])


def _with_one(axis: str, one: str, is_ahead: bool) -> str:
  """Returns an axis of a pattern merged with one of one element."""
  inner = axis.strip('()')
  return f'({one} {inner})' if is_ahead else f'({inner} {one})'


def _along_any(shape: Shape, parts: Sequence[Shape], is_transposed: bool) -> _Division | None:
  """Returns how parts lie along one axis, all of them with their axes in one order."""
  axes = range(len(shape))
  if 1 in shape or any(len(part) != len(shape) for part in parts):
    return None
  for order in itertools.permutations(axes):
    if is_transposed and order == tuple(axes):
      continue
    back = [[part[order.index(n)] for n in axes] for part in parts]  # in the order of the whole
    for axis in reversed(axes):
      is_cut = sum(part[axis] for part in back) == shape[axis]
      if not is_cut or any(part[n] != shape[n] for part in back for n in axes if n != axis):
        continue
      own = list(_AXES[: len(shape)])
      ends = [f'z{number + 1}' for number in range(len(parts))]
      patterns = [' '.join(z if n == axis else own[n] for n in order) for z in ends]
      sizes = {z: part[axis] for z, part in zip(ends, back, strict=True)}
      return ' '.join(own[:axis]), ends, ' '.join(own[axis + 1 :]), patterns, sizes
  return None


def may_be_part(whole: Shape, part: Shape) -> bool:
  """Returns whether one variable may be another, or a part of it along one of its axes."""
  ones, others = without_ones(whole), without_ones(part)
  slabs = [(*ones[:n], *ones[n + 1 :]) for n in range(len(ones))]
  is_stacked = any(slab and _same_order(slab, others) is not None for slab in slabs)
  if len(ones) != len(others):
    # In the place of the last axis several, or no axis where there is one element.
    ahead = math.prod(ones[:-1])
    return is_stacked or (len(ones) > 1 and ones[:-1] == others[: len(ones) - 1] and ahead > 1)
  return is_stacked or any(
    sum(one != other for one, other in zip(ones, turned, strict=True)) <= 1
    and all(other <= one for one, other in zip(ones, turned, strict=True))
    for turned in itertools.permutations(others)
  )


def _behind(part: Shape, ahead: int) -> Shape | None:
  """Returns the axes of a part after those that the whole has as well; None without a cut."""
  product = 1
  for number in range(len(part) + 1):
    if product == ahead:
      return part[number:]
    if number < len(part):
      product *= part[number]
  return None


def merged(entries: Sequence[MapEntry]) -> list[MapEntry]:
  """Returns entries the other way round: variables of tf1 as parts of one of the port's."""
  found = []
  for entry in entries:
    left, _, right = entry.layout.partition('->')
    found.append(MapEntry(entry.tf2, entry.tf1, f'{right.strip()} -> {left.strip()}', entry.sizes))
  return found
