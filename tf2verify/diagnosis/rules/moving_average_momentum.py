"""Another momentum of a moving average."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause, GraphAspect, GraphDifference
from tf2verify.records.op_graph import TARGET


class MovingAverageMomentum(Rule):
  """A moving average that forgets faster or slower."""

  name = 'moving_average_momentum'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for an update whose momentum differs, however it is spelt."""
    for _, difference in evidence.graph_differences():
      variable = difference.op.removeprefix('update of ')
      tf1, tf2 = difference.tf1, difference.tf2
      if difference.what != 'momentum':
        variable, shares = _updated_by(difference, evidence), _shares(difference)
        if not variable or shares is None:
          continue
        tf1, tf2 = (f'{1 - share:.7g}' for share in shares)
      return self.cause(
        f'the moving average keeps {tf2} of its value per step in the port, {tf1} in tf1: pass '
        f'momentum={tf1} (slim calls it decay, 0.999 by default; tf.layers and Keras default to '
        '0.99)',
        f'{variable}: momentum {tf1} (tf1), {tf2} (tf2)',
      )
    return None


def _shares(difference: GraphDifference) -> tuple[float, float] | None:
  """Returns by what share of the distance each side moves an average per step."""
  if difference.aspect is not GraphAspect.CONSTANT or difference.op_type != 'Mul':
    return None
  values = (difference.tf1_value, difference.tf2_value)
  if not all(isinstance(value, float) and 0 < value < 1 for value in values):
    return None
  return values


def _updated_by(difference: GraphDifference, evidence: Evidence) -> str:
  """Returns the variable from which what an operation yields is subtracted; '' if there is none."""
  graph = evidence.tf1_graph
  if graph is None:
    return ''
  position = next((n for n, op in enumerate(graph.ops) if op.name == difference.op), None)
  for op in graph.ops:
    subtracted = op.op_type == TARGET and str(op.attribute('op')).startswith('AssignSub')
    if subtracted and any(producer == position for producer, _ in op.inputs):
      return op.name.removeprefix('update of ')
  return ''
