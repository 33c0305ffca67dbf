"""Outputs of the model to which one of two losses hands no gradient, and where it stops it."""

from collections.abc import Callable, Sequence

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.evidence.losses import StoppedOutput, StoppedOutputs
from tf2verify.errors import Tf2VerifyError
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.loss_values import LossExample
from tf2verify.relation.proof.stopped_gradients import stops_of_input
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.loss_function import VALUE_TARGET
from tf2verify.stages.losses.results import GRADIENT

_MISSING = 'missing'


def stopped_outputs(
  differences: Sequence[Difference],
  example: LossExample,
  inspect: Sequence[Callable[[LossExample], GraphRun]],
) -> tuple[Cause, ...]:
  """Returns the cause of gradients that one side alone has; empty without any.

  Args:
    differences: of the losses and their gradients, on all examples.
    example: outputs and labels.
    inspect: returns the loss as a graph, of tf1, then of the port.
  """
  known = [d for d in differences if d.quantity == GRADIENT and d.aspect is Aspect.PRESENCE]
  names = dict.fromkeys(d.subject for d in known)
  found: list[list[StoppedOutput]] = [[], []]
  for side, run_of in enumerate(inspect):
    lacking = {d.subject for d in known if _MISSING in (d.tf1, d.tf2)[side : side + 1]}
    if not lacking:
      continue
    try:
      graph = run_of(example).op_graph
    except Tf2VerifyError:  # it is no graph: nothing is known of its lines
      return ()
    for name in (one for one in names if one in lacking):
      lines = stops_of_input(graph, name, VALUE_TARGET)
      found[side].append(StoppedOutput(name, lines is not None, lines or ()))
  if not any(found):
    return ()
  evidence = StoppedOutputs(tuple(found[0]), tuple(found[1]), len(known) == len(differences))
  return tuple(causes_of(evidence))
