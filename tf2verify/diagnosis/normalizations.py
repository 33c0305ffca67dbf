"""The constants of a normalization, however it is spelt."""

from collections.abc import Sequence

from tf2verify.diagnosis.pairing import family
from tf2verify.diagnosis.regions import Region
from tf2verify.records.op_graph import OpGraph


def momentum_of(graph: OpGraph, region: Region) -> float | None:
  """Returns the momentum by which a region updates a moving average; None where none is seen."""
  for position in region.inner:
    op = graph.ops[position]
    values = [graph.ops[producer].constant for producer, _ in op.inputs]
    # `(variable - batch) * (1 - momentum)`, with the difference of two constants.
    numbers = [float(value) for value in values if value is not None and value.size == 1]
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
    elif op.op_type in ('Rsqrt', 'Sqrt') and op.inputs:
      producer = graph.ops[op.inputs[0][0]]
      added = [graph.ops[n].constant for n, _ in producer.inputs]
      small = [float(c) for c in added if c is not None and c.size == 1 and 0 < float(c) < 0.1]
      if family(producer.op_type) == 'AddV2' and len(small) == 1:
        found.append((position, small[0]))
  return found
