"""A training step that calls the model as in inference."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import OpGraph
from tf2verify.reference.random_ops import is_random_op

_STAGE, _LOSS = 'training_steps', 'loss'


def drawn_by_tf1_alone(evidence: FailedStage) -> Cause | None:
  """The step of TF1 draws random numbers, that of the port none, and the losses differ.

  The forward pass in training mode has been compared before, draw by draw: what the step calls
  is the same layer in inference mode.
  """
  tf1, tf2 = evidence.tf1_graph, evidence.tf2_graph
  is_step = evidence.stage == _STAGE and any(d.quantity == _LOSS for d in evidence.differences)
  if not is_step or tf1 is None or tf2 is None:
    return None
  drawn = _draws(tf1)
  if not drawn or _draws(tf2):
    return None
  return Cause(
    'the step of the port draws no random numbers, that of TF1 does (dropout): it calls the layer '
    'as in inference; pass training=True in the step, as the stages before have done',
    f"{drawn} random operation{'' if drawn == 1 else 's'} in the step of TF1, none in the port's",
  )


def _draws(graph: OpGraph) -> int:
  """Returns how many operations of a graph draw, with those of its loops and branches."""
  own = sum(is_random_op(op.op_type) for op in graph.ops)
  return own + sum(_draws(function) for op in graph.ops for _, function in op.functions)
