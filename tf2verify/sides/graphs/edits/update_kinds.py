"""What one side assigns to a variable, and the other one adds to it or takes from it."""

from collections.abc import Iterator
from typing import Any

from tf2verify.records.op_graph import VARIABLE, OpGraph, OpRecord
from tf2verify.sides.graphs.edits.wiring import CannotRepair
from tf2verify.sides.graphs.graph_defs.new_nodes import new_node

_KINDS = ('AssignSub', 'AssignAdd', 'Assign')
# From what tf1 writes to what the port does, of the variable's value and of tf1's: the operation,
# and whether the variable comes first.
_TURNED = {
  ('AssignSub', 'Assign'): ('Sub', True),
  ('AssignAdd', 'Assign'): ('AddV2', True),
  ('Assign', 'AssignSub'): ('Sub', True),
  ('Assign', 'AssignAdd'): ('Sub', False),
}


def turned(tf1: OpRecord, target: OpRecord, tf2: OpGraph, source: str, name: str) -> Iterator[Any]:
  """Yields NodeDefs of what the port has to write, the last one under a name.

  Args:
    tf1: tf1's target, an update of a variable.
    target: that of the port.
    tf2: the port's graph.
    source: the tensor that tf1 writes, in the port's graph.
    name: of the last node.

  Raises:
    CannotRepair: they are no updates, or the port does not read the variable.
  """
  kinds = tuple(_kind(one) for one in (tf1, target))
  dtype = tf1.outputs[0][0]
  if '' in kinds:
    raise CannotRepair('what the run yields is computed differently')
  if kinds[0] == kinds[1]:
    yield new_node(name, 'Identity', [source], T=dtype)
  elif 'Assign' not in kinds:
    yield new_node(name, 'Neg', [source], T=dtype)
  else:
    variable = _read(tf2, target)
    op_type, variable_first = _TURNED[kinds[0], kinds[1]]
    inputs = [variable, source][:: 1 if variable_first else -1]
    yield new_node(name, op_type, inputs, T=dtype)


def _kind(target: OpRecord) -> str:
  name = str(target.attribute('op') or '')
  known = next((kind for kind in _KINDS if name.startswith(kind)), '')
  return known if name in (known, f'{known}VariableOp') else ''


def _read(graph: OpGraph, target: OpRecord) -> str:
  """Returns the tensor that holds a variable before it is written, which is the first time."""
  name = target.name.removeprefix('update of ')
  for op in graph.ops:
    if op.op_type == VARIABLE and op.name == name and op.tensors:
      return op.tensors[0]
  raise CannotRepair('the port does not read the variable that it writes')
