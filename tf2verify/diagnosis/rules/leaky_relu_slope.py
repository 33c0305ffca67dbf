"""The slope of a leaky relu."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause


class LeakyReluSlope(Rule):
  """0.2 in `tf.nn.leaky_relu`, 0.3 in `keras.layers.LeakyReLU`."""

  name = 'leaky_relu_slope'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for a leaky relu whose `alpha` differs."""
    for _, difference in evidence.graph_differences():
      if difference.op_type == 'LeakyRelu' and difference.what == 'alpha':
        return self.cause(
          f'the slope of the leaky relu is {difference.tf1} in tf1 and {difference.tf2} in the '
          'port (tf.nn.leaky_relu has 0.2 by default, keras.layers.LeakyReLU 0.3): pass '
          f'alpha={difference.tf1}',
          f'{difference.op}: alpha {difference.tf1} (tf1), {difference.tf2} (tf2)',
        )
    return None
