"""Static shapes that a graph does not say, from those of what is read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.relation.proof.terms import Shape, Terms

Output = tuple[str, tuple[int | None, ...] | None]

# Every element by itself, or with those that it is broadcast with.
_BROADCAST = frozenset(
  (
    *('Add', 'AddV2', 'Sub', 'Mul', 'RealDiv', 'Maximum', 'Minimum', 'SquaredDifference'),
    *('Neg', 'Square', 'Sqrt', 'Rsqrt', 'Exp', 'Log', 'Tanh', 'Sigmoid', 'Relu', 'Relu6', 'Elu'),
    *('Softplus', 'Cast', 'Greater', 'GreaterEqual', 'Less', 'LessEqual', 'SelectV2', 'BiasAdd'),
  )
)


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
  elif op_type == 'Split':
    made = _part(terms.integers(inputs[0]), found[1], len(outputs))
  else:
    made = None
  if made is None or not all(_fits(made, said) for _, said in outputs):
    return outputs
  return [(dtype, made) for dtype, _ in outputs]


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
    return found[0] if found else None
  return None
