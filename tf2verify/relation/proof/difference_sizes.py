"""What is the same at these sizes, and not at others.

Proofs are for the shapes of a run, at which a size is a constant: a bound of it that is not
reached is not in them, and neither is which axes of one element are squeezed.
"""

from collections.abc import Hashable, Iterator

from tf2verify.relation.proof.difference_pairs import Unlike, text_of
from tf2verify.relation.proof.proving import Proof, Side

_BOUNDS = ('Minimum', 'Maximum')


def unlike_sizes(proof: Proof) -> Iterator[Unlike]:
  """Yields operations that yield the same at these sizes, with constants or axes that differ."""
  yield from _bounds(proof)
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


def _squeezed(side: Side) -> Iterator[tuple[Hashable, tuple[int, str]]]:
  """Yields what leaves out axes of one element: given ones, or all."""
  for position, op in enumerate(side.graph.ops):
    if op.op_type == 'Squeeze' and op.inputs and position in side.behind:
      # Only whether they are given: they may be counted from either end.
      told = 'some axes' if op.attribute('squeeze_dims') else 'all axes of one element'
      yield (side.values[op.inputs[0]], side.values[position, 0]), (position, told)
