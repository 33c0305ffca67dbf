"""What a port adds to its losses within its call."""

from tf2verify.records.op_graph import CONSTANT, TARGET, VARIABLE
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.tracing import NotTraceable
from tf2verify.stages.stage import CaseUnderTest

_ADDED = 'regularization loss '
# A hook may call the layer on inputs that it has made itself: these are no penalties.
_OF_PENALTIES = frozenset((VARIABLE, CONSTANT, TARGET)).union(
  ('L2Loss', 'Square', 'Abs', 'Pow', 'Sqrt', 'Sum', 'Mean', 'Mul', 'RealDiv', 'AddV2', 'AddN'),
  ('Sub', 'Neg', 'Cast', 'Identity', 'Reshape', 'Squeeze'),
)


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
    return VARIABLE in kinds and kinds <= _OF_PENALTIES
  finally:
    side.close()
