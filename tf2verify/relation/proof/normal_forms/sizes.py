"""Static shapes that a graph does not say, from those of what is read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.relation.proof.normal_forms.terms import Shape, Terms

Output = tuple[str, tuple[int | None, ...] | None]

# Every element by itself, or with those that it is broadcast with.
_BROADCAST = frozenset(
  (
    *('Add', 'AddV2', 'Sub', 'Mul', 'RealDiv', 'Maximum', 'Minimum', 'SquaredDifference'),
    *('Neg', 'Square', 'Sqrt', 'Rsqrt', 'Exp', 'Log', 'Tanh', 'Sigmoid', 'Relu', 'Relu6', 'Elu'),
    *('SigmoidGrad', 'TanhGrad', 'ReluGrad', 'Relu6Grad', 'EluGrad', 'SoftplusGrad', 'SeluGrad'),
    *('RsqrtGrad', 'SqrtGrad', 'ReciprocalGrad', 'LeakyReluGrad', 'AddN', 'ZerosLike', 'OnesLike'),
    *('Abs', 'Sign', 'Selu', 'Erf', 'Softsign', 'LeakyRelu', 'Expm1', 'Log1p', 'Reciprocal'),
    *('Softplus', 'Cast', 'Greater', 'GreaterEqual', 'Less', 'LessEqual', 'SelectV2', 'BiasAdd'),
  )
)
# Which input says the shape.
_SAID = {'Fill': 0, 'BroadcastTo': 1}


def with_shapes(
  terms: Terms,
  op_type: str,
  inputs: Sequence[int],
  attributes: Mapping[str, Any],
  outputs: Sequence[Output],
) -> Sequence[Output]:
  """Returns the outputs of an operation, with their shape if it follows from what it reads.

  In the functions of a loop a graph does not say the shapes of variables, nor what is
  computed from them.
  """
  if all(shape is not None and None not in shape for _, shape in outputs):
    return outputs
  shapes = [terms.shape(number) for number in inputs]
  found = [shape for shape in shapes if shape is not None]
  if op_type == 'TensorListStack':
    made = _stacked(terms, inputs)
  elif len(found) < len(shapes):
    made = None
  elif op_type in _BROADCAST:
    made = _broadcast(op_type, found)
  elif op_type == 'MatMul':
    flags = bool(attributes.get('transpose_a')), bool(attributes.get('transpose_b'))
    made = _matrix(found[0], found[1], *flags)
  elif op_type == 'Select':
    made = found[1]
  elif op_type in _SAID:
    said = terms.integers(inputs[_SAID[op_type]])
    made = None if said is None or min(said, default=0) < 0 else tuple(said)
  elif op_type == 'BiasAddGrad':
    made = found[0][1:2] if attributes.get('data_format') == 'NCHW' else found[0][-1:]
  elif op_type == 'ConcatV2':
    made = _concatenated(terms.integers(inputs[-1]), found[:-1])
  elif op_type == 'Split':
    made = _part(terms.integers(inputs[0]), found[1], len(outputs))
  elif op_type in _MOVED:
    made = _by_numpy(_MOVED[op_type], terms, inputs, attributes, found)
  else:
    made = None
  if made is None or not all(_fits(made, said) for _, said in outputs):
    return outputs
  return [(dtype, made) for dtype, _ in outputs]


# Returns a view of an array, as an operation would yield it, given its numbers.
_Moves = Callable[[np.ndarray, Sequence[Sequence[int]], Mapping[str, Any]], np.ndarray]


def _sliced(array: np.ndarray, numbers: Sequence[Sequence[int]], said: Mapping[str, Any]) -> Any:
  index: list[Any] = []
  for place, (begin, end, stride) in enumerate(zip(*numbers, strict=True)):
    masks = {n: said.get(f'{n}_mask', 0) >> place & 1 for n in ('begin', 'end', 'shrink_axis')}
    if said.get('ellipsis_mask', 0) >> place & 1:
      index.append(Ellipsis)
    elif said.get('new_axis_mask', 0) >> place & 1:
      index.append(None)
    elif masks['shrink_axis']:
      index.append(begin)
    else:
      first, last = None if masks['begin'] else begin, None if masks['end'] else end
      index.append(slice(first, last, stride))
  return array[tuple(index)]


def _squeezed(array: np.ndarray, numbers: Sequence[Sequence[int]], said: Mapping[str, Any]) -> Any:
  del numbers
  return np.squeeze(array, tuple(said.get('squeeze_dims') or ()) or None)


_MOVED: Mapping[str, _Moves] = {
  'ExpandDims': lambda array, numbers, said: np.expand_dims(array, tuple(numbers[0])),
  'Reshape': lambda array, numbers, said: array.reshape(tuple(numbers[0])),
  'Squeeze': _squeezed,
  'StridedSlice': _sliced,
  'Transpose': lambda array, numbers, said: array.transpose(tuple(numbers[0])),
}


def _by_numpy(
  move: _Moves,
  terms: Terms,
  inputs: Sequence[int],
  attributes: Mapping[str, Any],
  shapes: Sequence[Shape],
) -> Shape | None:
  """Returns the shape of what numpy makes of an array that takes no memory."""
  numbers = [terms.integers(number) for number in inputs[1:]]
  known = [one for one in numbers if one is not None]
  if len(known) < len(numbers):
    return None
  try:
    return move(np.broadcast_to(np.int8(0), shapes[0]), known, attributes).shape
  except (ValueError, IndexError, TypeError):
    return None


def _concatenated(axis: Sequence[int] | None, shapes: Sequence[Shape]) -> Shape | None:
  first = shapes[0] if shapes else ()
  if not axis or not first or any(len(shape) != len(first) for shape in shapes):
    return None
  place = axis[0] % len(first)
  return (*first[:place], sum(shape[place] for shape in shapes), *first[place + 1 :])


def _part(axis: Sequence[int] | None, shape: Shape, count: int) -> Shape | None:
  if not axis or not -len(shape) <= axis[0] < len(shape):
    return None
  place = axis[0] % len(shape)
  return (*shape[:place], shape[place] // count, *shape[place + 1 :])


def _fits(made: Shape, said: tuple[int | None, ...] | None) -> bool:
  if said is None:
    return True
  return len(made) == len(said) and all(b in (None, a) for a, b in zip(made, said, strict=True))


def _broadcast(op_type: str, shapes: Sequence[Shape]) -> Shape | None:
  if op_type == 'BiasAdd':
    return shapes[0]
  try:
    return tuple(int(size) for size in np.broadcast_shapes(*shapes))
  except ValueError:
    return None


def _matrix(one: Shape, other: Shape, first: bool, second: bool) -> Shape | None:
  """Returns the shape of a product of two matrices, either of which may be transposed."""
  if len(one) != 2 or len(other) != 2:
    return None
  return (one[1 if first else 0], other[0 if second else 1])


def _stacked(terms: Terms, inputs: Sequence[int]) -> Shape | None:
  """Returns the shape of the elements of a list that was made with a known length."""
  element = terms.integers(inputs[1])
  length = _length(terms, inputs[0])
  if element is None or length is None or any(size < 0 for size in element):
    return None
  return (length, *element)


def _length(terms: Terms, number: int) -> int | None:
  term = terms[number]
  if term.kind == 'call':
    place = term.detail[0]
    return _length(terms, term.inputs[place]) if place < len(term.inputs) else None
  if term.kind == 'TensorListReserve':
    found = terms.integers(term.inputs[1])
    # One of no elements grows as it is written.
    return found[0] if found and found[0] else None
  return None
