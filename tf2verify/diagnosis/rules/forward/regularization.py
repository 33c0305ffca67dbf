"""Regularization by another factor, or ignored."""

import math

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, Standing
from tf2verify.diagnosis.patterns.numbers.arrays import constant_factor
from tf2verify.records.accepted import Change, Changed
from tf2verify.records.diagnosis import Cause, GraphAspect
from tf2verify.records.difference import Aspect
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.op_graph import VARIABLE

_QUANTITY = 'regularization loss'
# Of the greatest of several losses to the least: with less they may be one number.
_OTHER_SIZE = 1.01


def weight_decay_factor(evidence: FailedStage) -> Cause | None:
  """`slim.l2_regularizer(s)` is half of `keras.regularizers.L2(s)`.

  Looks for L2 losses that are all one multiple of those of tf1: a factor of 2, or one of several
  independent numbers, or one that a constant of the port explains.
  """
  failed = [t for t in evidence.of_quantity(_QUANTITY) if t.name != '(total)']
  of_losses = [d for d in evidence.differences if d.quantity == _QUANTITY]
  lost = any(d.array is None for d in of_losses)
  if not failed or lost or 'L2Loss' not in evidence.tf1_op_types | evidence.tf2_op_types:
    return None
  factors = [constant_factor(tensor.tf1, tensor.tf2) for tensor in failed]
  factor = factors[0]
  if factor is None or any(f is None or abs(f / factor - 1) > 1e-5 for f in factors):
    return None
  is_two = min(abs(factor - 2), abs(factor - 0.5)) < 1e-5
  seen = {(tensor.name, tensor.run) for tensor in failed}
  are_all = {(d.tf1_subject, d.run) for d in of_losses if d.tf1_subject != '(total)'} <= seen
  is_proven = are_all and _are_independent(failed)
  if not is_two and not is_proven and not _is_scaled(evidence, factor):
    return None  # any two numbers have a factor
  variables = sorted({tensor.name for tensor in failed})
  names = ', '.join(variables[:3])
  remedy = f'multiply the scale that the port is given by {1 / factor:.4g}'
  if is_two:
    remedy += (
      ' (keras.regularizers.L2(s) is s · sum(w²), slim.l2_regularizer(s) and s · tf.nn.l2_loss '
      'are half of it), or look for a variable that is regularized twice on one side'
    )
  return Cause(
    f'every weight decay that differs is {factor:.6g} times that of tf1: {remedy}',
    f'tf2 / tf1 = {factor:.6g} for {names}',
    change=Change(Changed.WEIGHT_DECAY, 1.0, float(factor), tuple({t.name: 0 for t in failed})),
    numbers=_numbers_text(len(variables)) if is_proven else '',
  )


def _numbers_text(count: int) -> str:
  if count == 1:
    return 'the regularization loss that differs is that of tf1 times this factor in each run'
  return f'all {count} regularization losses that differ are those of tf1 times this factor'


def _are_independent(failed: list[FailedTensor]) -> bool:
  """Returns whether losses are of several sizes: that one factor fits them is not by chance.

  The loss of one variable is, in runs with different values of it.
  """
  sizes = sorted(abs(float(np.sum(tensor.tf1))) for tensor in failed)
  return len(sizes) > 1 and sizes[-1] > sizes[0] * _OTHER_SIZE


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
