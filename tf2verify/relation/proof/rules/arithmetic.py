"""Rules for arithmetic: every spelling of sums, products, powers, bounds and reductions."""

from collections.abc import Sequence

from tf2verify.relation.proof.normal_forms.elementwise import elementwise
from tf2verify.relation.proof.normal_forms.extremes import above_zero, extreme
from tf2verify.relation.proof.normal_forms.operation import Operation, Rule, axes_of
from tf2verify.relation.proof.normal_forms.polynomials import (
  exponent,
  exponential,
  is_ring,
  leading_sign,
  polynomial,
  product,
  reciprocal,
  total,
)
from tf2verify.relation.proof.normal_forms.reductions import reduced
from tf2verify.relation.proof.normal_forms.shapes import reshape
from tf2verify.relation.proof.normal_forms.states import counted_as
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of
from tf2verify.relation.proof.rules import exponentials, masks


def _sum(*signs: int) -> Rule:
  """Returns the rule of an operation that adds its inputs, times these signs."""

  def rule(op: Operation) -> Sequence[int] | None:
    if op.shape is None or op.shapes() is None or not is_ring(op.dtype):
      return None
    factors = signs or (1,) * len(op.inputs)
    return [total(op.terms, zip(op.inputs, factors, strict=True), op.dtype, op.shape)]

  return rule


def bias_add(op: Operation) -> Sequence[int] | None:
  """Adds along the last axis, or along axis 1 where channels come first."""
  if op.shape is None or op.shapes() is None or not is_ring(op.dtype):
    return None
  value, bias = op.inputs
  if op.attributes.get('data_format') == 'NCHW':
    size = size_of(op.terms.shape(bias) or ())
    bias = reshape(op.terms, bias, (size, *(1,) * (len(op.shape) - 2)))
  return [total(op.terms, ((value, 1), (bias, 1)), op.dtype, op.shape)]


def multiply(op: Operation) -> Sequence[int] | None:
  """Multiplies."""
  if op.shape is None or op.shapes() is None or not is_ring(op.dtype):
    return None
  return [product(op.terms, op.inputs, op.dtype, op.shape)]


def square(op: Operation) -> Sequence[int] | None:
  """Multiplies with itself."""
  if op.shape is None or op.shapes() is None or not is_ring(op.dtype):
    return None
  return [product(op.terms, [op.inputs[0]] * 2, op.dtype, op.shape)]


def squared_difference(op: Operation) -> Sequence[int] | None:
  """The square of a difference."""
  if op.shape is None or op.shapes() is None or not is_ring(op.dtype):
    return None
  first, second = op.inputs
  difference = total(op.terms, ((first, 1), (second, -1)), op.dtype, op.shape)
  return [product(op.terms, [difference, difference], op.dtype, op.shape)]


def divide(op: Operation) -> Sequence[int] | None:
  """Multiplies with one over the second operand; floating-point numbers only."""
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  first, second = op.inputs
  inverse = _inverse(op.terms, second, op.dtype, op.terms.shape(second) or ())
  return [product(op.terms, [first, inverse], op.dtype, op.shape)]


def invert(op: Operation) -> Sequence[int] | None:
  """One over a floating-point number."""
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  return [_inverse(op.terms, op.inputs[0], op.dtype, op.shape)]


def _inverse(terms: Terms, number: int, dtype: str, shape: Shape) -> int:
  known = exponentials.logistic(terms, number, dtype, shape)
  return reciprocal(terms, number, dtype, shape) if known is None else known


def root(op: Operation) -> Sequence[int] | None:
  """The square root."""
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  return [_root(op.terms, op.inputs[0], op.dtype, op.shape)]


def _root(terms: Terms, number: int, dtype: str, shape: Shape) -> int:
  """Returns the square root of a term; of an exponential, that of half the exponent."""
  power = exponent(terms, number)
  if power is not None:
    return exponential(terms, [(power, 0.5)], dtype, shape)
  return elementwise(terms, 'Sqrt', [number], dtype, shape)


def inverse_root(op: Operation) -> Sequence[int] | None:
  """One over the square root."""
  found = root(op)
  if found is None or op.shape is None:
    return None
  return [reciprocal(op.terms, found[0], op.dtype, op.shape)]


def power(op: Operation) -> Sequence[int] | None:
  """A power whose exponent is a constant: of 2 to 4, 1/2, -1/2 or -1."""
  exponent = op.terms.single(op.inputs[1])
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  base = op.inputs[0]
  if op.terms.shape(base) != op.shape:
    return None
  if exponent in (1, 2, 3, 4):
    return [product(op.terms, [base] * int(exponent), op.dtype, op.shape)]
  if exponent == -1:
    return [_inverse(op.terms, base, op.dtype, op.shape)]
  if op.terms.single(base) is not None:
    return [elementwise(op.terms, 'Pow', op.inputs, op.dtype, op.shape)]
  if exponent in (0.5, -0.5):
    found = _root(op.terms, base, op.dtype, op.shape)
    return [found if exponent == 0.5 else reciprocal(op.terms, found, op.dtype, op.shape)]
  return None


def bound(op: Operation) -> Sequence[int] | None:
  """The greatest, or the least, of its operands, however they are grouped."""
  if op.shape is None or op.shapes() is None:
    return None
  values = [one for one in op.inputs if op.terms.single(one) != 0]
  if op.op_type == 'Maximum' and len(values) == 1 and 'float' in op.dtype:
    return [above_zero(op.terms, values[0], op.dtype, op.shape)]
  return [extreme(op.terms, op.op_type, op.inputs, op.dtype, op.shape)]


def relu(op: Operation) -> Sequence[int] | None:
  """The greater of its input and 0; of `Relu6` the lesser of that and 6."""
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
    return None
  found = above_zero(op.terms, op.inputs[0], op.dtype, op.shape)
  if op.op_type == 'Relu6':
    found = extreme(op.terms, 'Minimum', [found, op.number(6)], op.dtype, op.shape)
  return [found]


def leaky_relu(op: Operation) -> Sequence[int] | None:
  """The greater of its input and a multiple of it, where the slope is from 0 to 1."""
  slope = op.attributes.get('alpha', 0.2)
  if op.shape is None or op.shapes() is None or 'float' not in op.dtype or not 0 <= slope <= 1:
    return None
  part = total(op.terms, [(op.inputs[0], slope)], op.dtype, op.shape)
  return [extreme(op.terms, 'Maximum', [op.inputs[0], part], op.dtype, op.shape)]


def clip(op: Operation) -> Sequence[int] | None:
  """`clip_by_value`, spelled as its two bounds."""
  if op.shape is None or op.shapes() is None:
    return None
  value, low, high = op.inputs
  found = extreme(op.terms, 'Minimum', [value, high], op.dtype, op.shape)
  return [extreme(op.terms, 'Maximum', [found, low], op.dtype, op.shape)]


def _reduction(kind: str) -> Rule:
  """Returns the rule of an operation that reduces along constant axes."""

  def rule(op: Operation) -> Sequence[int] | None:
    shape = op.terms.shape(op.inputs[0])
    if shape is None:
      return None
    axes = axes_of(op.terms.integers(op.inputs[1]), len(shape))
    is_float = 'float' in op.dtype
    if axes is None or 0 in shape or (kind == 'Mean' and not is_float):
      return None
    result = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    if op.attributes.get('keep_dims'):
      result = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    found = reduced(op.terms, 'Sum' if kind == 'Mean' else kind, op.inputs[0], axes, op.dtype)
    found = reshape(op.terms, found, result)
    if kind == 'Mean':
      count = size_of(tuple(shape[axis] for axis in axes))
      found = total(op.terms, [(found, 1 / count)], op.dtype, result)
    return [found]

  return rule


def l2_loss(op: Operation) -> Sequence[int] | None:
  """Half of the sum of the squares."""
  shape = op.terms.shape(op.inputs[0])
  if shape is None or 'float' not in op.dtype or 0 in shape:
    return None
  squares = product(op.terms, [op.inputs[0]] * 2, op.dtype, shape)
  whole = reduced(op.terms, 'Sum', squares, range(len(shape)), op.dtype)
  return [total(op.terms, [(whole, 0.5)], op.dtype, ())]


def _unary(op: Operation) -> Sequence[int] | None:
  """An operation on every element by itself."""
  if op.shape is None or op.shapes() is None:
    return None
  detail = tuple((name, v) for name, v in op.attributes.items() if name in ('alpha', 'Tout'))
  return [elementwise(op.terms, op.op_type, op.inputs, op.dtype, op.shape, detail or None)]


def _mirrored(sign: int) -> Rule:
  """Returns the rule of a function that is `sign` times itself for the negative of its input."""

  def rule(op: Operation) -> Sequence[int] | None:
    if op.shape is None or op.shapes() is None or 'float' not in op.dtype:
      return _unary(op)
    if leading_sign(op.terms, op.inputs[0]) > 0:
      return _unary(op)
    positive = total(op.terms, [(op.inputs[0], -1)], op.dtype, op.shape)
    known = elementwise(op.terms, op.op_type, [positive], op.dtype, op.shape)
    return [total(op.terms, [(known, sign)], op.dtype, op.shape)]

  return rule


def _commutative(op: Operation) -> Sequence[int] | None:
  if op.shape is None or op.shapes() is None:
    return None
  return [elementwise(op.terms, op.op_type, op.inputs, op.dtype, op.shape, commutes=True)]


def cast(op: Operation) -> Sequence[int] | None:
  """A cast; to the dtype that it has already it does nothing."""
  if op.shape is None or op.shapes() is None:
    return None
  if op.terms.dtype(op.inputs[0]) == op.dtype:
    return op.inputs
  counted = counted_as(op.terms, op.inputs[0], op.dtype)
  found = masks.as_numbers(op) if counted is None else counted
  if found is not None:
    return [found]
  detail = bool(op.attributes.get('Truncate'))
  return [elementwise(op.terms, 'Cast', op.inputs, op.dtype, op.shape, detail)]


def floor_div(op: Operation) -> Sequence[int] | None:
  """An integer over a positive constant: `-(-n // 2)` is `(n + 1) // 2`.

  floor(-p / c) is -floor((p + c - 1) / c), and multiples of c are taken out.
  """
  terms, divisor = op.terms, op.terms.single(op.inputs[1])
  is_known = op.shape is not None and op.shapes() is not None and divisor is not None
  if not is_known or not op.dtype.startswith('int') or terms.shape(op.inputs[0]) != op.shape:
    return _unary(op)
  assert op.shape is not None and divisor is not None
  found = polynomial(terms, op.inputs[0])
  leading = next((count for monomial, count in sorted(found.items()) if monomial), 0)
  if divisor <= 0 or not leading or any(count != round(count) for count in found.values()):
    return _unary(op)
  sign, own, over = (-1 if leading < 0 else 1), round(found.get((), 0)), round(divisor)
  whole, rest = divmod(sign * own + (over - 1 if sign < 0 else 0), over)
  one = op.number(1)
  above = total(terms, [(op.inputs[0], sign), (one, rest - sign * own)], op.dtype, op.shape)
  divided = elementwise(terms, 'FloorDiv', [above, op.inputs[1]], op.dtype, op.shape)
  return [total(terms, [(divided, sign), (one, sign * whole)], op.dtype, op.shape)]


_UNARY = (
  *('Exp', 'Expm1', 'Floor', 'Ceil', 'Round', 'Rint', 'Elu', 'Selu', 'Acos'),
  *('IsFinite', 'IsNan', 'IsInf', 'Lgamma'),
  *('Digamma', 'FloorMod', 'TruncateDiv'),
  *('Xdivy', 'Xlogy', 'Atan2'),
)
# Of -x they are minus what they are of x, or the same.
_ODD = ('Tanh', 'Erf', 'Sign', 'Softsign', 'Sin', 'Tan', 'Asin', 'Atan', 'Sinh')
_EVEN = ('Abs', 'Cos', 'Cosh')
_COMMUTATIVE = ('LogicalAnd', 'LogicalOr')

RULES: dict[str, Rule] = {
  **dict.fromkeys(_UNARY, _unary),
  **dict.fromkeys(_COMMUTATIVE, _commutative),
  'Add': _sum(1, 1),
  'AddV2': _sum(1, 1),
  'AddN': _sum(),
  'Sub': _sum(1, -1),
  'Neg': _sum(-1),
  'BiasAdd': bias_add,
  'BiasAddV1': bias_add,
  'Mul': multiply,
  'Square': square,
  'SquaredDifference': squared_difference,
  'RealDiv': divide,
  'Div': divide,
  'Reciprocal': invert,
  'Inv': invert,
  'Sqrt': root,
  'Rsqrt': inverse_root,
  'Pow': power,
  'Maximum': bound,
  'Minimum': bound,
  'Relu': relu,
  'Relu6': relu,
  'LeakyRelu': leaky_relu,
  'ClipByValue': clip,
  **dict.fromkeys(_ODD, _mirrored(-1)),
  **dict.fromkeys(_EVEN, _mirrored(1)),
  **exponentials.RULES,
  'Equal': masks.equality,
  'NotEqual': masks.equality,
  'LogicalNot': masks.negation,
  'Greater': masks.greater,
  'Less': masks.less,
  'GreaterEqual': masks.at_least,
  'LessEqual': masks.at_most,
  'Cast': cast,
  'FloorDiv': floor_div,
  'Select': masks.select,
  'SelectV2': masks.select,
  **{kind: _reduction(kind) for kind in ('Sum', 'Mean', 'Max', 'Min', 'Prod', 'All', 'Any')},
  'L2Loss': l2_loss,
}
