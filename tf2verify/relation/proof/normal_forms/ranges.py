"""Between which numbers the elements of terms are, whatever they are computed from."""

import collections
import math

import numpy as np

from tf2verify.relation.proof.normal_forms.polynomials import POLYNOMIAL
from tf2verify.relation.proof.normal_forms.shapes import TRANSPOSE, source
from tf2verify.relation.proof.normal_forms.terms import Term, Terms

# The least number and the greatest, or bounds of them.
Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)
_POSITIVE: Range = (0.0, math.inf)
_FIXED: dict[str, Range] = {
  'Sigmoid': (0.0, 1.0),
  'Tanh': (-1.0, 1.0),
  'Softplus': _POSITIVE,
  'Erf': (-1.0, 1.0),
  'Softsign': (-1.0, 1.0),
  'Sin': (-1.0, 1.0),
  'Cos': (-1.0, 1.0),
  'Sign': (-1.0, 1.0),
}
_SAME_AS_OPERAND = ('Max', 'Min', TRANSPOSE)
_DEEPEST = 8


def range_of(terms: Terms, number: int, counts: bool = False, depth: int = 0) -> Range:
  """Returns bounds of all elements of a term, in exact arithmetic.

  Args:
    terms: all terms.
    number: the term.
    counts: whether variables of integers count something, and are not negative.
    depth: of terms that were gone through before.
  """
  key = number, counts, depth
  if key not in terms.ranges:
    terms.ranges[key] = _range(terms, number, counts, depth)
  return terms.ranges[key]


def _range(terms: Terms, number: int, counts: bool, depth: int) -> Range:
  value = terms.value(number)
  if value is not None:
    known = value.astype('float64') if value.dtype.kind in 'fiub' and value.size else None
    return ANY if known is None or np.isnan(known).any() else (known.min(), known.max())
  term = terms[source(terms, number)]
  if depth > _DEEPEST:
    return ANY
  if term.kind == POLYNOMIAL:
    return _of_sum(terms, term.extra, counts, depth + 1)
  if term.kind == 'variable':
    return _POSITIVE if counts and term.dtype.startswith(('int', 'uint')) else ANY
  if term.kind in _FIXED:
    return _FIXED[term.kind]
  read = [range_of(terms, one, counts, depth + 1) for one in term.inputs[:2]]
  return _of_operands(terms, term, read)


def _of_operands(terms: Terms, term: Term, read: list[Range]) -> Range:
  if not read:
    return ANY
  kind, (low, high) = term.kind, read[0]
  if kind in _SAME_AS_OPERAND:
    return low, high
  if kind in ('Maximum', 'Minimum') and len(read) == 2:
    pick = max if kind == 'Maximum' else min
    return pick(low, read[1][0]), pick(high, read[1][1])
  if kind == 'Exp':
    return _exponential(low), _exponential(high)
  if kind == 'Abs':
    return max(low, -high, 0.0), max(-low, high)
  if kind == 'Sqrt':
    return math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
  if kind == 'reciprocal' and low >= 0:
    return 1 / high if high else math.inf, 1 / low if low else math.inf
  if kind in ('Sum', 'Prod') and low >= 0:
    return _POSITIVE
  if kind == 'Cast':
    return _of_cast(terms, term, low, high)
  return ANY


def _of_cast(terms: Terms, term: Term, low: float, high: float) -> Range:
  """Returns the range of what is cast: of integers, what is nearer to zero."""
  if terms.dtype(term.inputs[0]) == 'bool':
    return 0.0, 1.0
  if term.dtype.startswith('uint'):
    return _POSITIVE
  return (low, high) if 'float' in term.dtype else (min(low, 0.0), max(high, 0.0))


def _exponential(value: float) -> float:
  return math.exp(value) if value < 700 else math.inf


def _of_sum(terms: Terms, found: dict[tuple[int, ...], float], counts: bool, depth: int) -> Range:
  low = high = 0.0
  for monomial, coefficient in found.items():
    one: Range = (1.0, 1.0)
    for atom, power in collections.Counter(monomial).items():
      one = _times(one, _power(range_of(terms, atom, counts, depth), power))
    ends = sorted(coefficient * end for end in one)
    low, high = low + ends[0], high + ends[1]
  return ANY if math.isnan(low) or math.isnan(high) else (low, high)


def _power(known: Range, power: int) -> Range:
  if power % 2:
    return known[0] ** power, known[1] ** power
  ends = sorted(abs(end) ** power for end in known)
  return (0.0 if known[0] < 0 < known[1] else ends[0]), ends[1]


def _times(one: Range, other: Range) -> Range:
  # Nothing times infinity is nothing: an end that is not reached.
  ends = [0.0 if not a or not b else a * b for a in one for b in other]
  return min(ends), max(ends)
