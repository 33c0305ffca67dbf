"""Numbers that a graph computes from constants alone: the root of a size, say."""

from collections.abc import Callable, Sequence

import numpy as np

from tf2verify.records.op_graph import CONSTANT, OpGraph, OpRecord, TensorKey

_DEEPEST = 12
_MOST_ELEMENTS = 8
_COMPUTED: dict[str, Callable[..., np.ndarray]] = {
  'Add': np.add,
  'AddV2': np.add,
  'Div': np.divide,
  'FloorDiv': np.floor_divide,
  'FloorMod': np.mod,
  'Identity': np.asarray,
  'Maximum': np.maximum,
  'Minimum': np.minimum,
  'Mul': np.multiply,
  'Neg': np.negative,
  'Pow': np.power,
  'RealDiv': np.divide,
  'Reciprocal': np.reciprocal,
  'Rsqrt': lambda x: 1 / np.sqrt(x),
  'Sqrt': np.sqrt,
  'Square': np.square,
  'Sub': np.subtract,
}
# What TF1 makes the order of axes of, and numbers in a shape.
_OF_SEVERAL: dict[str, Callable[[OpRecord, Sequence[np.ndarray]], np.ndarray]] = {
  'ConcatV2': lambda op, inputs: np.concatenate(inputs[:-1], axis=int(inputs[-1])),
  'Fill': lambda op, inputs: np.full(inputs[0], inputs[1]),
  'Pack': lambda op, inputs: np.stack(inputs, axis=_axis(op)),
  'Range': lambda op, inputs: np.arange(*(one.item() for one in inputs)),
}
# What fills a shape with one number, and what repeats an input that has one.
_SAME_NUMBER = {'ZerosLike': 0.0, 'OnesLike': 1.0}
_REPEATS = {'Fill': 1, 'BroadcastTo': 0, 'Tile': 0, 'Reshape': 0, 'ExpandDims': 0, 'Identity': 0}


def known_value(graph: OpGraph, position: int) -> np.ndarray | None:
  """Returns the value of an operation that is computed from constants alone.

  Returns:
    A few numbers at most; None where something else enters, or where this is not known.
  """
  with np.errstate(all='ignore'):
    return _value(graph, position, 0)


def computed_number(graph: OpGraph, position: int) -> np.ndarray | None:
  """Returns the same of what is no constant itself, and one floating number."""
  if graph.ops[position].op_type == CONSTANT:
    return None
  value = known_value(graph, position)
  return value if value is not None and value.size == 1 and value.dtype.kind == 'f' else None


def constant_or_number(graph: OpGraph, position: int) -> np.ndarray | None:
  """Returns the value of a constant, or a number that is computed from constants alone."""
  op = graph.ops[position]
  return op.constant if op.op_type == CONSTANT else computed_number(graph, position)


def is_number(graph: OpGraph, key: TensorKey) -> bool:
  """Returns whether a tensor is a constant, or numbers that are computed from constants alone."""
  return graph.ops[key[0]].op_type == CONSTANT or known_value(graph, key[0]) is not None


def without_numbers(graph: OpGraph, positions: Sequence[int]) -> list[int]:
  """Returns operations without those that are computed from constants alone."""
  return [n for n in positions if known_value(graph, n) is None]


def same_numbers(graph: OpGraph, one: int, other_graph: OpGraph, other: int) -> bool:
  """Returns whether two operations read the same numbers, however these are made of constants.

  Args:
    graph: of the first operation.
    one: its position.
    other_graph: of the second one.
    other: its position.
  """
  inputs = graph.ops[one].inputs, other_graph.ops[other].inputs
  if len(inputs[0]) != len(inputs[1]):
    return False
  for (first, _), (second, _) in zip(*inputs, strict=True):
    values = known_value(graph, first), known_value(other_graph, second)
    known = [value for value in values if value is not None]
    if len(known) == 1 or (known and not np.array_equal(known[0], known[1])):
      return False
  return True


def is_computed_float(graph: OpGraph, key: TensorKey) -> bool:
  """Returns whether a tensor is of float32, and no constant."""
  op = graph.ops[key[0]]
  return op.op_type != CONSTANT and op.outputs[key[1]][0] == 'float32'


def is_of_constants(graph: OpGraph, position: int) -> bool:
  """Returns whether an operation reads nothing but constants, however large, on any way."""
  pending, seen = [position], {position}
  while pending:
    op = graph.ops[pending.pop()]
    if op.op_type == CONSTANT:
      continue
    if op.is_leaf or not op.pure or not op.inputs:
      return False
    for producer, _ in op.inputs:
      if producer not in seen:
        seen.add(producer)
        pending.append(producer)
  return True


def same_everywhere(graph: OpGraph, position: int) -> float | None:
  """Returns the number that all elements of an operation's output are, whatever its shape.

  None where they differ, or where this is not known.
  """
  return _same(graph, position, _DEEPEST)


def _same(graph: OpGraph, position: int, depth: int) -> float | None:
  op = graph.ops[position]
  for _ in range(depth):
    if op.op_type in _SAME_NUMBER:
      return _SAME_NUMBER[op.op_type]
    if op.op_type not in _REPEATS:
      break
    op = graph.ops[op.inputs[_REPEATS[op.op_type]][0]]
  if op.op_type in _COMPUTED and depth:
    numbers: list[float] = []
    for producer, _ in op.inputs:
      number = _same(graph, producer, depth - 1)
      if number is None:
        return None
      numbers.append(number)
    with np.errstate(all='ignore'):
      return float(_COMPUTED[op.op_type](*numbers))
  if op.op_type != CONSTANT or op.constant is None or op.constant.dtype.kind not in 'fiu':
    return None
  known = np.unique(op.constant)
  return float(known[0]) if known.size == 1 else None


def _value(graph: OpGraph, position: int, depth: int) -> np.ndarray | None:
  op = graph.ops[position]
  if op.op_type == CONSTANT:
    return op.constant if op.constant is not None and op.constant.size <= _MOST_ELEMENTS else None
  is_other = op.op_type in ('Cast', 'StridedSlice')
  known = op.op_type in _COMPUTED or op.op_type in _OF_SEVERAL or is_other
  if not known or not op.inputs or depth == _DEEPEST:
    return None
  inputs: list[np.ndarray] = []
  for producer, number in op.inputs:
    value = None if number else _value(graph, producer, depth + 1)
    if value is None:
      return None
    inputs.append(value)
  return _computed(op, inputs)


def _computed(op: OpRecord, inputs: Sequence[np.ndarray]) -> np.ndarray | None:
  if op.op_type == 'StridedSlice':
    return _element(op, inputs)
  try:
    dtype = np.dtype(op.outputs[0][0])
    if op.op_type in _OF_SEVERAL:
      value = _OF_SEVERAL[op.op_type](op, inputs)
    else:
      value = inputs[0] if op.op_type == 'Cast' else _COMPUTED[op.op_type](*inputs)
    made = np.asarray(value).astype(dtype)
    return made if made.size <= _MOST_ELEMENTS else None
  except (TypeError, ValueError):  # another dtype than numpy's, or shapes that do not fit
    return None


def _axis(op: OpRecord) -> int:
  axis = op.attribute('axis')
  return axis if isinstance(axis, int) else 0


def _element(op: OpRecord, inputs: Sequence[np.ndarray]) -> np.ndarray | None:
  """Returns one element of a vector, as code takes a size out of a shape."""
  if inputs[0].ndim != 1 or inputs[1].size != 1 or op.attribute('shrink_axis_mask') != 1:
    return None
  index = int(inputs[1].ravel()[0])
  return np.asarray(inputs[0][index]) if -inputs[0].size <= index < inputs[0].size else None
