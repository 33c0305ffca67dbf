"""Batch norm by the statistics of the batch on one side, by its moving averages on the other."""

import re
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.numbers.known_values import known_value
from tf2verify.diagnosis.rules.forward.attributes import BATCH_NORM_MODE, batch_norm_mode_text
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import OpGraph

_FUSED = 'FusedBatchNorm'
# Mean and variance over the examples; a layer norm takes them of each example.
_OF_BATCH = re.compile(r'Mean\([^()]*(?:reduction_indices|axis)=\[0[,\]].*SquaredDifference')
# What is summed over the examples may be their statistics in another form: of masked ones, say.
_SUMS_OF_BATCH = re.compile(r'(?:Sum|Mean)\([^()]*(?:reduction_indices|axis)=\[0[,\]]')
# What Keras 3 adds to the number of elements that a mask leaves, before it divides by that.
_OF_MASKED = 1e-7
_IN_INFERENCE = 'zero_randomness'
_MASKED = (
  'the port takes the mean and variance of a batch norm over the elements alone that a mask '
  'leaves, tf1 over all of them: in Keras 3 a mask (of Masking, of Embedding(mask_zero=True), or '
  'passed to a recurrent layer) goes on to BatchNormalization, which reads it: call that on '
  'tf.identity(inputs), which has no mask'
)


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
    if _sums_batch(texts[other], (difference.tf1_value, difference.tf2_value)[other]):
      if by_batch[0] and evidence.of_keras3 and _counts_masked(graphs[1]):
        return Cause(_MASKED, f'{difference.op}: {texts[1]} (tf2)')
      continue
    seen = f'{difference.op}: mean and variance over the batch in {("the port", "tf1")[other]} only'
    text = batch_norm_mode_text(by_batch[0], evidence.stage == _IN_INFERENCE)
    return Cause(text, seen)
  return None


def _sums_batch(text: str, op_types: Any) -> bool:
  """Returns whether a side sums over the batch, or may do so in what its text leaves out."""
  sums = isinstance(op_types, tuple) and not {'Sum', 'Mean'}.isdisjoint(op_types)
  return bool(_SUMS_OF_BATCH.search(text)) or (sums and text.endswith(' more'))


def _counts_masked(graph: OpGraph | None) -> bool:
  """Returns whether a port adds up how many elements a mask leaves, as Keras 3 does."""
  if graph is None:
    return False
  for op in graph.ops:
    read = [producer for producer, _ in op.inputs] if op.op_type == 'AddV2' else []
    if any(graph.ops[n].op_type == 'Sum' for n in read):
      numbers = [known_value(graph, n) for n in read]
      if any(n is not None and np.allclose(n, _OF_MASKED, atol=0.0) for n in numbers):
        return True
  return False


def _may_be_of_batch(graph: OpGraph | None) -> bool:
  """Returns whether a fused batch norm of a side normalizes by the batch, or may do so."""
  fused = [] if graph is None else [op for op in graph.ops if op.op_type.startswith(_FUSED)]
  return not fused or any(op.attribute('is_training') is not False for op in fused)
