"""Another epsilon in a normalization."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause, GraphAspect


class NormalizationEpsilon(Rule):
  """What is added to the variance before its root is taken."""

  name = 'normalization_epsilon'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for an epsilon that differs, as an attribute or in a spelt-out normalization."""
    for _, difference in evidence.graph_differences():
      if difference.aspect is GraphAspect.ATTRIBUTE and difference.what == 'epsilon':
        return self.cause(
          f'the normalization adds epsilon {difference.tf2} to the variance where tf1 adds '
          f"{difference.tf1}: pass epsilon={difference.tf1} to the port's layer; defaults differ "
          'between slim, tf.layers and Keras',
          f'{difference.op}: epsilon {difference.tf1} (tf1), {difference.tf2} (tf2)',
        )
    return None
