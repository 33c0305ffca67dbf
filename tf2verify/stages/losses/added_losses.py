"""What a port adds to its losses within its call."""

from tf2verify.records.op_graph import INPUT, VARIABLE
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.tracing import NotTraceable
from tf2verify.stages.stage import CaseUnderTest

_ADDED = 'regularization loss '


def are_of_variables(case: CaseUnderTest, run: RunSpec) -> bool:
  """Returns whether the losses that the port adds are penalties on variables, whatever its inputs.

  Not where it cannot be traced as a graph.

  Args:
    case: the case.
    run: what the port was given.
  """
  try:
    side = case.inspectable_port(run)
  except NotTraceable:
    return False
  try:
    graph = side.op_graph
    added = [n for name, n in graph.targets().items() if name.startswith(_ADDED)]
    kinds = {graph.ops[n].op_type for n in graph.ancestors(added)}
    return VARIABLE in kinds and INPUT not in kinds
  finally:
    side.close()
