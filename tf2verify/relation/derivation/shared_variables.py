"""Variables of one side that may serve for two of the other one."""

from collections.abc import Mapping

from tf2verify.records.op_graph import TARGET, VARIABLE, OpGraph

_Shapes = Mapping[str, tuple[int, ...]]


def shared_by(
  name: str,
  partner: Mapping[str, str],
  shapes: tuple[_Shapes, _Shapes],
  graphs: tuple[OpGraph, ...],
) -> tuple[str, str] | None:
  """Returns what a side reads where the other one reads a variable that has no partner, perhaps.

  A variable of the same shape that is read by more operations than its own partner.

  Args:
    name: of the variable without a partner, of the first side.
    partner: the second side's variable of each of the first one's that has one.
    shapes: of the variables of both sides.
    graphs: of both sides.

  Returns:
    The other side's variable and its partner; None where none is read more often, or several are.
  """
  ones, others = (_readers(graph) for graph in graphs)
  found = [
    (other, one)
    for one, other in partner.items()
    if shapes[1][other] == shapes[0][name] and others.get(other, 0) > ones.get(one, 0)
  ]
  return found[0] if len(found) == 1 else None


def _readers(graph: OpGraph) -> dict[str, int]:
  """Returns by how many operations each variable is read."""
  consumers = graph.consumers()
  return {
    op.name: len({n for n, _ in consumers[position] if graph.ops[n].op_type != TARGET})
    for position, op in enumerate(graph.ops)
    if op.op_type == VARIABLE
  }
