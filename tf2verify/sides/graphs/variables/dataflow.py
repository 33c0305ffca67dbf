"""Which variables a tensor depends on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.reference.graph_ops import VARIABLE_OPS, ops_behind


def reads_variables(tensor: tf.Tensor) -> bool:
  """Returns whether a tensor of a graph is computed from the value of any variable."""
  return any(op.type in VARIABLE_OPS for op in ops_behind([tensor]).values())


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
    tuple(sorted(captured[name] for name in ops_behind([result]) if name in captured))
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
  return tuple(sorted(captured[name] for name in ops_behind([tensor]) if name in captured))
