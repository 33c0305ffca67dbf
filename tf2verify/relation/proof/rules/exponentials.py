"""Rules for exponentials and logarithms, and what is made of them: softplus, logistic, softmax."""

import math
from collections.abc import Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.elementwise import elementwise
from tf2verify.relation.proof.normal_forms.extremes import above_zero
from tf2verify.relation.proof.normal_forms.operation import Operation, Rule
from tf2verify.relation.proof.normal_forms.polynomials import (
  Number,
  Polynomial,
  exponent,
  exponential,
  leading_sign,
  polynomial,
  split_factor,
  total,
)
from tf2verify.relation.proof.normal_forms.reductions import log_sum_exp
from tf2verify.relation.proof.normal_forms.shapes import as_transpose, reshape, source, transpose
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of
from tf2verify.relation.proof.rules.masks import one


def softplus(op: Operation) -> Sequence[int] | None:
  """`log(1 + exp(x))`: of -x it is that of x, less x; of -|x| it is less the greater of x and 0."""
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  return [_softplus(op.terms, op.inputs[0], op.dtype, op.shape)]


def _softplus(terms: Terms, number: int, dtype: str, shape: Shape) -> int:
  factor, base = split_factor(terms, number)
  within = source(terms, base)
  absolute = terms[within]
  is_whole = size_of(terms.shape(within) or (0,)) == size_of(shape)
  if factor == -1 and absolute.kind == 'Abs' and is_whole:
    inner = reshape(terms, absolute.inputs[0], shape)
    above = above_zero(terms, inner, dtype, shape)
    return total(terms, [(_softplus(terms, inner, dtype, shape), 1), (above, -1)], dtype, shape)
  if leading_sign(terms, number) < 0:
    positive = total(terms, [(number, -1)], dtype, shape)
    known = elementwise(terms, 'Softplus', [positive], dtype, shape)
    return total(terms, [(known, 1), (number, 1)], dtype, shape)
  return elementwise(terms, 'Softplus', [number], dtype, shape)


def log1p(op: Operation) -> Sequence[int] | None:
  """`log(1 + x)`; of an exponential it is a softplus."""
  if op.shape is None or op.shapes() is None:
    return None
  terms, number = op.terms, source(op.terms, op.inputs[0])
  inner = terms[number]
  is_whole = size_of(terms.shape(number) or (0,)) == size_of(op.shape)
  if inner.kind == 'Exp' and 'float' in op.dtype and is_whole:
    exponent = reshape(terms, inner.inputs[0], op.shape)
    return [_softplus(terms, exponent, op.dtype, op.shape)]
  return [elementwise(terms, 'Log1p', op.inputs, op.dtype, op.shape)]


def logarithm(op: Operation) -> Sequence[int] | None:
  """`log(x)`; of `1 + exp(x)` it is a softplus, of a logistic function minus one."""
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  terms = op.terms
  found = polynomial(terms, op.inputs[0])
  power = _power(terms, found)
  if power is not None:
    return [total(terms, power, op.dtype, op.shape)]
  for kind, start, factor, sign in (('Exp', 1, 1, 1), ('Sigmoid', 0, 1, -1), ('Sigmoid', 1, -1, 1)):
    inner = _argument(terms, found, kind, start, factor)
    if inner is None:
      continue
    # Of 1 + exp(x), sigmoid(x) and 1 - sigmoid(x): softplus(x), -softplus(-x) and -softplus(x).
    operand = total(terms, [(inner, sign)], op.dtype, op.shape)
    known = _softplus(terms, operand, op.dtype, op.shape)
    return [total(terms, [(known, 1 if kind == 'Exp' else -1)], op.dtype, op.shape)]
  return [elementwise(terms, 'Log', op.inputs, op.dtype, op.shape)]


def _power(terms: Terms, found: Polynomial) -> list[tuple[int, Number]] | None:
  """Returns the summands of `x + log(c)` where a polynomial is `c * exp(x)`; None for others."""
  if len(found) != 1:
    return None
  ((monomial, coefficient),) = found.items()
  inner = exponent(terms, monomial[0]) if len(monomial) == 1 else None
  if inner is None or coefficient <= 0:
    return None
  number = terms.constant(np.asarray(math.log(coefficient), 'float32'), 'float32')
  return [(inner, 1), *([(number, 1)] if coefficient != 1 else [])]


def _argument(
  terms: Terms, found: Polynomial, kind: str, start: float, factor: float
) -> int | None:
  """Returns x where a polynomial is `start + factor * kind(x)`; None for any other."""
  atoms = [monomial for monomial in found if monomial]
  is_one = len(atoms) == 1 and len(atoms[0]) == 1
  if not is_one or found.get((), 0) != start or found[atoms[0]] != factor:
    return None
  (atom,) = atoms[0]
  number, shape = source(terms, atom), terms.shape(atom)
  inner, within = terms[number], terms.shape(number)
  if inner.kind != kind or None in (shape, within) or size_of(within or ()) != size_of(shape or ()):
    return None
  assert shape is not None
  return reshape(terms, inner.inputs[0], shape)


def sigmoid(op: Operation) -> Sequence[int] | None:
  """The logistic function; of -x it is 1 less that of x."""
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  return [_sigmoid(op.terms, op.inputs[0], op.dtype, op.shape)]


def _sigmoid(terms: Terms, number: int, dtype: str, shape: Shape) -> int:
  if leading_sign(terms, number) > 0:
    return elementwise(terms, 'Sigmoid', [number], dtype, shape)
  positive = total(terms, [(number, -1)], dtype, shape)
  known = elementwise(terms, 'Sigmoid', [positive], dtype, shape)
  return total(terms, [(one(terms, dtype), 1), (known, -1)], dtype, shape)


def logistic(terms: Terms, number: int, dtype: str, shape: Shape) -> int | None:
  """Returns `1 / (1 + exp(x))` as the logistic function of -x, given the divisor; None for others.

  Args:
    terms: all terms.
    number: the divisor.
    dtype: of the result.
    shape: of the result.
  """
  inner = _argument(terms, polynomial(terms, number), 'Exp', 1, 1)
  if inner is None or 'float' not in dtype:
    return None
  operand = total(terms, [(inner, -1)], dtype, shape)
  return _sigmoid(terms, operand, dtype, shape)


def softmax(op: Operation) -> Sequence[int] | None:
  """`Softmax` of rows: the exponential function of `LogSoftmax`."""
  known = log_softmax_of(op)
  if known is None or op.shape is None:
    return None
  return [exponential(op.terms, [(one, 1) for one in known], op.dtype, op.shape)]


def log_softmax_of(op: Operation) -> Sequence[int] | None:
  """`LogSoftmax` of rows."""
  shape = op.terms.shape(op.inputs[0])
  if not shape or 0 in shape or 'float' not in op.dtype:
    return None
  return [log_softmax(op.terms, op.inputs[0], op.dtype)]


def log_softmax(terms: Terms, number: int, dtype: str) -> int:
  """Returns rows less the logarithm of the sum of their exponentials, before any transpose."""
  shape = terms.shape(number)
  assert shape
  inner, order = as_transpose(terms, number) or (number, list(range(len(shape))))
  sizes = terms.shape(inner) or ()
  whole = tuple(1 if axis == order[-1] else size for axis, size in enumerate(sizes))
  less = reshape(terms, log_sum_exp(terms, inner, [order[-1]], dtype), whole)
  return transpose(terms, total(terms, [(inner, 1), (less, -1)], dtype, sizes), order)


def complement(op: Operation) -> Sequence[int] | None:
  """The complementary error function: 1 less that of the error function, which is odd."""
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  terms, sign = op.terms, leading_sign(op.terms, op.inputs[0])
  positive = op.inputs[0] if sign > 0 else total(terms, [(op.inputs[0], -1)], op.dtype, op.shape)
  known = elementwise(terms, 'Erf', [positive], op.dtype, op.shape)
  return [total(terms, [(one(terms, op.dtype), 1), (known, -sign)], op.dtype, op.shape)]


RULES: dict[str, Rule] = {
  'Erfc': complement,
  'Log': logarithm,
  'Softmax': softmax,
  'LogSoftmax': log_softmax_of,
  'Log1p': log1p,
  'Sigmoid': sigmoid,
  'Softplus': softplus,
}
