"""Factors that the other side has in another place: a sign within a difference, an inverse.

What is added as -c * x on one side and subtracted as c * x on the other is one formula in two
spellings. Where the rest of the sum is not proven, no rule for sums sees that: here, a factor is
followed to where it is added, on both sides.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.relation.proof.differences.pairs import EXTRA, Unlike
from tf2verify.relation.proof.normal_forms.polynomials import is_ring, polynomial
from tf2verify.relation.proof.normal_forms.shapes import source
from tf2verify.relation.proof.normal_forms.terms import Terms
from tf2verify.relation.proof.proving import Proof, Side

_SCALING = frozenset(('Mul', 'RealDiv', 'Neg', 'AddV2', 'Add', 'Sub'))
_SUMS = ('AddV2', 'Add', 'AddN', 'Sub', 'BiasAdd')
# What yields a multiple of what it reads: only a constant changes the factor.
_LINEAR = frozenset(
  (
    *('Identity', 'Reshape', 'ExpandDims', 'Squeeze', 'StridedSlice', 'Transpose', 'Tile'),
    *('BroadcastTo', 'GatherV2', 'MatMul', 'BatchMatMulV2', 'Einsum', 'Sum', 'Mean'),
  )
)
_MOST_FOLLOWED = 64
_ROUNDING = 1e-6

# Of a polynomial, its monomials and their coefficients as multiples of the first one's.
_Direction = frozenset[tuple[tuple[int, ...], float]]
# The operation that a factor reaches, sums taken for one, and the factor.
_End = tuple[str, float]


def is_moved(proof: Proof, pair: Unlike) -> bool:
  """Returns whether the other side multiplies the same by the same factor, elsewhere.

  Args:
    proof: what is proven of the graphs.
    pair: operations of which one multiplies by a number, or adds one.
  """
  if pair.terms is not None:
    return False
  sides, last = (proof.tf1, proof.tf2), pair.tf1
  if pair.what == EXTRA:
    sides, last = (proof.tf2, proof.tf1), pair.tf2
  own, other = sides
  if any(own.graph.ops[n].op_type not in _SCALING for n in pair.chain or (last,)):
    return False
  found = _direction(proof.terms, own.values[last, 0])
  if found is None:
    return False
  wanted = set(_ends(proof, own, last, found[1]))
  known = set[_End]()
  for (position, number), value in other.values.items():
    same = _direction(proof.terms, value) if number == 0 else None
    if same is not None and same[0] == found[0]:
      known.update(_ends(proof, other, position, same[1]))
  return bool(wanted) and all(any(_is_same(one, end) for end in known) for one in wanted)


def _direction(terms: Terms, number: int) -> tuple[_Direction, float] | None:
  """Returns what all multiples of a term have in common, and which multiple it is."""
  if terms.shape(number) is None or not is_ring(terms.dtype(number)):
    return None
  found: dict[tuple[int, ...], Any] = {}
  for monomial, coefficient in polynomial(terms, number).items():
    key = tuple(sorted(source(terms, atom) for atom in monomial))
    found[key] = found.get(key, 0) + coefficient
  computed = [key for key in found if key and found[key]]
  if not computed:
    return None
  first = float(found[min(computed)])
  return frozenset((key, float(f'{c / first:.6g}')) for key, c in found.items()), first


def _ends(proof: Proof, side: Side, position: int, factor: float) -> Iterator[_End]:
  """Yields where a multiple ends up, by way of what only multiplies, and what it is then."""
  readers = side.graph.consumers()
  pending, seen = [(position, factor)], set[tuple[int, float]]()
  while pending and len(seen) < _MOST_FOLLOWED:
    here = pending.pop()
    if here in seen:
      continue
    seen.add(here)
    for reader, slot in readers[here[0]]:
      if reader not in side.tested:
        continue
      op, scaled = side.graph.ops[reader], _scaled(proof, side, reader, slot)
      if scaled is not None:
        pending.append((reader, here[1] * scaled))
      elif op.op_type in _SUMS:
        yield '+', -here[1] if op.op_type == 'Sub' and slot else here[1]
      else:
        yield op.op_type, here[1]


def _scaled(proof: Proof, side: Side, position: int, slot: int) -> float | None:
  """Returns by what an operation multiplies one of its operands; None if it does more."""
  op = side.graph.ops[position]
  if op.op_type == 'Neg':
    return -1.0
  if op.op_type in _LINEAR:
    return 1.0 if slot == 0 or 'MatMul' in op.op_type or op.op_type == 'Einsum' else None
  if op.op_type != 'Mul' and (op.op_type != 'RealDiv' or slot):
    return None
  number = proof.terms.single(side.values[op.inputs[1 - slot]])
  if number is None:
    return 1.0  # by what is computed
  if not number or not np.isfinite(number):
    return None
  return float(number) if op.op_type == 'Mul' else 1.0 / float(number)


def _is_same(one: _End, other: _End) -> bool:
  return one[0] == other[0] and bool(np.isclose(one[1], other[1], rtol=_ROUNDING, atol=0))
