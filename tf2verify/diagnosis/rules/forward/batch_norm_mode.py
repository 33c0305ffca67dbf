"""Batch norm by the statistics of the batch on one side, by its moving averages on the other."""

import re

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.rules.forward.attributes import BATCH_NORM_MODE, batch_norm_mode_text
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import OpGraph

_FUSED = 'FusedBatchNorm'
# Mean and variance over the examples; a layer norm takes them of each example.
_OF_BATCH = re.compile(r'Mean\([^()]*(?:reduction_indices|axis)=\[0[,\]].*SquaredDifference')
_IN_INFERENCE = 'zero_randomness'


def batch_norm_mode(evidence: FailedStage) -> Cause | None:
  """Looks at fused batch norms, then for means over the batch that one side alone has."""
  return BATCH_NORM_MODE(evidence) or _of_statistics(evidence)


def _of_statistics(evidence: FailedStage) -> Cause | None:
  graphs = evidence.tf1_graph, evidence.tf2_graph
  for _, difference in evidence.graph_differences():
    texts = difference.tf1, difference.tf2
    by_batch = [bool(_OF_BATCH.search(text)) for text in texts]
    if by_batch[0] == by_batch[1]:
      continue
    other = by_batch.index(False)
    if _FUSED in texts[other] and _may_be_of_batch(graphs[other]):
      continue
    seen = f'{difference.op}: mean and variance over the batch in {("the port", "tf1")[other]} only'
    text = batch_norm_mode_text(by_batch[0], evidence.stage == _IN_INFERENCE)
    return Cause(text, seen)
  return None


def _may_be_of_batch(graph: OpGraph | None) -> bool:
  """Returns whether a fused batch norm of a side normalizes by the batch, or may do so."""
  fused = [] if graph is None else [op for op in graph.ops if op.op_type.startswith(_FUSED)]
  return not fused or any(op.attribute('is_training') is not False for op in fused)
