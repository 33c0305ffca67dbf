"""Regularization by another factor, or ignored."""

import math

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, Standing
from tf2verify.diagnosis.patterns.arrays import constant_factor
from tf2verify.records.accepted import Change, Changed
from tf2verify.records.diagnosis import Cause, GraphAspect
from tf2verify.records.difference import Aspect
from tf2verify.records.op_graph import VARIABLE


def weight_decay_factor(evidence: FailedStage) -> Cause | None:
  """`slim.l2_regularizer(s)` is half of `keras.regularizers.L2(s)`.

  Looks for L2 losses that are all one multiple of those of tf1.
  """
  failed = [t for t in evidence.of_quantity('regularization loss') if t.name != '(total)']
  lost = any(d.array is None for d in evidence.differences)
  if not failed or lost or 'L2Loss' not in evidence.tf1_op_types | evidence.tf2_op_types:
    return None
  factors = [constant_factor(tensor.tf1, tensor.tf2) for tensor in failed]
  factor = factors[0]
  if factor is None or any(f is None or abs(f / factor - 1) > 1e-5 for f in factors):
    return None
  is_two = min(abs(factor - 2), abs(factor - 0.5)) < 1e-5
  if not is_two and not _is_scaled(evidence, factor):
    return None  # any two numbers have a factor
  names = ', '.join(sorted({tensor.name for tensor in failed})[:3])
  remedy = f'pass the port {1 / factor:.4g} of its scale'
  if is_two:
    remedy += (
      ' (keras.regularizers.L2(s) is s · sum(w²), slim.l2_regularizer(s) and s · tf.nn.l2_loss '
      'are half of it), or look for a variable that is regularized twice on one side'
    )
  return Cause(
    f'every weight decay that differs is {factor:.6g} times that of tf1: {remedy}',
    f'tf2 / tf1 = {factor:.6g} for {names}',
    change=Change(Changed.WEIGHT_DECAY, 1.0, float(factor), tuple({t.name: 0 for t in failed})),
  )


def _is_scaled(evidence: FailedStage, factor: float) -> bool:
  """Returns whether another constant, tried out, makes the port's losses out of those of tf1."""
  return any(
    difference.aspect is GraphAspect.CONSTANT
    and difference.op_type == 'Mul'
    and source.standing(difference) is Standing.SOLE
    and bool(difference.tf1_value)
    and math.isclose(difference.tf2_value / difference.tf1_value, factor, rel_tol=1e-4)
    for source, difference in evidence.graph_differences()
    if isinstance(difference.tf1_value, float) and isinstance(difference.tf2_value, float)
  )


def depthwise_regularizer(evidence: FailedStage) -> Cause | None:
  """`SeparableConv2D` and `DepthwiseConv2D` take a `kernel_regularizer` and ignore it.

  Looks for a kernel of a depthwise convolution whose regularization loss is lost.
  """
  graph = evidence.tf1_graph
  if graph is None:
    return None
  lost = {
    name
    for d in evidence.differences
    if d.quantity == 'regularization loss' and d.aspect is Aspect.PRESENCE and d.tf2 == 'missing'
    for name in d.subject.split(', ')
  }
  consumers = graph.consumers()
  for position, op in enumerate(graph.ops):
    readers = {graph.ops[reader].op_type for reader, _ in consumers[position]}
    depthwise = 'DepthwiseConv2dNative' in readers
    if op.op_type == VARIABLE and op.name in lost and depthwise:
      return Cause(
        'a depthwise kernel is not regularized in the port: either the regularizer was left out, '
        'or it was passed as kernel_regularizer, which SeparableConv2D and DepthwiseConv2D take '
        'and ignore: pass depthwise_regularizer, and pointwise_regularizer for the other kernel',
        f'{op.name} is read by a depthwise convolution, has a regularization loss in tf1, none '
        'in tf2',
      )
  return None
