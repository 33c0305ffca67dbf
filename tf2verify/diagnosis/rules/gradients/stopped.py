"""Gradients that are stopped on one side only."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause, GraphDifference
from tf2verify.records.op_graph import STOPS, OpGraph

_LABELS = 1  # input number of the cross entropy


def stop_gradient(evidence: FailedStage) -> Cause | None:
  """A `stop_gradient` lost or added.

  Looks for an input whose gradient is stopped on one side only.
  """
  graph = evidence.tf1_graph
  for difference in evidence.gradient_differences:
    if graph is not None and leads_to_labels(graph, difference.op):
      continue  # a rule of its own
    place = f'{difference.what} of {difference.op}'
    if is_stopped_in_tf1_only(difference):
      return Cause(
        f'tf1 stops the gradient at {place} and the port does not: put tf.stop_gradient there',
        f'{place}: {difference.tf1} (tf1), {difference.tf2} (tf2)',
      )
    if _stops(difference.tf2_value) and not _stops(difference.tf1_value):
      return Cause(
        f'the port stops the gradient at {place} and tf1 does not: remove tf.stop_gradient',
        f'{place}: {difference.tf1} (tf1), {difference.tf2} (tf2)',
      )
  return None


def is_stopped_on_one_side(difference: GraphDifference) -> bool:
  """Returns whether a gradient difference is a stop that one side lacks."""
  return _stops(difference.tf1_value) != _stops(difference.tf2_value)


def is_stopped_in_tf1_only(difference: GraphDifference) -> bool:
  """Returns whether a gradient difference is a stop that the port lacks."""
  return _stops(difference.tf1_value) and not _stops(difference.tf2_value)


def _stops(marks: tuple[str, ...]) -> bool:
  return any(mark in STOPS for mark in marks)


def leads_to_labels(graph: OpGraph, name: str) -> bool:
  """Returns whether an operation is a cross entropy, or shapes what it reads as labels."""
  consumers = graph.consumers()
  pending = [(n, _LABELS) for n, op in enumerate(graph.ops) if op.name == name]
  while pending:
    position, slot = pending.pop()
    op = graph.ops[position]
    if op.op_type == 'SoftmaxCrossEntropyWithLogits':
      return slot == _LABELS
    if op.op_type in ('Reshape', 'Transpose', 'Cast', 'Squeeze', 'ExpandDims'):
      pending += consumers[position]
  return False


def label_gradient(evidence: FailedStage) -> Cause | None:
  """The cross entropy of TF1 stops the gradient at its labels, that of TF2 does not.

  Looks for a `StopGradient` of tf1 only on the way to the labels of a cross entropy.
  """
  graph = evidence.tf1_graph
  if graph is None:
    return None
  for difference in evidence.gradient_differences:
    if is_stopped_in_tf1_only(difference) and leads_to_labels(graph, difference.op):
      return Cause(
        'the gradient passes through the labels in the port: '
        'tf.compat.v1.nn.softmax_cross_entropy_with_logits stops it there, '
        'tf.nn.softmax_cross_entropy_with_logits does not: pass tf.stop_gradient(labels)',
        f'{difference.op}, which yields the labels: StopGradient (tf1), none (tf2)',
      )
  return None
