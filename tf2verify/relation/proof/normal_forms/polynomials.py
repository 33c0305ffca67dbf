"""Sums and products, multiplied out: one normal form of what addition and multiplication make.

A polynomial has terms of other kinds for its variables, and numbers for coefficients. A number of
32 bits counts as the shortest decimal that it is the nearest to, and those that agree to seven
digits are one: what is proven is about numbers, not about their rounding.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.elementwise import (
  coarsened,
  elementwise,
  seen_in,
  under_transpose,
  without_leading_ones,
)
from tf2verify.relation.proof.normal_forms.shapes import TRANSPOSE, reshape, source, transpose
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms

POLYNOMIAL = 'polynomial'
EXPONENTIAL = 'Exp'
_MOST_PRODUCTS = 16
_ROUNDING = 1e-13
# Numpy has none of their own.
OF_ML = ('bfloat16', 'float16')

Number = float | int
Monomial = tuple[int, ...]
Polynomial = dict[Monomial, Number]


def is_ring(dtype: str) -> bool:
  """Returns whether sums and products of a dtype are handled here."""
  return 'float' in dtype or (dtype.startswith(('int', 'uint')) and dtype != 'uint')


def polynomial(terms: Terms, number: int) -> Polynomial:
  """Returns a term as a polynomial."""
  constant = _coefficient(terms, number)
  if constant is not None:
    return {(): constant} if constant else {}
  own = terms.shape(number)
  assert own is not None
  inner = terms[source(terms, number)]
  if inner.kind == POLYNOMIAL:
    assert inner.shape is not None
    within = tuple(size or 0 for size in inner.shape)
    found: Polynomial = {}
    for monomial, coefficient in inner.extra.items():
      seen = [seen_in(terms, atom, within, own) for atom in monomial]
      known = [atom for atom in seen if atom is not None]
      if len(known) < len(seen):
        break
      _add(found, tuple(sorted(known)), coefficient)
    else:
      return found
  coefficient, rest = split_factor(terms, number)
  return {(reshape(terms, rest, without_leading_ones(own)),): coefficient}


def _coefficient(terms: Terms, number: int) -> Number | None:
  """Returns the finite number that a term is everywhere; None where it is none."""
  found = terms.single(number)
  if found is None or isinstance(found, bool) or not math.isfinite(found):
    return None
  return decimal(found) if terms.dtype(number) == 'float32' else found


def decimal(number: Number) -> Number:
  """Returns the shortest decimal that a float of 32 bits stands for: 0.99, not 0.9900000095."""
  return number if isinstance(number, int) else float(str(np.float32(number)))


def _add(into: Polynomial, monomial: Monomial, coefficient: Number) -> None:
  before = into.get(monomial, 0)
  found = before + coefficient
  # A difference of two ways to form 1 / 48 is rounding of ours.
  if abs(found) > _ROUNDING * max(abs(before), abs(coefficient)):
    into[monomial] = found
  else:
    into.pop(monomial, None)


def total(terms: Terms, parts: Iterable[tuple[int, Number]], dtype: str, shape: Shape) -> int:
  """Returns the sum of multiples of terms, which are broadcast to a shape."""
  found: Polynomial = {}
  for number, factor in parts:
    for monomial, coefficient in polynomial(terms, number).items():
      _add(found, monomial, coefficient * factor)
  return _term(terms, found, dtype, shape)


def product(terms: Terms, factors: Sequence[int], dtype: str, shape: Shape) -> int:
  """Returns the product of terms, which are broadcast to a shape."""
  found: Polynomial = {(): 1}
  for number in factors:
    other = polynomial(terms, number)
    is_number = set(found) == {()} or set(other) == {()}
    if not is_number and len(found) * len(other) > _MOST_PRODUCTS:
      found, other = _whole(terms, found, dtype, shape), _whole(terms, other, dtype, shape)
    made: Polynomial = {}
    for one, first in found.items():
      for two, second in other.items():
        monomial = _with_one_exponential(terms, (*one, *two), dtype)
        _add(made, tuple(sorted(monomial)), first * second)
    found = made
  return _term(terms, found, dtype, shape)


def exponent(terms: Terms, number: int) -> int | None:
  """Returns x of a term that is the exponential function of x; None for any other."""
  inner, shape = terms[source(terms, number)], terms.shape(number)
  if inner.kind != EXPONENTIAL or shape is None or None in (inner.shape or (None,)):
    return None
  return reshape(terms, inner.inputs[0], shape) if terms.shape(inner.inputs[0]) else None


def exponential(terms: Terms, parts: Iterable[tuple[int, Number]], dtype: str, shape: Shape) -> int:
  """Returns the exponential function of a sum, as `total` has it."""
  found = total(terms, parts, dtype, shape)
  if terms.single(found) == 0:
    return terms.constant(np.ones(shape, np.dtype('float32' if dtype in OF_ML else dtype)), dtype)
  return elementwise(terms, EXPONENTIAL, [found], dtype, shape)


def _with_one_exponential(terms: Terms, monomial: Monomial, dtype: str) -> Monomial:
  """Returns a monomial with one exponential at most: of a sum, for a product of several."""
  found = [(atom, exponent(terms, atom)) for atom in monomial]
  known = [(atom, one) for atom, one in found if one is not None]
  if len(known) < 2 or 'float' not in dtype:
    return monomial
  shape = np.broadcast_shapes(*(terms.shape(atom) or () for atom, _ in known))
  together = exponential(terms, [(one, 1) for _, one in known], dtype, shape)
  rest = [atom for atom, one in found if one is None]
  if terms.single(together) == 1:
    return tuple(rest)
  return (*rest, reshape(terms, together, without_leading_ones(shape)))


def _whole(terms: Terms, found: Polynomial, dtype: str, shape: Shape) -> Polynomial:
  """Returns a polynomial of more than one monomial as a multiple of a variable of its own.

  The variable is the same for all multiples: the square of a difference is that of its negative.
  """
  if len(found) <= 1:
    return found
  factor, own = split_common_factor(terms, _term(terms, found, dtype, shape))
  return {(reshape(terms, own, without_leading_ones(shape)),): factor}


def split_factor(terms: Terms, number: int) -> tuple[Number, int]:
  """Returns a number and a term whose product a term is."""
  inner = terms[source(terms, number)]
  shape = terms.shape(number)
  if inner.kind == TRANSPOSE and shape is not None:
    factor, moved = split_factor(terms, inner.inputs[0])
    return factor, reshape(terms, transpose(terms, moved, inner.detail), shape)
  if inner.kind != POLYNOMIAL or len(inner.extra) != 1 or shape is None:
    return 1, number
  ((monomial, coefficient),) = inner.extra.items()
  if coefficient == 1 or not monomial or 'float' not in inner.dtype:
    return 1, number
  within = tuple(size or 0 for size in inner.shape or ())
  rest = _term(terms, {monomial: 1}, inner.dtype, within)
  return coefficient, reshape(terms, rest, shape)


def split_common_factor(terms: Terms, number: int) -> tuple[Number, int]:
  """Returns the same, also of a sum: the coefficient of its first monomial is the number.

  Of a sum and any multiple of it the term is the same.
  """
  inner, shape = terms[source(terms, number)], terms.shape(number)
  if inner.kind == TRANSPOSE and shape is not None:
    factor, moved = split_common_factor(terms, inner.inputs[0])
    return factor, reshape(terms, transpose(terms, moved, inner.detail), shape)
  if inner.kind != POLYNOMIAL or len(inner.extra) < 2 or 'float' not in inner.dtype:
    return split_factor(terms, number)
  first = inner.extra[min(monomial for monomial in inner.extra if monomial)]
  if first == 1 or shape is None:
    return 1, number
  within = tuple(size or 0 for size in inner.shape or ())
  divided = {monomial: coefficient / first for monomial, coefficient in inner.extra.items()}
  return first, reshape(terms, _term(terms, divided, inner.dtype, within), shape)


def with_changed_variables(
  terms: Terms, number: int, change: Callable[[int], int], result: Shape
) -> int | None:
  """Returns a polynomial whose variables are changed; None where a term is no polynomial.

  Args:
    terms: all terms.
    number: the term.
    change: returns what stands for a variable, given one that is broadcast to the term's shape.
    result: what the changed variables are broadcast to.
  """
  shape, inner = terms.shape(number), terms[source(terms, number)]
  if shape is None or inner.kind != POLYNOMIAL:
    return None
  found = polynomial(terms, number)
  if any(source(terms, atom) == source(terms, number) for one in found for atom in one):
    return None  # its variables cannot be broadcast to this shape
  unit = terms.constant(
    np.ones((), np.dtype('float32' if inner.dtype in OF_ML else inner.dtype)), inner.dtype
  )
  parts = [
    (product(terms, [unit, *map(change, monomial)], inner.dtype, result), coefficient)
    for monomial, coefficient in found.items()
  ]
  return total(terms, parts, inner.dtype, result)


def leading_sign(terms: Terms, number: int) -> int:
  """Returns 1 or -1, of which a term has the one and its negative the other.

  It is the sign of the first coefficient of a polynomial, numbers aside; 1 for other terms.
  """
  shape = terms.shape(number)
  if shape is None or not is_ring(terms.dtype(number)):
    return 1
  found = polynomial(terms, number)
  first = min((monomial for monomial in found if monomial), default=())
  return -1 if found.get(first, 1) < 0 else 1


def reciprocal(terms: Terms, number: int, dtype: str, shape: Shape) -> int:
  """Returns one over a term of floating-point numbers, broadcast to a shape."""
  found = polynomial(terms, number)
  if len(found) != 1:
    return elementwise(terms, 'reciprocal', [number], dtype, shape)
  ((monomial, coefficient),) = found.items()
  inverse = [_inverse(terms, atom, dtype) for atom in monomial]
  return _term(terms, {tuple(sorted(inverse)): 1 / coefficient}, dtype, shape)


def _inverse(terms: Terms, atom: int, dtype: str) -> int:
  shape, power = terms.shape(atom), exponent(terms, atom)
  assert shape is not None
  if power is not None:
    return exponential(terms, [(power, -1)], dtype, shape)
  return elementwise(terms, 'reciprocal', [atom], dtype, shape)


def _term(terms: Terms, found: Polynomial, dtype: str, shape: Shape) -> int:
  """Returns the term of a polynomial."""
  if not found or set(found) == {()}:
    kind = np.dtype('float32' if dtype in OF_ML else dtype)
    with np.errstate(over='ignore'):
      value = np.asarray(found.get((), 0)).astype(kind)
    return terms.constant(np.broadcast_to(value, shape), dtype)
  atoms = sorted({atom for monomial in found for atom in monomial})
  if found == {(atoms[0],): 1} and terms.shape(atoms[0]) is not None:
    whole = terms.shape(atoms[0]) or ()
    if (1,) * (len(shape) - len(whole)) + whole == shape:
      return reshape(terms, atoms[0], shape)
  inside = under_transpose(terms, atoms, shape)
  if inside is not None:
    moved, before, perm = inside
    names = dict(zip(atoms, moved, strict=True))
    under: Polynomial = {}
    for monomial, coefficient in found.items():
      _add(under, tuple(sorted(names[atom] for atom in monomial)), coefficient)
    return reshape(terms, transpose(terms, _term(terms, under, dtype, before), perm), shape)
  coarse, seen = coarsened(terms, atoms, shape)
  names = dict(zip(atoms, seen, strict=True))
  renamed: Polynomial = {}
  for monomial, coefficient in found.items():
    _add(renamed, tuple(sorted(names[atom] for atom in monomial)), coefficient)
  detail = tuple(sorted((m, terms.coefficient(c, dtype)) for m, c in renamed.items()))
  number = terms.add(POLYNOMIAL, sorted(set(seen)), detail, dtype, coarse, extra=dict(renamed))
  return reshape(terms, number, shape)
