"""How the elements of variables may lie that have one place."""

import itertools
import math
import re
from collections.abc import Iterator, Sequence

from tf2verify.relation.map_entry import MapEntry

Shape = tuple[int, ...]
_AXES = 'abcdefghijklmnopqrstuvwxyz'
# Orders of more parts are not listed.
_MOST_PARTS = 4
# The gates of TF1's cells, as BasicLSTMCell and LSTMCell have them, and as Keras has them.
_TF1_GATES, _KERAS_GATES = 'icfo', 'ifco'


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
  ones, others = _longer(tf1), _longer(tf2)
  if sorted(ones) == sorted(others) and len(ones) in (2, 3, 4):
    names = _AXES[: len(ones)]
    for order in itertools.permutations(range(len(ones))):
      is_other = order != tuple(range(len(ones)))
      if is_other and tuple(ones[n] for n in order) == others:
        left, right = _with_ones(tf1, names), _with_ones(tf2, [names[n] for n in order])
        found.append(f'{left} -> {right}')
  return found


def _longer(shape: Shape) -> Shape:
  return tuple(size for size in shape if size != 1)


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
  head = _with_ones(shape[:-1], _AXES[: len(_longer(shape[:-1]))])
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
    own = [*_AXES[: len(_longer(shape[:-1]))], *axes]
    patterns.append(' '.join(own) or '[]')
    if _longer(part) != part:
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


def lstm(
  kernel: tuple[str, Shape],
  bias: tuple[str, Shape],
  own: tuple[str, Shape],
  recurrent: tuple[str, Shape],
  keras_bias: tuple[str, Shape],
) -> list[tuple[MapEntry, ...]]:
  """Returns the ways in which a Keras LSTM can hold a cell of tf1; the usual one first.

  Args:
    kernel: name and shape, of TF1's cell: inputs and state above each other.
    bias: likewise.
    own: of the port: the kernel of the inputs.
    recurrent: likewise, of the state.
    keras_bias: likewise.
  """
  units = recurrent[1][0]
  sizes = dict.fromkeys('icfo', units)
  found: list[tuple[MapEntry, ...]] = []
  for constant in (1.0, 0.0):
    for order in (_KERAS_GATES, *map(''.join, itertools.permutations(_TF1_GATES))):
      ends = '+'.join(order)
      both = {'x': own[1][0], 'h': units, **sizes}
      one = MapEntry(
        (kernel[0],),
        (own[0], recurrent[0]),
        f'(x+h) (i+c+f+o) -> x ({ends}), h ({ends})',
        tuple(both.items()),
      )
      other = MapEntry(
        (bias[0],),
        (keras_bias[0],),
        f'(i+c+f+o) -> ({ends})',
        tuple(sizes.items()),
        (('f', constant),) if constant else (),
      )
      if (one, other) not in found:
        found.append((one, other))
  return found


def gru(
  gates: tuple[str, str], candidate: tuple[str, str], port: tuple[str, str, str], sizes: Shape
) -> list[tuple[MapEntry, ...]]:
  """Returns the ways in which a Keras GRU without `reset_after` can hold a `GRUCell`.

  Args:
    gates: kernel and bias of tf1.
    candidate: likewise.
    port: kernel, recurrent kernel and bias.
    sizes: of inputs and state.
  """
  inputs, units = sizes
  known = {'x': inputs, 's': units, 'r': units, 'z': units, 'c': units}
  found: list[tuple[MapEntry, ...]] = []
  for order in ('z+r+c', 'r+z+c'):
    kernels = MapEntry(
      (gates[0], candidate[0]),
      port[:2],
      f'(x+s) (r+z), (x+s) c -> x ({order}), s ({order})',
      tuple(known.items()),
    )
    biases = MapEntry(
      (gates[1], candidate[1]),
      port[2:],
      f'(r+z), c -> ({order})',
      tuple((name, size) for name, size in known.items() if name not in 'xs'),
    )
    found.append((kernels, biases))
  return found


_CELL = re.compile(r'(.*?)/(kernel|bias|gates/kernel|gates/bias|candidate/kernel|candidate/bias)')


def scope(name: str) -> str:
  """Returns the scope of a cell of tf1 that a variable belongs to; '' for another variable."""
  found = _CELL.fullmatch(name)
  return found[1] if found else ''
