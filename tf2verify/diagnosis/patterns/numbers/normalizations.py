"""The constants of a normalization, however it is written."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.divergence.tensors.regions import Region
from tf2verify.records.op_graph import VARIABLE, NodeChange, OpGraph
from tf2verify.relation.operations.op_pairs import family

_ROOTS = ('Rsqrt', 'Sqrt')
# Operations between the update of an average and its momentum.
_NEAR = 2
# Of the sum of a momentum and what it leaves, as float32 has them.
_ROUNDING = 1e-6


def momentum_of(graph: OpGraph, region: Region) -> float | None:
  """Returns the momentum by which a region updates a moving average; None where none is seen."""
  for position in region.inner:
    op = graph.ops[position]
    values = [graph.ops[producer].constant for producer, _ in op.inputs]
    # `(variable - batch) * (1 - momentum)`, with the difference of two constants.
    numbers = [float(value.item()) for value in values if value is not None and value.size == 1]
    if op.op_type == 'Sub' and len(numbers) == 2:
      return numbers[1] if numbers[0] == 1.0 else None
  entering = [position for position, number in region.frontier if number in (1, 2)]
  for position in (*region.inner, *entering):
    op = graph.ops[position]
    factor = op.attribute('exponential_avg_factor')
    if op.op_type.startswith('FusedBatchNorm') and factor is not None and factor != 1.0:
      return 1.0 - float(factor)
  return None


def epsilons(graph: OpGraph, positions: Sequence[int]) -> list[tuple[int, float]]:
  """Returns the epsilons of normalizations among some operations, with their places."""
  found = []
  for position in positions:
    op = graph.ops[position]
    if op.op_type.startswith('FusedBatchNorm') and op.attribute('epsilon') is not None:
      found.append((position, float(op.attribute('epsilon'))))
    elif op.op_type in _ROOTS and op.inputs:
      added = _added_epsilon(graph, op.inputs[0][0])
      if added is not None:
        found.append((position, added))
  return found


def epsilon_before_root(graph: OpGraph, position: int) -> list[tuple[int, float]]:
  """Returns what an operation adds to the variance of which a root is taken next, as `epsilons`."""
  added = _added_epsilon(graph, position)
  readers = [op for op in graph.ops if (position, 0) in op.inputs]
  if added is None or not any(op.op_type in _ROOTS for op in readers):
    return []
  return [(position, added)]


def epsilon_change(graph: OpGraph, position: int, epsilon: float) -> NodeChange | None:
  """Returns what gives a normalization another epsilon; None where that cannot be told.

  Args:
    graph: its graph.
    position: as `epsilons` or `epsilon_before_root` yields it.
    epsilon: the other one.
  """
  op = graph.ops[position]
  if op.attribute('epsilon') is not None:
    return NodeChange(op.name, attributes=(('epsilon', epsilon),))
  if op.op_type in _ROOTS:
    op = graph.ops[op.inputs[0][0]]
  for slot, (producer, _) in enumerate(op.inputs):
    value = graph.ops[producer].constant
    if value is not None and value.size == 1:
      return NodeChange(op.name, inputs=((slot, np.full_like(value, epsilon)),))
  return None


def momentum_behind(graph: OpGraph, target: int) -> float | None:
  """Returns the momentum by which an update moves an average; None where none is seen."""
  pending = [(producer, 0) for producer, _ in graph.ops[target].inputs]
  while pending:
    position, depth = pending.pop(0)
    op = graph.ops[position]
    factor = op.attribute('exponential_avg_factor')
    if op.op_type.startswith('FusedBatchNorm'):
      return 1.0 - float(factor) if factor is not None and factor != 1.0 else None
    values = [graph.ops[producer].constant for producer, _ in op.inputs]
    numbers = [float(value.item()) for value in values if value is not None and value.size == 1]
    if op.op_type == 'Sub' and len(numbers) == 2 and numbers[0] == 1.0:
      return numbers[1]
    if op.op_type == 'Mul' and len(numbers) == 1 and 0 < numbers[0] < 1 and depth == 0:
      return 1.0 - numbers[0]
    kept = _momentum_of_sum(graph, position) if depth == 0 else None
    if kept is not None:
      return kept
    if depth < _NEAR:
      pending += [(producer, depth + 1) for producer, _ in op.inputs]
  return None


def _momentum_of_sum(graph: OpGraph, position: int) -> float | None:
  """Returns m of `variable * m + batch * (1 - m)`, as Keras 3 has it; None for another op."""
  op = graph.ops[position]
  if family(op.op_type) != 'AddV2' or len(op.inputs) != 2:
    return None
  factors = []
  reads = []
  for producer, _ in op.inputs:
    product = graph.ops[producer]
    values = [graph.ops[factor].constant for factor, _ in product.inputs]
    numbers = [float(value.item()) for value in values if value is not None and value.size == 1]
    if product.op_type != 'Mul' or len(numbers) != 1:
      return None
    factors.append(numbers[0])
    reads.append(any(graph.ops[factor].op_type == VARIABLE for factor, _ in product.inputs))
  if reads.count(True) != 1 or abs(sum(factors) - 1.0) > _ROUNDING:
    return None
  return factors[reads.index(True)]


def _added_epsilon(graph: OpGraph, position: int) -> float | None:
  """Returns the small constant that an operation adds; None for another operation."""
  op = graph.ops[position]
  if family(op.op_type) != 'AddV2':
    return None
  constants = [graph.ops[producer].constant for producer, _ in op.inputs]
  numbers = [
    float(c.flat[0])
    for c in constants
    if c is not None and c.size == 1 and c.dtype.kind in 'fV'  # V: bfloat16
  ]
  small = [number for number in numbers if 0 < number < 0.1]
  return small[0] if len(small) == 1 else None
