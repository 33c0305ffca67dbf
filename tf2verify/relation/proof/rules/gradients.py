"""Rules for what differentiation makes: the gradients of single operations, as arithmetic."""

from collections.abc import Callable, Sequence

import numpy as np

from tf2verify.relation.proof.normal_forms.elementwise import elementwise
from tf2verify.relation.proof.normal_forms.operation import Operation, Rule
from tf2verify.relation.proof.normal_forms.polynomials import (
  exponential,
  product,
  reciprocal,
  total,
)
from tf2verify.relation.proof.normal_forms.reductions import reduced
from tf2verify.relation.proof.normal_forms.shapes import reshape, source
from tf2verify.relation.proof.normal_forms.terms import Terms, size_of
from tf2verify.relation.proof.rules.exponentials import log_softmax


def _of_elements(op: Operation) -> bool:
  """Returns whether all operands are floating-point numbers of one known shape."""
  shapes = op.shapes()
  return bool(
    op.shape is not None
    and 'float' in op.dtype
    and shapes
    and all(shape == op.shape for shape in shapes)
  )


def bias_gradient(op: Operation) -> Sequence[int] | None:
  """The sum over all axes but that of the channels."""
  shape = op.terms.shape(op.inputs[0])
  if shape is None or 'float' not in op.dtype or 0 in shape or len(shape) < 2:
    return None
  kept = 1 if op.attributes.get('data_format') == 'NCHW' else len(shape) - 1
  axes = [axis for axis in range(len(shape)) if axis != kept]
  return [reduced(op.terms, 'Sum', op.inputs[0], axes, op.dtype)]


def _formula(make: Callable[[Operation, int, int], int]) -> Rule:
  """Returns the rule of an operation of two operands that is a formula of them."""

  def rule(op: Operation) -> Sequence[int] | None:
    return [make(op, *op.inputs)] if _of_elements(op) and len(op.inputs) == 2 else None

  return rule


def _sum(op: Operation, *parts: tuple[int, float]) -> int:
  assert op.shape is not None
  return total(op.terms, parts, op.dtype, op.shape)


def _product(op: Operation, *factors: int) -> int:
  assert op.shape is not None
  return product(op.terms, factors, op.dtype, op.shape)


def _tanh(op: Operation, output: int, gradient: int) -> int:
  return _product(op, gradient, _sum(op, (op.number(1), 1), (_product(op, output, output), -1)))


def _sigmoid(op: Operation, output: int, gradient: int) -> int:
  return _product(op, gradient, output, _sum(op, (op.number(1), 1), (output, -1)))


def _root(op: Operation, output: int, gradient: int) -> int:
  assert op.shape is not None
  inverse = reciprocal(op.terms, output, op.dtype, op.shape)
  return _sum(op, (_product(op, gradient, inverse), 0.5))


def _inverse_root(op: Operation, output: int, gradient: int) -> int:
  return _sum(op, (_product(op, gradient, output, output, output), -0.5))


def _inverse(op: Operation, output: int, gradient: int) -> int:
  return _sum(op, (_product(op, gradient, output, output), -1))


def _positive(terms: Terms, op: Operation, number: int) -> int:
  """Returns whether the elements of a term are positive, as `ReluGrad` asks."""
  assert op.shape is not None
  kind = np.dtype('float32' if op.dtype in ('bfloat16', 'float16') else op.dtype)
  zero = terms.constant(np.zeros((), kind), op.dtype)
  return elementwise(terms, 'Greater', [number, zero], 'bool', op.shape)


def relu_gradient(op: Operation) -> Sequence[int] | None:
  """The gradient where the input, or the output, is positive; both are at the same places."""
  if not _of_elements(op) or op.shape is None:
    return None
  gradient, features = op.inputs
  mask = _positive(op.terms, op, _under_relu(op.terms, features))
  ones = elementwise(op.terms, 'Cast', [mask], op.dtype, op.shape, False)
  return [_product(op, gradient, ones)]


def _under_relu(terms: Terms, number: int) -> int:
  """Returns what a relu reads, given what it yields; any other term as it is."""
  term = terms[number]
  if term.kind == 'reshape' and terms.shape(number) is not None:
    inner = _under_relu(terms, term.inputs[0])
    return number if inner == term.inputs[0] else reshape(terms, inner, terms.shape(number) or ())
  if term.kind != 'Maximum' or len(term.inputs) != 2:
    return number
  others = [one for one in term.inputs if terms.single(one) != 0]
  same = len(others) == 1 and terms.shape(others[0]) == terms.shape(number)
  return others[0] if same else number


def broadcast_arguments(op: Operation) -> Sequence[int] | None:
  """The axes along which a sum or product of two constant shapes repeats its operands."""
  shapes = [op.terms.integers(number) for number in op.inputs]
  if any(shape is None for shape in shapes):
    return None
  known = [shape or [] for shape in shapes]
  rank = max(len(shape) for shape in known)
  padded = [[1] * (rank - len(shape)) + shape for shape in known]
  repeated = [
    [axis for axis in range(rank) if axis < rank - len(shape) or whole[axis] == 1]
    for shape, whole in zip(known, padded, strict=True)
  ]
  # Where both have one element, nothing is repeated: a sum over such an axis changes nothing.
  return [op.terms.constant(np.asarray(axes, op.dtype), op.dtype) for axes in repeated]


def divide_or_zero(op: Operation) -> Sequence[int] | None:
  """`DivNoNan` by a constant other than 0: a division."""
  divisor = op.terms.single(op.inputs[1])
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  if not divisor:
    return [elementwise(op.terms, op.op_type, op.inputs, op.dtype, op.shape)]
  inverse = reciprocal(op.terms, op.inputs[1], op.dtype, op.terms.shape(op.inputs[1]) or ())
  return [product(op.terms, [op.inputs[0], inverse], op.dtype, op.shape)]


_HOLDS_INDICES = ('int32', 'int64', 'float32', 'float64')


def _labels(terms: Terms, number: int) -> int:
  """Returns integers before they are cast to other dtypes, all of which can hold an index."""
  shape, inner, found = terms.shape(number), source(terms, number), number
  while terms[inner].kind == 'Cast' and terms.dtype(inner) in _HOLDS_INDICES:
    (before,) = terms[inner].inputs
    inner = source(terms, before)
    known = terms.shape(inner)
    if shape is None or known is None or size_of(known) != size_of(shape):
      break
    if 'int' in terms.dtype(inner):
      found = reshape(terms, inner, shape)
  return found


def cross_entropy(op: Operation) -> Sequence[int] | None:
  """Minus the sum of labels times log-softmax, and its gradient; labels may be indices."""
  shapes = op.shapes()
  if shapes is None or op.shape is None or 0 in shapes[0] or len(shapes[0]) != 2:
    return None
  terms, (logits, labels) = op.terms, op.inputs
  rows = shapes[0]
  if op.op_type.startswith('Sparse'):
    labels = _one_hot(op, _labels(terms, labels), rows)
  elif shapes[1] != rows:
    return None
  logarithms = log_softmax(terms, logits, op.dtype)
  products = product(terms, [labels, logarithms], op.dtype, rows)
  found = reduced(terms, 'Sum', products, [1], op.dtype)
  shares = exponential(terms, [(logarithms, 1)], op.dtype, rows)
  gradient = total(terms, ((shares, 1), (labels, -1)), op.dtype, rows)
  return [total(terms, [(found, -1)], op.dtype, op.shape), gradient]


def _one_hot(op: Operation, labels: int, shape: tuple[int, ...]) -> int:
  kind = np.dtype('float32' if op.dtype in ('bfloat16', 'float16') else op.dtype)
  depth = op.terms.constant(np.asarray(shape[1], 'int32'), 'int32')
  on, off = (op.terms.constant(np.asarray(n, kind), op.dtype) for n in (1, 0))
  return op.terms.add('OneHot', [labels, depth, on, off], 1, op.dtype, shape)


RULES: dict[str, Rule] = {
  'SparseSoftmaxCrossEntropyWithLogits': cross_entropy,
  'SoftmaxCrossEntropyWithLogits': cross_entropy,
  'BiasAddGrad': bias_gradient,
  'TanhGrad': _formula(_tanh),
  'SigmoidGrad': _formula(_sigmoid),
  'SqrtGrad': _formula(_root),
  'RsqrtGrad': _formula(_inverse_root),
  'ReciprocalGrad': _formula(_inverse),
  'InvGrad': _formula(_inverse),
  'ReluGrad': relu_gradient,
  'BroadcastGradientArgs': broadcast_arguments,
  'DivNoNan': divide_or_zero,
}
