"""Hard sigmoids, read from a graph."""

from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import family

# Of Keras 2, and of Keras 3: relu6(x + 3) / 6.
SLOPES = (0.2, 1 / 6)


def hard_sigmoid_slopes(graph: OpGraph) -> set[float]:
  """Returns the slopes of the hard sigmoids in a graph, loops included.

  They are told by their constants: 0.2 x + 0.5 or x / 6 + 0.5, clipped to 0 and 1,
  or relu6(x + 3) / 6.
  """
  found: set[float] = set()
  for op in graph.ops:
    if op.op_type in ('Minimum', 'ClipByValue') and op.inputs:
      slope = _slope_before(graph, graph.ops[op.inputs[0][0]])
      found |= {slope} if slope is not None else set()
    if op.op_type in ('RealDiv', 'Mul') and _is_shifted_relu6(graph, op):
      found.add(SLOPES[1])
    for _, function in op.functions:
      found |= hard_sigmoid_slopes(function)
  return found


def plain_sigmoids(graph: OpGraph) -> int:
  """Returns the number of sigmoids in a graph, loops included."""
  inner = (function for op in graph.ops for _, function in op.functions)
  own = sum(op.op_type == 'Sigmoid' for op in graph.ops)
  return own + sum(plain_sigmoids(function) for function in inner)


def _constant(graph: OpGraph, op: OpRecord) -> float | None:
  """Returns the one number that an operation reads."""
  values = [graph.ops[producer].constant for producer, _ in op.inputs]
  numbers = [value.item() for value in values if value is not None and value.size == 1]
  return numbers[0] if len(numbers) == 1 else None


def _producers(graph: OpGraph, op: OpRecord) -> list[OpRecord]:
  return [graph.ops[producer] for producer, _ in op.inputs]


def _slope_before(graph: OpGraph, op: OpRecord) -> float | None:
  if family(op.op_type) != 'AddV2' or _constant(graph, op) != 0.5:
    return None
  for scaled in _producers(graph, op):
    if scaled.op_type in ('Mul', 'RealDiv'):
      number = _constant(graph, scaled)
      if number:
        slope = number if scaled.op_type == 'Mul' else 1 / number
        return next((known for known in SLOPES if abs(slope - known) < 1e-6), None)
  return None


def _is_shifted_relu6(graph: OpGraph, op: OpRecord) -> bool:
  number = _constant(graph, op)
  wanted = 6.0 if op.op_type == 'RealDiv' else 1 / 6
  if number is None or abs(number - wanted) > 1e-6:
    return False
  for clipped in _producers(graph, op):
    if clipped.op_type == 'Relu6':
      (shifted,) = _producers(graph, clipped)
      return family(shifted.op_type) == 'AddV2' and _constant(graph, shifted) == 3.0
  return False
