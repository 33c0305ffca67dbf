"""What is the same at these sizes, and not at others.

Proofs are for the shapes of a run, at which a size is a constant: a bound of it that is not
reached is not in them, nor the end of a slice that is not, nor which axes of one element are
squeezed.
"""

from collections.abc import Hashable, Iterator

from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.relation.proof.differences.pairs import EXTRA, MISSING, Unlike, text_of
from tf2verify.relation.proof.proving import Proof, Side

_BOUNDS = ('Minimum', 'Maximum')


def unlike_sizes(proof: Proof) -> Iterator[Unlike]:
  """Yields operations that yield the same at these sizes, with constants or axes that differ."""
  yield from _bounds(proof)
  yield from _slices(proof)
  others = dict(_squeezed(proof.tf2))
  for key, (position, axes) in _squeezed(proof.tf1):
    partner, other = others.get(key, (0, axes))
    if axes != other:
      yield Unlike(position, partner, 'squeeze_dims', (axes, other))


def _bounds(proof: Proof) -> Iterator[Unlike]:
  """Yields operations on constants that have one of two operands and the result in common."""
  alike = {read for read, _ in _of_constants(proof, proof.tf1)}
  alike &= {read for read, _ in _of_constants(proof, proof.tf2)}
  others = [one for one in _of_constants(proof, proof.tf2) if one[0] not in alike]
  for (kind, first, second, result), position in _of_constants(proof, proof.tf1):
    if (kind, first, second, result) in alike:
      continue
    for (family, one, two, made), partner in others:
      if (kind, result) != (family, made) or (first != one) == (second != two):
        continue
      numbers = (second, two) if first == one else (first, one)
      values = [proof.terms.value(number) for number in numbers]
      yield Unlike(position, partner, 'constant', (text_of(values[0]), text_of(values[1])))
      break


def _of_constants(proof: Proof, side: Side) -> Iterator[tuple[tuple[str, int, int, int], int]]:
  """Yields kind, operands and result of what is computed of two constants, and its position."""
  for position, op in enumerate(side.graph.ops):
    read = [side.values[key] for key in op.inputs]
    known = all(proof.terms.value(number) is not None for number in read)
    if op.op_type in _BOUNDS and position in side.behind and len(read) == 2 and known:
      yield (op.op_type, read[0], read[1], side.values[position, 0]), position


def _slices(proof: Proof) -> Iterator[Unlike]:
  """Yields slices with an end that is not reached, where the other side takes all or another."""
  sliced = [dict(_of_slices(side)) for side in (proof.tf1, proof.tf2)]
  for key, (position, bounds) in sliced[0].items():
    partner, others = sliced[1].get(key, (None, bounds))
    if partner is not None and bounds != others:
      texts = (_text(bounds), _text(others))
      yield Unlike(position, partner, 'slice', texts)
  for number, other, what in ((0, proof.tf2, MISSING), (1, proof.tf1, EXTRA)):
    producers: dict[int, int] = {}
    for (position, _), value in other.values.items():
      producers.setdefault(value, position)
    for (read, result), (position, bounds) in sliced[number].items():
      partner = producers.get(result)
      if bounds and read == result and (read, result) not in sliced[1 - number]:
        if partner is not None and what == MISSING:
          yield Unlike(position, partner, what, (_text(bounds), ''))
        elif partner is not None:
          yield Unlike(partner, position, what, ('', _text(bounds)))


def _of_slices(side: Side) -> Iterator[tuple[tuple[int, int], tuple[int, str]]]:
  """Yields what a slice reads and yields, with its position and the bounds that are not reached."""
  for position, op in enumerate(side.graph.ops):
    if op.op_type == 'StridedSlice' and op.inputs and position in side.behind:
      key = side.values[op.inputs[0]], side.values[position, 0]
      yield key, (position, _unreached(side.graph, op))


def _text(bounds: str) -> str:
  return f'a slice {bounds or "to the end"}'


def _unreached(graph: OpGraph, op: OpRecord) -> str:
  """Returns the bounds of a slice beyond the tensor: `up to 50 (of 6 elements)`; '' for none."""
  producer, number = op.inputs[0]
  shape = graph.ops[producer].outputs[number][1]
  bounds = [graph.ops[n].constant for n, _ in op.inputs[1:3]]
  # With an ellipsis or a new axis, the numbers do not count the axes.
  counted = not op.attribute('ellipsis_mask') and not op.attribute('new_axis_mask')
  if shape is None or not counted or bounds[0] is None or bounds[1] is None:
    return ''
  masks = [op.attribute(name) or 0 for name in ('begin_mask', 'end_mask')]
  said = []
  ends = zip(shape, bounds[0], bounds[1], strict=False)
  for axis, (size, begin, end) in enumerate(ends):
    if size is not None and not masks[0] >> axis & 1 and int(begin) < -size:
      said.append(f'from {int(begin)} (of {size} elements)')
    if size is not None and not masks[1] >> axis & 1 and int(end) > size:
      said.append(f'up to {int(end)} (of {size} elements)')
  return ', '.join(said)


def _squeezed(side: Side) -> Iterator[tuple[Hashable, tuple[int, str]]]:
  """Yields what leaves out axes of one element: given ones, or all."""
  for position, op in enumerate(side.graph.ops):
    if op.op_type == 'Squeeze' and op.inputs and position in side.behind:
      # Only whether they are given: they may be counted from either end.
      told = 'some axes' if op.attribute('squeeze_dims') else 'all axes of one element'
      yield (side.values[op.inputs[0]], side.values[position, 0]), (position, told)
