"""The greatest and the least of terms."""

from collections.abc import Sequence

import numpy as np

from tf2verify.relation.proof.elementwise import elementwise
from tf2verify.relation.proof.polynomials import split_factor, total
from tf2verify.relation.proof.terms import Shape, Terms


def extreme(terms: Terms, kind: str, operands: Sequence[int], dtype: str, shape: Shape) -> int:
  """Returns the `Maximum` or `Minimum` of terms, in any order; of one alone, that."""
  if len(set(operands)) == 1 and terms.shape(operands[0]) == shape:
    return operands[0]
  return elementwise(terms, kind, operands, dtype, shape, commutes=True)


def above_zero(terms: Terms, number: int, dtype: str, shape: Shape) -> int:
  """Returns the greater of a term and 0: of -x it is that of x, less x."""
  kind = np.dtype('float32' if dtype in ('bfloat16', 'float16') else dtype)
  zero = terms.constant(np.asarray(0, kind), dtype)
  if split_factor(terms, number)[0] >= 0:
    return extreme(terms, 'Maximum', [number, zero], dtype, shape)
  positive = total(terms, [(number, -1)], dtype, shape)
  known = extreme(terms, 'Maximum', [positive, zero], dtype, shape)
  return total(terms, [(known, 1), (number, 1)], dtype, shape)
