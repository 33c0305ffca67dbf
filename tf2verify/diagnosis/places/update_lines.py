"""The line at which a side would update a variable that it leaves as it is."""

from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import TARGET, VARIABLE, OpGraph, OpRecord

_UPDATE = 'update of '


def line_of(graph: OpGraph, op: OpRecord) -> SourceLine | None:
  """Returns the line of an operation; of a target, that of the operation before it."""
  return (graph.ops[op.inputs[0][0]] if op.op_type == TARGET else op).source


def line_of_others(
  tf1: OpGraph, op: OpRecord, tf2: OpGraph, other: OpRecord
) -> tuple[SourceLine | None] | None:
  """Returns the line at which the port updates what one line of tf1 updates with a variable.

  The operation that yields a variable which the port does not update is the one that reads it, in
  a layer: that line is no part of the update.

  Args:
    tf1: the tf1 side's graph.
    op: an operation of it.
    tf2: the port's graph.
    other: the partner of the operation.

  Returns:
    The line, or None in its place where the port updates none of the others; None where the port
    updates the variable, or this is no update.
  """
  if not is_left(tf2, other) or is_left(tf1, op):
    return None
  own = line_of(tf1, op)
  partners = tf2.targets()
  for n in tf1.targets().values():
    one = tf1.ops[n]
    partner = partners.get(one.name) if one.name.startswith(_UPDATE) else None
    if partner is None or own is None or line_of(tf1, one) != own:
      continue
    line = line_of(tf2, tf2.ops[partner])
    if line is not None and not is_left(tf2, tf2.ops[partner]):
      return (line,)
  return (None,)


def is_left(graph: OpGraph, op: OpRecord) -> bool:
  """Returns whether an operation stands for a variable after a step that does not write it."""
  is_update = op.op_type == TARGET and op.name.startswith(_UPDATE)
  return is_update and graph.ops[op.inputs[0][0]].op_type == VARIABLE
