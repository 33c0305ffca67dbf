"""Logits that the port's loss takes for probabilities, seen in how it computes them.

The formulas of losses know it where the loss is nothing but a crossentropy. Here something may be
added to it, or it may be computed of a part of the outputs.
"""

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import OpGraph, TensorKey

# Keras clips probabilities to [epsilon, 1 - epsilon] before their logarithm.
_LEAST, _GREATEST = 1e-5, 1.0 - 1e-5
_BOUNDS = ('Maximum', 'Minimum', 'ClipByValue')
_PASSES = ('Reshape', 'Squeeze', 'ExpandDims', 'Identity', 'Cast', 'StridedSlice')
_PROBABILITIES = frozenset(('Sigmoid', 'Softmax', 'Exp', 'Mean', 'Sum', 'RealDiv'))
# What stable formulas of crossentropies from logits are made of.
_OF_LOGITS = frozenset(
  ('Log1p', 'Softplus', 'SoftmaxCrossEntropyWithLogits', 'SparseSoftmaxCrossEntropyWithLogits')
)
_DEEPEST = 6


def clipped_logits(evidence: FailedStage) -> Cause | None:
  """A crossentropy of probabilities in the port, of what tf1 takes for logits."""
  tf1, tf2 = evidence.tf1_graph, evidence.tf2_graph
  if tf1 is None or tf2 is None or not evidence.tf1_op_types & _OF_LOGITS:
    return None
  if any(_clipped(tf1, position) for position in range(len(tf1.ops))):
    return None
  ends = {one.source.tf2_op for one in evidence.sources}
  behind = tf2.ancestors(n for n, op in enumerate(tf2.ops) if op.name in ends)
  for position in sorted(behind):
    read = _clipped(tf2, position)
    if read is not None and not _is_probability(tf2, read):
      op = tf2.ops[position]
      where = '' if op.source is None else f' ({op.source.short})'
      return Cause(
        f"the port's loss{where} takes {tf2.ops[read[0]].shown_name} for probabilities, and tf1 "
        'takes it for logits: pass from_logits=True',
        'the port clips it to between 0 and 1 and takes the logarithm',
      )
  return None


def _clipped(graph: OpGraph, position: int) -> TensorKey | None:
  """Returns what an operation is the logarithm of, before it was clipped to a probability."""
  if graph.ops[position].op_type != 'Log':
    return None
  key, bounds = graph.ops[position].inputs[0], set[str]()
  for _ in range(_DEEPEST):
    op = graph.ops[key[0]]
    numbers = [constant_or_number(graph, producer) for producer, _ in op.inputs]
    known = [float(n.item()) for n in numbers if n is not None and np.size(n) == 1]
    if op.op_type in _BOUNDS:
      bounds |= {'low' for n in known if 0.0 < n <= _LEAST}
      bounds |= {'high' for n in known if _GREATEST <= n < 1.0}
    elif op.op_type not in _PASSES or op.is_leaf:
      break
    key = op.inputs[0] if numbers[0] is None else op.inputs[1]
  return key if bounds == {'low', 'high'} else None


def _is_probability(graph: OpGraph, key: TensorKey) -> bool:
  """Returns whether a tensor is one of probabilities, by what it is computed with."""
  op = graph.ops[key[0]]
  while op.op_type in _PASSES and op.inputs:
    op = graph.ops[op.inputs[0][0]]
  return op.op_type in _PROBABILITIES
