"""The greatest and the least of terms."""

import itertools
from collections.abc import Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.elementwise import elementwise
from tf2verify.relation.proof.normal_forms.polynomials import (
  Number,
  split_common_factor,
  split_factor,
  total,
)
from tf2verify.relation.proof.normal_forms.ranges import range_of
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms


def extreme(terms: Terms, kind: str, operands: Sequence[int], dtype: str, shape: Shape) -> int:
  """Returns the `Maximum` or `Minimum` of terms, in any order; of one alone, that.

  So it is where no element of one can be beyond any of the other.
  """
  if len(set(operands)) == 1 and terms.shape(operands[0]) == shape:
    return operands[0]
  for one, other in itertools.permutations(operands, 2):
    if terms.shape(one) == shape and _bounds(terms, kind, one, other):
      return one
  factor, scaled = with_common_factor(terms, operands)
  if dtype.startswith('float') and factor != 1:
    # The greatest of -x and -y is -1 times the least of x and y; that of 2x and 2y, twice that.
    opposite = 'Minimum' if kind == 'Maximum' else 'Maximum'
    of_scaled = kind if factor > 0 else opposite
    found = elementwise(terms, of_scaled, scaled, dtype, shape, commutes=True)
    return total(terms, [(found, factor)], dtype, shape)
  return elementwise(terms, kind, operands, dtype, shape, commutes=True)


def with_common_factor(terms: Terms, operands: Sequence[int]) -> tuple[Number, list[int]]:
  """Returns a number, and terms that are operands divided by it.

  They are the same terms for all multiples of the operands, all by the same number. With constants,
  which are bounds as they stand, the number is 1; so it is with what is not floating-point.
  """
  kept = 1, list(operands)
  if any(terms.value(n) is not None or terms.shape(n) is None for n in operands):
    return kept
  if any(not terms.dtype(n).startswith('float') for n in operands):
    return kept
  parts = [split_common_factor(terms, number) for number in operands]
  first = min(own for _, own in parts)
  factor = max((f for f, own in parts if own == first), key=lambda f: (abs(f), f))
  if factor == 1:
    return kept
  return factor, [
    total(terms, [(own, f / factor)], terms.dtype(number), terms.shape(number) or ())
    for number, (f, own) in zip(operands, parts, strict=True)
  ]


def _bounds(terms: Terms, kind: str, one: int, other: int) -> bool:
  """Returns whether a term is never less, or never greater, than a number that is another one."""
  if terms.value(other) is None:
    return False
  first, second = range_of(terms, one), range_of(terms, other)
  return first[0] >= second[1] if kind == 'Maximum' else first[1] <= second[0]


def above_zero(terms: Terms, number: int, dtype: str, shape: Shape) -> int:
  """Returns the greater of a term and 0: of -x it is that of x, less x."""
  kind = np.dtype('float32' if dtype in ('bfloat16', 'float16') else dtype)
  zero = terms.constant(np.asarray(0, kind), dtype)
  if split_factor(terms, number)[0] >= 0:
    return extreme(terms, 'Maximum', [number, zero], dtype, shape)
  positive = total(terms, [(number, -1)], dtype, shape)
  known = extreme(terms, 'Maximum', [positive, zero], dtype, shape)
  return total(terms, [(known, 1), (number, 1)], dtype, shape)
