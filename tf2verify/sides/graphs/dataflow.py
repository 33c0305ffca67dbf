"""Which variables a tensor depends on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

_VARIABLE_OPS = ('VarHandleOp', 'VariableV2', 'Variable', 'AutoReloadVariable')


def _ops_behind(tensor: tf.Tensor) -> Iterable[tf.Operation]:
  seen, pending = set(), [tensor.op]
  while pending:
    op = pending.pop()
    if op.name not in seen:
      seen.add(op.name)
      pending += [parent.op for parent in op.inputs]
      yield op


def run_before(ops: Iterable[tf.Operation]) -> Iterable[tf.Operation]:
  """Returns operations and all that runs before them, for their data or by control."""
  seen: dict[str, tf.Operation] = {}
  pending = list(ops)
  while pending:
    op = pending.pop()
    if op.name not in seen:
      seen[op.name] = op
      pending += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
  return seen.values()


def graph_variables_behind(tensor: tf.Tensor) -> tuple[str, ...]:
  """Returns the names of the graph's variables that a tensor is computed from, sorted.

  Empty for a tensor that depends on the inputs too: an activity regularization,
  whose value eager mode hands over without its history.
  """
  ops = list(_ops_behind(tensor))
  if any(op.type == 'Placeholder' for op in ops):
    return ()
  return tuple(sorted(op.name for op in ops if op.type in _VARIABLE_OPS))


def reads_variables(tensor: tf.Tensor) -> bool:
  """Returns whether a tensor of a graph is computed from the value of any variable."""
  return any(op.type in _VARIABLE_OPS for op in _ops_behind(tensor))


def variables_behind_each(
  compute: Callable[[], Iterable[Any]], names: Sequence[tuple[Any, str]]
) -> list[tuple[str, ...]]:
  """Traces a function and returns what variables each of its results is computed from.

  Args:
    compute: returns tensors; reads variables.
    names: the variables of interest with their names.

  Returns:
    Sorted names, one tuple per result.
  """
  # An eager run cannot tell: reads of a variable inside a fast-path op are not
  # seen from Python.
  traced = tf.function(
    lambda: [tf.convert_to_tensor(result) for result in compute()]
  ).get_concrete_function()
  by_handle = {id(variable.handle): name for variable, name in names}
  captured = {
    placeholder.op.name: by_handle[id(handle)]
    for handle, placeholder in traced.graph.captures
    if id(handle) in by_handle
  }
  return [
    tuple(sorted(captured[op.name] for op in _ops_behind(result) if op.name in captured))
    for result in traced.graph.structured_outputs
  ]


def captured_variables_behind(tensor: Any, names: Mapping[int, str]) -> tuple[str, ...]:
  """Returns the names of the variables that a tensor of a function graph is computed from.

  Args:
    tensor: a symbolic tensor.
    names: of the variables, by the identity of their handles.
  """
  if not hasattr(tensor, 'graph'):
    return ()
  captured = {
    inner.op.name: names[id(outer)] for outer, inner in tensor.graph.captures if id(outer) in names
  }
  return tuple(sorted(captured[op.name] for op in _ops_behind(tensor) if op.name in captured))


def op_names_behind(tensors: Iterable[tf.Tensor]) -> frozenset[str]:
  """Returns the names of the ops that any of a graph's tensors is computed from."""
  names: set[str] = set()
  pending = [tensor.op for tensor in tensors]
  while pending:
    op = pending.pop()
    if op.name not in names:
      names.add(op.name)
      pending += [parent.op for parent in op.inputs]
  return frozenset(names)
