"""The greatest and the least of terms."""

import itertools
from collections.abc import Sequence

import numpy as np

from tf2verify.relation.proof.elementwise import elementwise
from tf2verify.relation.proof.polynomials import split_factor, total
from tf2verify.relation.proof.ranges import range_of
from tf2verify.relation.proof.terms import Shape, Terms


def extreme(terms: Terms, kind: str, operands: Sequence[int], dtype: str, shape: Shape) -> int:
  """Returns the `Maximum` or `Minimum` of terms, in any order; of one alone, that.

  So it is where no element of one can be beyond any of the other.
  """
  if len(set(operands)) == 1 and terms.shape(operands[0]) == shape:
    return operands[0]
  for one, other in itertools.permutations(operands, 2):
    if terms.shape(one) == shape and _bounds(terms, kind, one, other):
      return one
  if dtype.startswith('float') and all(_is_negative(terms, one) for one in operands):
    # The greatest of -x and -y is -1 times the least of x and y.
    opposite = 'Minimum' if kind == 'Maximum' else 'Maximum'
    positive = [total(terms, [(one, -1)], dtype, terms.shape(one) or ()) for one in operands]
    return total(terms, [(extreme(terms, opposite, positive, dtype, shape), -1)], dtype, shape)
  return elementwise(terms, kind, operands, dtype, shape, commutes=True)


def _is_negative(terms: Terms, number: int) -> bool:
  """Returns whether a term is written as -1 times something."""
  is_known = terms.value(number) is None and terms.shape(number) is not None
  return is_known and split_factor(terms, number)[0] < 0


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
