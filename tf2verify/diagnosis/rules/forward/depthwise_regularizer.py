"""A regularizer that a depthwise convolution ignores."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Aspect
from tf2verify.records.op_graph import VARIABLE


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
