"""What tensors and ops of a graph depend on."""

from typing import Any, Callable, Dict, Iterable, List, TypeVar

VARIABLE_OPS = ('VarHandleOp', 'VariableV2', 'Variable', 'AutoReloadVariable')
_One = TypeVar('_One')


def reached(start: Iterable[_One], following: Callable[[_One], Iterable[_One]]) -> List[_One]:
  """Returns some things, and all that is reached from them, each once, in the order found.

  Args:
    start: these things.
    following: returns what is reached from one in one step; it is asked once for each.
  """
  found: Dict[_One, None] = {}
  pending = list(start)
  while pending:
    one = pending.pop()
    if one not in found:
      found[one] = None
      pending += following(one)
  return list(found)


def op_name_of(tensor: str) -> str:
  """Returns the operation of a tensor, or of an input of a node: `x`, `x:1`, `^x`."""
  return tensor.lstrip('^').partition(':')[0]


def inputs_of(op: Any) -> List[Any]:
  """Returns the ops that an op reads."""
  return [tensor.op for tensor in op.inputs]


def run_before(op: Any) -> List[Any]:
  """Returns the ops that an op reads or waits for."""
  return inputs_of(op) + list(op.control_inputs)


def ops_behind(tensors: Iterable[Any]) -> Dict[str, Any]:
  """Returns the ops that tensors are computed from, by name."""
  return {op.name: op for op in reached([tensor.op for tensor in tensors], inputs_of)}


def ops_run_by(ops: Iterable[Any]) -> Dict[str, Any]:
  """Returns all ops that running some ops runs, by data and by control, by name."""
  return {op.name: op for op in reached(ops, run_before)}


def initialize_without(gate: Any, initializers: Iterable[Any]) -> None:
  """Lets initial values be computed without what a control dependency waits for.

  A value that is made inside of `graph.control_dependencies` waits too: the zeros of
  `tf.Variable(tf.zeros(n))`. The initializer, which is made outside, then runs all that they
  wait for.

  Args:
    gate: the op that everything made inside waits for.
    initializers: the ops that initialize the variables made inside.
  """

  def without_gate(op: Any) -> List[Any]:
    return [before for before in run_before(op) if before.name != gate.name]

  for op in reached(initializers, without_gate):
    kept = [control for control in op.control_inputs if control.name != gate.name]
    if len(kept) < len(op.control_inputs):
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
