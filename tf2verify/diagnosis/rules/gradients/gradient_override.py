"""A gradient that is replaced in graphs only."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import OpGraph

# What `tf.custom_gradient` registers, which works in eager mode too.
_CUSTOM = ('CustomGradient', 'PyFunc', 'EagerPyFunc')


def gradient_override(evidence: FailedStage) -> Cause | None:
  """`gradient_override_map` has no effect in eager mode.

  Looks for operations of tf1 whose gradient is replaced, and a port that agrees as a graph.
  """
  if evidence.stage != 'gradients' or evidence.tf1_graph is None or evidence.tf2_graph is None:
    return None
  tf1, tf2 = _overridden(evidence.tf1_graph), _overridden(evidence.tf2_graph)
  in_eager_mode = bool(tf2) and evidence.agrees_as_graph and not evidence.gradient_differences
  if not tf1 or (tf2 and not in_eager_mode):
    return None
  how = 'agrees once it is traced as a graph' if in_eager_mode else 'has none'
  return Cause(
    'tf1 replaces a gradient by gradient_override_map, which has no effect in eager mode, nor '
    'under a tape in a tf.function: define it by tf.custom_gradient in the port',
    f'{tf1[0]} has a custom gradient in tf1; the port {how}',
  )


def _overridden(graph: OpGraph) -> list[str]:
  return [
    op.name
    for op in graph.ops
    if op.attribute('_gradient_op_type')
    and not str(op.attribute('_gradient_op_type')).startswith(_CUSTOM)
  ]
