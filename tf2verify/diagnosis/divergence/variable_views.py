"""What is computed element by element of a variable that the port holds in another order.

A native port keeps a kernel transposed, or its gates in another order, and so its gradient, its
slots and all that an optimizer makes of them. Where the numbers differ, no value shows that; the
map of the variables says it.
"""

from collections.abc import Mapping

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import TARGET, VARIABLE, OpGraph, OpRecord

_ROLE = ' of '
_ELEMENT_BY_ELEMENT = frozenset(
  (
    *('Add', 'AddV2', 'AddN', 'Sub', 'Mul', 'RealDiv', 'Div', 'DivNoNan', 'Maximum', 'Minimum'),
    *('Sqrt', 'Rsqrt', 'Square', 'Pow', 'Abs', 'Sign', 'Neg', 'Exp', 'Log', 'Reciprocal'),
    *('Select', 'SelectV2', 'Identity', 'StopGradient', 'Cast', 'ClipByValue', 'SquaredDifference'),
    *('Greater', 'GreaterEqual', 'Less', 'LessEqual', 'ZerosLike', 'OnesLike', 'IsFinite'),
  )
)


def variable_views(graph: OpGraph, layouts: Mapping[str, Relayout]) -> dict[int, Relayout]:
  """Returns how the port holds what belongs to a variable, by position of the tf1 operation.

  Args:
    graph: of the tf1 side.
    layouts: how the port holds variables, by their tf1 names.
  """
  if not layouts:
    return {}
  owners: dict[int, str] = {}
  for position, op in enumerate(graph.ops):
    owner = _owner_of_target(op, layouts)
    if owner is None:
      continue
    owners[position] = owner
    if op.name.startswith(('gradient ', 'applied gradient ')):
      owners.update((producer, owner) for producer, number in op.inputs if number == 0)
  for position, op in enumerate(graph.ops):
    if position in owners:
      continue
    owner = (
      _owner(op, layouts) if op.op_type == VARIABLE else _inherited(graph, op, owners, layouts)
    )
    if owner is not None:
      owners[position] = owner
  return {position: layouts[owner] for position, owner in owners.items()}


def _owner(op: OpRecord, layouts: Mapping[str, Relayout]) -> str | None:
  """Returns whose value, or slot, a leaf holds: `kernel`, `first moment of kernel`."""
  if op.name in layouts:
    return op.name
  owner = op.name.rpartition(_ROLE)[2]
  return owner if owner in layouts else None


def _owner_of_target(op: OpRecord, layouts: Mapping[str, Relayout]) -> str | None:
  if op.op_type != TARGET or not op.is_of_variable:
    return None
  for word in ('applied gradient ', 'gradient ', 'update of '):
    if op.name.startswith(word):
      name = op.name.removeprefix(word).partition(' (')[0]
      owner = name if name in layouts else name.rpartition(_ROLE)[2]
      return owner if owner in layouts else None
  return None


def _inherited(
  graph: OpGraph, op: OpRecord, owners: Mapping[int, str], layouts: Mapping[str, Relayout]
) -> str | None:
  """Returns the one variable whose elements an operation computes with, if it keeps its shape."""
  if op.op_type not in _ELEMENT_BY_ELEMENT or not op.outputs:
    return None
  found = {owners[producer] for producer, _ in op.inputs if producer in owners}
  if len(found) != 1:
    return None
  (owner,) = found
  return owner if op.outputs[0][1] == layouts[owner].tf1_shape else None
