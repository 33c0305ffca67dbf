"""Activation and normalization in the wrong order."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.activation import ACTIVATIONS
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause, GraphAspect


class ActivationOrder(Rule):
  """The activation stands before the batch norm on one side, behind it on the other."""

  name = 'activation_order'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for a batch norm that reads an activation on one side only."""
    for _, difference in evidence.graph_differences():
      wiring = difference.aspect is GraphAspect.WIRING
      if not (wiring and difference.op_type.startswith('FusedBatchNorm')):
        continue
      before = [value in ACTIVATIONS for value in (difference.tf1_value, difference.tf2_value)]
      if before == [False, True]:
        return self.cause(
          f'the port applies {difference.tf2_value.lower()} before the batch norm, tf1 behind it '
          '(slim: convolution, normalizer, activation): take the activation out of the '
          'convolution and apply it after the batch norm',
          f'{difference.op} reads {difference.tf1} (tf1), {difference.tf2} (tf2)',
        )
      if before == [True, False]:
        return self.cause(
          f'tf1 applies {difference.tf1_value.lower()} before the batch norm, the port behind it: '
          'give the activation to the convolution',
          f'{difference.op} reads {difference.tf1} (tf1), {difference.tf2} (tf2)',
        )
    return None
