"""A reduction over other axes."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause, GraphAspect

_REDUCTIONS = ('Mean', 'Sum', 'Max', 'Min', 'Prod', 'All', 'Any', 'EuclideanNorm')


class ReductionAxes(Rule):
  """A mean, a sum or a normalization over other axes."""

  name = 'reduction_axes'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for a reduction whose constant axes differ."""
    for _, difference in evidence.graph_differences():
      constant = difference.aspect is GraphAspect.CONSTANT
      if constant and difference.op_type in _REDUCTIONS and difference.what:
        return self.cause(
          f'{difference.op_type} goes over the axes {difference.tf1} in tf1 and over '
          f'{difference.tf2} in the port: pass axis={difference.tf1} (slim.layer_norm normalizes '
          'over all axes but the batch, Keras LayerNormalization over the last)',
          f'{difference.op}: axes {difference.tf1} (tf1), {difference.tf2} (tf2)',
        )
    return None
