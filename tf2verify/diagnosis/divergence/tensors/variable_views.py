"""What is computed element by element of a variable that the port holds in another order.

A native port keeps a kernel transposed, or its gates in another order, and so its gradient, its
slots and all that an optimizer makes of them. Where the numbers differ, no value shows that; the
map of the variables says it.
"""

from collections.abc import Mapping

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import VARIABLE, OpGraph, OpRecord, TensorKey

_ROLE = ' of '
_APPLIED, _GRADIENT, _UPDATE = 'applied gradient ', 'gradient ', 'update of '
_ELEMENT_BY_ELEMENT = frozenset(
  (
    *('Add', 'AddV2', 'AddN', 'Sub', 'Mul', 'RealDiv', 'Div', 'DivNoNan', 'Maximum', 'Minimum'),
    *('Sqrt', 'Rsqrt', 'Square', 'Pow', 'Abs', 'Sign', 'Neg', 'Exp', 'Log', 'Reciprocal'),
    *('Select', 'SelectV2', 'Identity', 'StopGradient', 'Cast', 'ClipByValue', 'SquaredDifference'),
    *('Greater', 'GreaterEqual', 'Less', 'LessEqual', 'ZerosLike', 'OnesLike', 'IsFinite'),
  )
)


def variable_views(graph: OpGraph, layouts: Mapping[str, Relayout]) -> dict[TensorKey, Relayout]:
  """Returns how the port holds what belongs to a variable, by tf1 tensor.

  Args:
    graph: of the tf1 side.
    layouts: how the port holds variables, by their tf1 names.
  """
  if not layouts:
    return {}
  owners: dict[TensorKey, str] = {}
  for position, op in enumerate(graph.ops):
    owner = _owner_of_target(op, layouts)
    if owner is None:
      continue
    owners[position, 0] = owner
    if not op.name.startswith(_UPDATE):
      owners.update((key, owner) for key in op.inputs)
  for position, op in enumerate(graph.ops):
    key = position, 0
    if key not in owners:
      is_leaf = op.op_type == VARIABLE
      owner = _owner(op.name, layouts) if is_leaf else _inherited(op, owners, layouts)
      if owner is not None:
        owners[key] = owner
  return {key: layouts[owner] for key, owner in owners.items()}


def _owner(name: str, layouts: Mapping[str, Relayout]) -> str | None:
  """Returns whose value, or slot, is called so: `kernel`, `first moment of kernel`."""
  if name in layouts:
    return name
  owner = name.rpartition(_ROLE)[2]
  return owner if owner in layouts else None


def _owner_of_target(op: OpRecord, layouts: Mapping[str, Relayout]) -> str | None:
  if not op.is_of_variable:
    return None
  word = next(word for word in (_APPLIED, _GRADIENT, _UPDATE) if op.name.startswith(word))
  return _owner(op.name.removeprefix(word).partition(' (')[0], layouts)


def _inherited(
  op: OpRecord, owners: Mapping[TensorKey, str], layouts: Mapping[str, Relayout]
) -> str | None:
  """Returns the one variable whose elements an operation computes with, if it keeps its shape."""
  if op.op_type not in _ELEMENT_BY_ELEMENT or not op.outputs:
    return None
  found = {owners[key] for key in op.inputs if key in owners}
  if len(found) != 1:
    return None
  (owner,) = found
  return owner if op.outputs[0][1] == layouts[owner].tf1_shape else None
