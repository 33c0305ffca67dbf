"""Terms that are never negative, whatever they are computed from."""

import collections

from tf2verify.relation.proof.polynomials import POLYNOMIAL
from tf2verify.relation.proof.shapes import source
from tf2verify.relation.proof.terms import Terms

_NEVER_NEGATIVE = ('Exp', 'Sigmoid', 'Softplus', 'Abs', 'Sqrt')
# As their operand is.
_PASSED_ON = ('Sum', 'Max', 'Min', 'Prod', 'transpose', 'reciprocal')


def is_never_negative(terms: Terms, number: int) -> bool:
  """Returns whether a term is known to be at least 0: a sum of squares, an exponential, a mask."""
  term = terms[source(terms, number)]
  if term.kind in _NEVER_NEGATIVE:
    return True
  if term.kind in _PASSED_ON:
    return is_never_negative(terms, term.inputs[0])
  if term.kind == 'Maximum':
    return any(_is_at_least_0(terms, one) for one in term.inputs)
  if term.kind == 'Cast':
    return terms.dtype(term.inputs[0]) == 'bool'
  if term.kind != POLYNOMIAL:
    return _is_at_least_0(terms, number) if term.value is not None else False
  return all(
    coefficient > 0 and _is_even_or_positive(terms, monomial)
    for monomial, coefficient in term.extra.items()
  )


def _is_even_or_positive(terms: Terms, monomial: tuple[int, ...]) -> bool:
  counts = collections.Counter(monomial)
  return all(n % 2 == 0 or is_never_negative(terms, atom) for atom, n in counts.items())


def _is_at_least_0(terms: Terms, number: int) -> bool:
  single = terms.single(number)
  return single >= 0 if single is not None else is_never_negative(terms, number)
