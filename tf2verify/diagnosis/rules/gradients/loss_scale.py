"""Gradients that are still scaled."""

import math

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.numbers.arrays import constant_factor
from tf2verify.records.diagnosis import Cause

_HALF = ('float16', 'bfloat16')
_LEAST = 8.0
# float16 has 11 bits.
_RTOL = 5e-3


def loss_scale(evidence: FailedStage) -> Cause | None:
  """All gradients are a power of two times those of tf1, in mixed precision.

  Looks for one factor of all gradients, a power of two, and half precision.
  """
  failed = evidence.of_quantity('gradient')
  missing = any(difference.array is None for difference in evidence.differences)
  if evidence.stage != 'gradients' or not failed or missing or not _is_mixed(evidence):
    return None
  factors = [constant_factor(tensor.tf1, tensor.tf2, _RTOL) for tensor in failed]
  known = [factor for factor in factors if factor is not None and factor > 0]
  if len(known) < len(factors):
    return None
  power = 2.0 ** round(math.log2(known[0]))
  if max(power, 1 / power) < _LEAST or any(abs(f / power - 1) > _RTOL for f in known):
    return None
  text = f'{power:g}' if power > 1 else f'1/{1 / power:g}'
  return Cause(
    f'every gradient that differs is {text} times that of tf1, in mixed precision: a static loss '
    'scale, by which one side divides its gradients and the other does not: divide them by it '
    '(optimizer.get_unscaled_gradients in a custom loop)',
    f'tf2 / tf1 = {text} for {len({tensor.name for tensor in failed})} gradients; float16 or '
    'bfloat16 in the graph',
  )


def _is_mixed(evidence: FailedStage) -> bool:
  graphs = (graph for graph in (evidence.tf1_graph, evidence.tf2_graph) if graph is not None)
  return any(dtype in _HALF for graph in graphs for op in graph.ops for dtype, _ in op.outputs)
