"""Terms that are never negative, whatever they are computed from."""

import collections

from tf2verify.relation.proof.polynomials import POLYNOMIAL
from tf2verify.relation.proof.shapes import TRANSPOSE, source
from tf2verify.relation.proof.terms import Terms

_NEVER_NEGATIVE = ('Exp', 'Sigmoid', 'Softplus', 'Abs', 'Sqrt')
# As their operand is.
_PASSED_ON = ('Sum', 'Max', 'Min', 'Prod', 'reciprocal', TRANSPOSE)


def is_never_negative(terms: Terms, number: int) -> bool:
  """Returns whether a term is known to be at least 0: a sum of squares, an exponential, a mask."""
  single = terms.single(number)
  if single is not None:
    return single >= 0
  term = terms[source(terms, number)]
  if term.kind in _PASSED_ON:
    return is_never_negative(terms, term.inputs[0])
  if term.kind == 'Maximum':
    return any(is_never_negative(terms, one) for one in term.inputs)
  if term.kind == 'Cast':
    return terms.dtype(term.inputs[0]) == 'bool'
  if term.kind == POLYNOMIAL:
    return all(c > 0 and _is_even_or_positive(terms, m) for m, c in term.extra.items())
  return term.kind in _NEVER_NEGATIVE


def _is_even_or_positive(terms: Terms, monomial: tuple[int, ...]) -> bool:
  counts = collections.Counter(monomial)
  return all(n % 2 == 0 or is_never_negative(terms, atom) for atom, n in counts.items())
