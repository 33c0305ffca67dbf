"""A gradient through the labels of a cross entropy."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.rules.gradients.stop_gradient import (
  is_stopped_in_tf1_only,
  leads_to_labels,
)
from tf2verify.records.diagnosis import Cause


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
