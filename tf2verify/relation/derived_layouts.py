"""How the elements of variables may lie that have one place."""

import itertools
import math
from collections.abc import Iterator, Sequence

from tf2verify.numerics.relayout import without_ones
from tf2verify.relation.map_entry import MapEntry

Shape = tuple[int, ...]
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


def splits(name: str, shape: Shape, parts: Sequence[tuple[str, Shape]]) -> list[MapEntry]:
  """Returns the entries by which variables of the port are parts of one of tf1's.

  The last axis is what is split; a part may have several axes in its place, or two.

  Args:
    name: of the variable of tf1.
    shape: of it.
    parts: name and shape of the port's variables.
  """
  ahead = math.prod(shape[:-1])
  if not shape or len(parts) > _MOST_PARTS or any(math.prod(s) % ahead for _, s in parts):
    return []
  lengths = [math.prod(part) // ahead for _, part in parts]
  if sum(lengths) != shape[-1]:
    return []
  head = _with_ones(shape[:-1], _AXES[: len(without_ones(shape[:-1]))])
  head = '' if head == '[]' else head
  ends, patterns = [], []
  sizes: dict[str, int] = {}
  for number, (_, part) in enumerate(parts):
    behind = _behind(part, ahead)
    if behind is None:
      return []
    axes = [f'{letter}{number + 1}' for letter in _AXES[-len(behind) :]] if behind else []
    sizes.update(zip(axes, behind, strict=True))
    ends.append(axes[0] if len(axes) == 1 else f'({" ".join(axes)})' if axes else '')
    own = [*_AXES[: len(without_ones(shape[:-1]))], *axes]
    patterns.append(' '.join(own) or '[]')
    if without_ones(part) != part:
      return []
  if not all(ends):
    return []
  found = []
  for order in itertools.permutations(range(len(parts))):
    left = f'{head} ({"+".join(ends[n].strip("()") for n in order)})'.strip()
    layout = f'{left} -> {", ".join(patterns)}'
    found.append(MapEntry((name,), tuple(n for n, _ in parts), layout, tuple(sizes.items())))
  return found


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
