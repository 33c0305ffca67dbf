"""Dropout of another rate."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause, GraphAspect, GraphDifference
from tf2verify.records.op_graph import OpGraph


class DropoutRate(Rule):
  """The share that is kept passed as the share that is dropped, or another number."""

  name = 'dropout_rate'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for uniform random numbers that are compared with another constant."""
    for _, difference in evidence.graph_differences():
      if not _is_threshold(evidence.tf1_graph, difference):
        continue
      tf1, tf2 = float(difference.tf1_value), float(difference.tf2_value)
      seen = f'{difference.op}: uniform numbers >= {tf1:.4g} are kept in tf1, >= {tf2:.4g} in tf2'
      if abs(tf1 + tf2 - 1) < 1e-5:
        return self.cause(
          f'the dropout of the port has a rate of {tf2:.4g}, which is the share that tf1 keeps: '
          f'keep_prob was passed as the rate: pass rate = 1 - keep_prob = {tf1:.4g}',
          seen,
        )
      return self.cause(
        f'the dropout drops {tf1:.4g} of the elements in tf1 and {tf2:.4g} in the port: pass '
        f'rate={tf1:.4g}',
        seen,
      )
    return None


def _is_threshold(graph: OpGraph | None, difference: GraphDifference) -> bool:
  """Tells whether a constant differs that uniform random numbers are compared with."""
  if graph is None or difference.aspect is not GraphAspect.CONSTANT:
    return False
  values = difference.tf1_value, difference.tf2_value
  if difference.op_type != 'GreaterEqual' or not all(isinstance(v, float) for v in values):
    return False
  op = next((op for op in graph.ops if op.name == difference.op), None)
  kinds = [] if op is None else [graph.ops[producer].op_type for producer, _ in op.inputs]
  return any('RandomUniform' in kind for kind in kinds)
