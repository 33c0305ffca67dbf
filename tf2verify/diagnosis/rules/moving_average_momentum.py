"""Another momentum of a moving average."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause


class MovingAverageMomentum(Rule):
  """A moving average that forgets faster or slower."""

  name = 'moving_average_momentum'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for an update whose momentum differs, however it is spelt."""
    for _, difference in evidence.graph_differences():
      if difference.what == 'momentum':
        variable = difference.op.removeprefix('update of ')
        return self.cause(
          f'the moving average keeps {difference.tf2} of its value per step in the port, '
          f'{difference.tf1} in tf1: pass momentum={difference.tf1} (slim calls it decay, 0.999 by '
          'default; tf.layers and Keras default to 0.99)',
          f'{variable}: momentum {difference.tf1} (tf1), {difference.tf2} (tf2)',
        )
    return None
