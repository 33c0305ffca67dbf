"""What tensors and ops of a graph depend on."""

from typing import Any, Dict, Iterable, List

VARIABLE_OPS = ('VarHandleOp', 'VariableV2', 'Variable', 'AutoReloadVariable')


def ops_behind(tensors: Iterable[Any]) -> Dict[str, Any]:
  """Returns the ops that tensors are computed from, by name."""
  found: Dict[str, Any] = {}
  pending = [tensor.op for tensor in tensors]
  while pending:
    op = pending.pop()
    if op.name not in found:
      found[op.name] = op
      pending += [tensor.op for tensor in op.inputs]
  return found


def ops_run_by(ops: Iterable[Any]) -> Dict[str, Any]:
  """Returns all ops that running some ops runs, by data and by control, by name."""
  found: Dict[str, Any] = {}
  pending = list(ops)
  while pending:
    current = pending.pop()
    if current.name not in found:
      found[current.name] = current
      pending += [tensor.op for tensor in current.inputs]
      pending += current.control_inputs
  return found


def initialize_without(gate: Any, initializers: Iterable[Any]) -> None:
  """Lets initial values be computed without what a control dependency waits for.

  A value that is made inside of `graph.control_dependencies` waits too: the zeros of
  `tf.Variable(tf.zeros(n))`. The initializer, which is made outside, then runs all that they
  wait for.

  Args:
    gate: the op that everything made inside waits for.
    initializers: the ops that initialize the variables made inside.
  """
  seen = {gate.name}
  pending = list(initializers)
  while pending:
    op = pending.pop()
    if op.name in seen:
      continue
    seen.add(op.name)
    controls = list(op.control_inputs)
    pending += [tensor.op for tensor in op.inputs]
    pending += controls
    kept = [control for control in controls if control.name != gate.name]
    if len(kept) < len(controls):
      op._remove_all_control_inputs()
      op._add_control_inputs(kept)


def variables_behind(tensor: Any) -> List[str]:
  """Returns the names of the graph's variables that a tensor is computed from, sorted.

  Empty for a tensor that depends on the inputs too: an activity regularization,
  whose value eager mode hands over without its history.
  """
  behind = ops_behind([tensor]).values()
  if any(op.type == 'Placeholder' for op in behind):
    return []
  return sorted(op.name for op in behind if op.type in VARIABLE_OPS)


def is_in_loop(op: Any) -> bool:
  """Returns whether an op is inside of a `tf.while_loop`."""
  context = op._get_control_flow_context()
  while context is not None:
    if context.IsWhileContext():
      return True
    context = context.outer_context
  return False
