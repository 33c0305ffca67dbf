"""Rules for conditions: comparisons, what they choose, and masks of zeros and ones."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.elementwise import elementwise
from tf2verify.relation.proof.normal_forms.extremes import with_common_factor
from tf2verify.relation.proof.normal_forms.operation import Operation
from tf2verify.relation.proof.normal_forms.polynomials import is_ring, product, total
from tf2verify.relation.proof.normal_forms.shapes import reshape, source
from tf2verify.relation.proof.normal_forms.states import whole_counts
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of


def equality(op: Operation) -> Sequence[int] | None:
  """`Equal`, and `NotEqual` as its negation, of operands that can be broadcast.

  Of others TensorFlow may give a single False.
  """
  shapes = op.shapes()
  if shapes is None or op.shape is None:
    return None
  try:
    if np.broadcast_shapes(*shapes) != op.shape:
      return None
  except ValueError:
    return None
  operands = whole_counts(op.terms, op.inputs)
  same = elementwise(op.terms, 'Equal', operands, op.dtype, op.shape, commutes=True)
  return [same] if op.op_type == 'Equal' else [_not(op.terms, same, op.shape)]


def negation(op: Operation) -> Sequence[int] | None:
  """`LogicalNot`; twice, it does nothing."""
  if op.shape is None or op.shapes() is None:
    return None
  return [_not(op.terms, op.inputs[0], op.shape)]


def greater(op: Operation) -> Sequence[int] | None:
  """`Greater`."""
  if op.shape is None or op.shapes() is None:
    return None
  return [_compared(op.terms, 'Greater', op.inputs, op.shape)]


def less(op: Operation) -> Sequence[int] | None:
  """`Less`: `Greater` of the operands in the other order."""
  return greater(dataclasses.replace(op, op_type='Greater', inputs=op.inputs[::-1]))


def _compared(terms: Terms, kind: str, operands: Sequence[int], shape: Shape) -> int:
  """Returns a comparison: -x > -y is y > x, and 2x > 2y is x > y."""
  factor, scaled = with_common_factor(terms, whole_counts(terms, operands))
  return elementwise(terms, kind, scaled if factor > 0 else scaled[::-1], 'bool', shape)


def at_most(op: Operation) -> Sequence[int] | None:
  """`LessEqual`: `GreaterEqual` of the operands in the other order."""
  return at_least(dataclasses.replace(op, op_type='GreaterEqual', inputs=op.inputs[::-1]))


def at_least(op: Operation) -> Sequence[int] | None:
  """`GreaterEqual`; of integers it is the negation of `Less`."""
  if op.shape is None or op.shapes() is None:
    return None
  operands = whole_counts(op.terms, op.inputs)
  if any('int' not in op.terms.dtype(number) for number in operands):
    return [_compared(op.terms, op.op_type, operands, op.shape)]
  less = _compared(op.terms, 'Greater', operands[::-1], op.shape)
  return [_not(op.terms, less, op.shape)]


def _not(terms: Terms, number: int, shape: Shape) -> int:
  within = _negated(terms, number, shape)
  if within is not None:
    return reshape(terms, terms[within].inputs[0], shape)
  return elementwise(terms, 'LogicalNot', [number], 'bool', shape)


def _negated(terms: Terms, number: int, shape: Shape) -> int | None:
  """Returns the negation that a term is a reshape of, or itself; None for none."""
  within = source(terms, number)
  is_whole = size_of(terms.shape(within) or (0,)) == size_of(shape)
  return within if terms[within].kind == 'LogicalNot' and is_whole else None


def as_numbers(op: Operation) -> int | None:
  """Returns what a cast makes of two conditions or of a negated one; None for anything else.

  The mask of two conditions is the product of their masks, that of a negated one is 1 less it.
  """
  terms, read, shape = op.terms, op.inputs[0], op.shape
  if shape is None or not is_ring(op.dtype):
    return None
  negated = _negated(terms, read, shape)
  if negated is not None:
    mask = mask_of(terms, reshape(terms, terms[negated].inputs[0], shape), op.dtype)
    return total(terms, [(one(terms, op.dtype), 1), (mask, -1)], op.dtype, shape)
  both = terms[source(terms, read)]
  within = terms.shape(source(terms, read))
  if both.kind != 'LogicalAnd' or within is None:
    return None
  masks = [mask_of(terms, condition, op.dtype) for condition in both.inputs]
  return reshape(terms, product(terms, masks, op.dtype, within), shape)


def one(terms: Terms, dtype: str) -> int:
  """Returns the number 1."""
  kind = np.dtype('float32' if dtype in ('bfloat16', 'float16') else dtype)
  return terms.constant(np.asarray(1, kind), dtype)


def mask_of(terms: Terms, condition: int, dtype: str) -> int:
  """Returns a condition cast to a dtype, as a constant where it is one."""
  value = terms.value(condition)
  if value is not None and dtype not in ('bfloat16', 'float16'):
    return terms.constant(value.astype(dtype), dtype)
  shape = terms.shape(condition) or ()
  negated = _negated(terms, condition, shape)
  if negated is not None:
    inner = mask_of(terms, reshape(terms, terms[negated].inputs[0], shape), dtype)
    return total(terms, [(one(terms, dtype), 1), (inner, -1)], dtype, shape)
  return elementwise(terms, 'Cast', [condition], dtype, shape, False)


def select(op: Operation) -> Sequence[int] | None:
  """`where`: of `Select`, only if its condition has the shape of what is chosen from.

  Of two numbers it is a sum of the one and a multiple of the condition's mask.
  """
  shapes = op.shapes()
  if op.shape is None or shapes is None:
    return None
  condition, first, second = op.inputs
  terms = op.terms
  if op.op_type == 'Select' and shapes[0] != op.shape:
    if shapes[0] != op.shape[:1]:
      return None
    rows = (*shapes[0], *(1,) * (len(op.shape) - 1))  # a condition for each row
    whole_rows = reshape(terms, condition, rows)
    return select(dataclasses.replace(op, op_type='SelectV2', inputs=[whole_rows, first, second]))
  high, low = terms.single(first), terms.single(second)
  if high is not None and low is not None and is_ring(op.dtype) and np.isfinite([high, low]).all():
    mask = mask_of(terms, condition, op.dtype)
    parts = [(mask, high - low), (one(terms, op.dtype), low)]
    return [total(terms, parts, op.dtype, op.shape)]
  if low == 0 and 'float' in op.dtype and _is_mask(terms, condition):
    # Of a random draw, which says nothing about the value that it lets through.
    ones = mask_of(terms, condition, op.dtype)
    return [product(terms, [first, ones], op.dtype, op.shape)]
  negated = _negated(terms, condition, shapes[0])
  if negated is not None:
    inner = reshape(terms, terms[negated].inputs[0], shapes[0])
    return [elementwise(terms, 'Select', [inner, second, first], op.dtype, op.shape)]
  return [elementwise(terms, 'Select', op.inputs, op.dtype, op.shape)]


def _is_mask(terms: Terms, condition: int) -> bool:
  """Returns whether a condition compares a random draw with a constant."""
  compared = terms[source(terms, condition)]
  if compared.kind not in ('GreaterEqual', 'Greater', 'Less', 'LessEqual'):
    return False
  kinds = {terms[source(terms, number)].kind for number in compared.inputs}
  return kinds == {'draw', 'constant'}
