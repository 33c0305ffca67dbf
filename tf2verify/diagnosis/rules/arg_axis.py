"""The axis of argmax and argmin."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause


class ArgAxis(Rule):
  """Axis 0 by default in TensorFlow, the last one in Keras."""

  name = 'arg_axis'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for an argmax or argmin whose constant axis differs."""
    for _, difference in evidence.graph_differences():
      if difference.op_type in ('ArgMax', 'ArgMin') and difference.what == 'dimension':
        name = difference.op_type.lower()
        return self.cause(
          f'{name} runs along axis {difference.tf1} in tf1 and along axis {difference.tf2} in the '
          f'port (tf.{name} has axis 0 by default, keras.backend.{name} -1): pass '
          f'axis={difference.tf1}',
          f'{difference.op}: axis {difference.tf1} (tf1), {difference.tf2} (tf2)',
        )
    return None
