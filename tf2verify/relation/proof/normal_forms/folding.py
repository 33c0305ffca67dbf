"""Operations on constants: computed."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf2verify.relation.proof.normal_forms.operation import Operation
from tf2verify.relation.proof.normal_forms.terms import LARGEST_FOLDED

_COMPUTED: dict[str, Callable[..., Any]] = {
  'Add': np.add,
  'AddV2': np.add,
  'Sub': np.subtract,
  'Mul': np.multiply,
  'RealDiv': np.divide,
  'FloorDiv': np.floor_divide,
  'FloorMod': np.mod,
  'Maximum': np.maximum,
  'Minimum': np.minimum,
  'Pow': np.power,
  'Greater': np.greater,
  'GreaterEqual': np.greater_equal,
  'Less': np.less,
  'LessEqual': np.less_equal,
  'Equal': np.equal,
  'NotEqual': np.not_equal,
  'LogicalAnd': np.logical_and,
  'LogicalOr': np.logical_or,
  'LogicalNot': np.logical_not,
  'Neg': np.negative,
  'Square': np.square,
  'Sqrt': np.sqrt,
  'Exp': np.exp,
  'Sin': np.sin,
  'Cos': np.cos,
  'Floor': np.floor,
  'Ceil': np.ceil,
  'Abs': np.abs,
  'Sign': np.sign,
  'Round': np.round,
  'Rint': np.rint,
  'Log': np.log,
  'Log1p': np.log1p,
  'Expm1': np.expm1,
  'Tanh': np.tanh,
  'Sigmoid': lambda value: 1 / (1 + np.exp(-value)),
  'Softplus': lambda value: np.logaddexp(value, 0),
  'Reciprocal': lambda value: 1 / value,
  'Rsqrt': lambda value: 1 / np.sqrt(value),
  'Relu': lambda value: np.maximum(value, 0),
  'Relu6': lambda value: np.clip(value, 0, 6),
  'SquaredDifference': lambda one, other: (one - other) ** 2,
  'DivNoNan': lambda one, other: np.where(other == 0, 0, one / np.where(other == 0, 1, other)),
  'Range': np.arange,
  'InvertPermutation': np.argsort,
  'BroadcastTo': lambda value, shape: np.broadcast_to(value, shape),
  'Tile': lambda value, times: np.tile(value, times),
  'Select': np.where,
  'SelectV2': np.where,
}
_REDUCED: dict[str, Callable[..., Any]] = {
  'Sum': np.sum,
  'Mean': np.mean,
  'Prod': np.prod,
  'Max': np.max,
  'Min': np.min,
  'All': np.all,
  'Any': np.any,
}
_KINDS = 'fiub'
# Rounded otherwise by NumPy, or no arrays of it: what a list of tensors or a look-up is.
_NOT_FOLDED = frozenset(('bfloat16', 'float16', 'variant', 'resource', 'string'))
# What computes each element by those at its place.
ELEMENTWISE = frozenset(_COMPUTED) - {'Range', 'InvertPermutation', 'BroadcastTo', 'Tile'} | {
  'Cast'
}
_EXACT = ('Add', 'AddV2', 'Sub', 'Mul', 'RealDiv', 'Neg', 'Square')


def folded(op: Operation) -> Sequence[int] | None:
  """Returns the constant that an operation on constants yields; None where it is not computed."""
  terms = op.terms
  values = [terms.value(number) for number in op.inputs]
  known = [value for value in values if value is not None]
  if not known or len(known) < len(values) or op.shape is None:
    return None
  if any(value.size > LARGEST_FOLDED or value.dtype.kind not in _KINDS for value in known):
    return None
  if (
    'float' in op.dtype
    and op.op_type in _EXACT
    and all(terms.single(n) is not None for n in op.inputs)
  ):
    return None  # computed as decimals, by their rules
  names = {op.dtype, *(terms.dtype(number) for number in op.inputs)}
  if names & _NOT_FOLDED or np.prod(op.shape, initial=1) > LARGEST_FOLDED:
    return None
  with np.errstate(all='ignore'):
    result = computed(op, known)
  if result is None or result.shape != op.shape:
    return None
  return [terms.constant(result.astype(op.dtype), op.dtype)]


def computed(op: Operation, values: Sequence[np.ndarray]) -> np.ndarray | None:
  """Returns what an operation yields for arrays; None where that is not known here."""
  if op.op_type in ('FloorDiv', 'FloorMod') and not values[1].all():
    return None
  if op.op_type == 'Pow' and values[0].dtype.kind != 'f':
    return None
  if op.op_type == 'Select' and values[0].shape != values[1].shape:
    return None
  if op.op_type in _COMPUTED:
    return np.asarray(_COMPUTED[op.op_type](*values))
  if op.op_type in _REDUCED:
    axes = tuple(int(axis) for axis in np.reshape(values[1], -1))
    keep = bool(op.attributes.get('keep_dims'))
    return np.asarray(_REDUCED[op.op_type](values[0], axis=axes, keepdims=keep))
  if op.op_type == 'MatrixBandPart':
    return _band(values[0], int(values[1]), int(values[2]))
  if op.op_type == 'Cast' and values[0].dtype.kind in _KINDS:
    return values[0]
  return None


def _band(value: np.ndarray, below: int, above: int) -> np.ndarray | None:
  """Returns a matrix, or several, with zeros outside of a band; a negative width keeps all."""
  if value.ndim < 2:
    return None
  rows, columns = np.indices(value.shape[-2:])
  kept = ((below < 0) | (rows - columns <= below)) & ((above < 0) | (columns - rows <= above))
  return np.asarray(np.where(kept, value, np.zeros((), value.dtype)))
