"""Operations that a line of the port could have in place of those that are easily confused.

A comparison that is strict, a maximum for a minimum, a mean for a sum: tf1 need not have such an
operation anywhere, since it may write the same in another way.
"""

import itertools
from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.diagnosis.patterns.operations.op_text import value_text
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal, name_at
from tf2verify.diagnosis.proposals.reductions import axes_of, axes_text
from tf2verify.diagnosis.proposals.settings import Proposals
from tf2verify.records.op_graph import Inserted, NodeChange, OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import is_backward

# The first in place of the second, or the other way.
_NEAR = (
  *(('Greater', 'GreaterEqual'), ('Less', 'LessEqual'), ('Greater', 'Less')),
  *(('GreaterEqual', 'LessEqual'), ('Equal', 'NotEqual'), ('Maximum', 'Minimum')),
  *(('Sum', 'Mean'), ('Max', 'Min'), ('AddV2', 'Sub'), ('LogicalAnd', 'LogicalOr')),
  *(('ArgMax', 'ArgMin'), ('Mul', 'RealDiv')),
)
_SCALES = ('Mul', 'RealDiv')
# Of few values, so that the wrong one of two fits by chance: only where tf1 has such an operation.
_OF_FEW = ('ArgMax', 'ArgMin')
_OF_AXES = ('Mean', 'Sum')
_SEVERAL = 2
_SLOPED = 'LeakyRelu'
_SLOPE = 'alpha'
_MOST_NUMBERS = 24
_MOST_SLOPES = 12
_CLOSE = 1e-5


def near_kinds(line: Line, proposals: Proposals) -> Iterator[Proposal]:
  """Yields operations of a line as others that are easily taken for them: all, and each alone.

  But for a division by one number, see `divisions`.
  """
  yield from _near_kinds(line, proposals, (*_NEAR, *((two, first) for first, two in _NEAR)), False)


def divisions(line: Line, proposals: Proposals) -> Iterator[Proposal]:
  """Yields divisions by one number as multiplications, and the other way.

  They change the scale alone, which a mean in place of a sum does as well, and more often.
  """
  yield from _near_kinds(line, proposals, (_SCALES, _SCALES[::-1]), True)


def _near_kinds(
  line: Line, proposals: Proposals, kinds: Sequence[tuple[str, str]], only_scale: bool
) -> Iterator[Proposal]:
  for one, other in kinds:
    if other in _OF_FEW and other not in proposals.further:
      continue
    found = [
      op for op in line.ops if op.op_type == one and not is_backward(op) and _takes(line, op.name)
    ]
    if other in _SCALES:
      found = [op for op in found if _scales(line.graph, op) == only_scale]
    for alike in [found, *([op] for op in found if len(found) > 1)]:
      if alike:
        changes = tuple(NodeChange(op.name, op_type=other) for op in alike)
        is_known = other in proposals.further
        there = f', {other} in tf1' if is_known else f'; with {other} it yields what tf1 does'
        text = f'{alike[0].name} is {one} in the port{there}'
        like = proposals.like(other) if is_known else None
        yield Proposal(changes, other, one, text, like)


def _scales(graph: OpGraph, op: OpRecord) -> bool:
  """Returns whether an operation reads one number, by which all else is multiplied or divided."""
  shapes = [graph.ops[n].outputs[k][1] for n, k in op.inputs]
  return len(shapes) == 2 and () in shapes[1 if op.op_type == 'RealDiv' else 0 :]


def _takes(line: Line, name: str) -> bool:
  """Returns whether an operation of a line yields floats or decides; sizes are computed too."""
  op = next(known for known in line.ops if known.name == name)
  read = [line.graph.ops[n].outputs[k] for n, k in op.inputs]
  return op.outputs[0][0].startswith(('float', 'bfloat', 'bool')) or any(
    dtype.startswith('float') for dtype, _ in read
  )


def slopes(tf1: OpGraph, line: Line) -> Iterator[Proposal]:
  """Yields other slopes of leaky rectifiers: numbers of tf1, and differences of two of them.

  It may write `0.55 * x + 0.45 * abs(x)`.
  """
  places = _sloped(line)
  if not places:
    return
  own = line.graph.ops[places[0]].attribute(_SLOPE)
  numbers = list(dict.fromkeys(_small_numbers(tf1)))[:_MOST_NUMBERS]
  pairs = (abs(one - other) for one, other in itertools.combinations(numbers, 2))
  sums = ((one, other) for one, other in itertools.combinations(numbers, 2))
  of_abs = [abs(a - b) for a, b in sums if abs(a + b - 1.0) < _CLOSE]
  known = [round(number, 6) for number in (*of_abs, *numbers, *pairs)]
  for slope in list(dict.fromkeys(known))[:_MOST_SLOPES]:
    if not 0.0 <= slope < 1.0 or slope == own:
      continue
    changes = tuple(NodeChange(line.graph.ops[n].name, ((_SLOPE, slope),)) for n in places)
    one, two = value_text(slope), value_text(own)
    text = f'{_SLOPE} of {name_at(line, places[0])} is {two} in the port, {one} in tf1'
    yield Proposal(changes, one, two, text, what=_SLOPE)


def _sloped(line: Line) -> list[int]:
  """Returns the rectifiers of a line, and all others of layers that are constructed where its are.

  A helper that makes layers sets the slope of all of them.
  """
  ops = line.graph.ops
  own = [n for n in line.positions if ops[n].op_type == _SLOPED and not is_backward(ops[n])]
  if not own:
    return own
  made, slope = _made_at(ops[own[0]]), ops[own[0]].attribute(_SLOPE)
  return [
    n
    for n, op in enumerate(ops)
    if op.op_type == _SLOPED and not is_backward(op) and op.attribute(_SLOPE) == slope
    if n in own or (made is not None and _made_at(op) == made)
  ]


def _made_at(op: OpRecord) -> tuple[str, int] | None:
  """Returns the line that constructs the layer of an operation; None outside of a layer."""
  if op.source is None or not op.source.made:
    return None
  return op.source.made[0].path, op.source.made[0].line


def other_means(line: Line) -> Iterator[Proposal]:
  """Yields means over several axes as means of sums over one of them, and sums the other way."""
  ops = line.graph.ops
  found: dict[tuple[str, tuple[int, ...], int, int], list[int]] = {}
  for n in line.positions:
    axes = axes_of(line.graph, n) if ops[n].op_type in _OF_AXES else None
    producer, number = ops[n].inputs[0] if ops[n].inputs else (n, 0)
    dtype, shape = ops[producer].outputs[number] if axes else ('', None)
    if axes is None or len(axes) < _SEVERAL or dtype != 'float32' or is_backward(ops[n]):
      continue
    for axis in axes[::-1]:
      size = shape[axis] if shape is not None else None
      if size is not None and size > 1:
        found.setdefault((ops[n].op_type, axes, axis, size), []).append(n)
  for (op_type, axes, axis, size), places in found.items():
    factor = float(size) if op_type == 'Mean' else 1.0 / size
    changes = tuple(NodeChange(ops[n].name, inserted=(Inserted(0, 'Mul', factor),)) for n in places)
    left = [one for one in axes if one != axis]
    other = 'Sum' if op_type == 'Mean' else 'Mean'
    one = f'{op_type} over {axes_text(left)} and {other} over {axes_text([axis])}'
    two = f'{op_type} over {axes_text(axes)}'
    text = f'{ops[places[0]].name} is {two} in the port; with {one} it yields what tf1 does'
    yield Proposal(changes, one, two, text)


def _small_numbers(graph: OpGraph) -> Iterator[float]:
  """Yields the numbers between 0 and 1 that factors are."""
  for op in graph.ops:
    for producer, _ in op.inputs if op.op_type == 'Mul' and not is_backward(op) else ():
      value = constant_or_number(graph, producer)
      if value is not None and value.size == 1 and value.dtype.kind == 'f' and 0 < value.item() < 1:
        yield round(float(value.item()), 6)
