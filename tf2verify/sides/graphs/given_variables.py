"""Variables of a graph that is run from given values."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.reference.variables import static_shape

v1 = tf.compat.v1
# Variables are given their values in portions of about this size, to bound memory.
_PORTION_BYTES = 64 * 2**20


def preparation(
  assigned: Mapping[str, tuple[str, str]], values: Callable[[str], np.ndarray]
) -> Callable[[Any], None]:
  """Returns what gives the variables of a session their values.

  Args:
    assigned: the assignment of every variable, and what that is fed with.
    values: the value of a variable, by name.
  """

  def prepare(session: Any) -> None:
    operations: list[str] = []
    fed: dict[str, np.ndarray] = {}
    for name, (operation, placeholder) in assigned.items():
      operations.append(operation)
      fed[placeholder] = values(name)
      if sum(value.nbytes for value in fed.values()) > _PORTION_BYTES:
        session.run(operations, fed)
        operations, fed = [], {}
    if operations:
      session.run(operations, fed)

  return prepare


def make_handle(node: Any, variable: Any) -> None:
  """Turns the placeholder of a captured handle into a handle of its own."""
  node.op = 'VarHandleOp'
  node.attr.clear()
  node.attr['dtype'].type = variable.dtype.base_dtype.as_datatype_enum
  node.attr['shape'].shape.CopyFrom(tf.TensorShape(static_shape(variable.shape)).as_proto())
  node.attr['shared_name'].s = node.name.encode()


def assignment(graph: tf.Graph, op_name: str, variable: Any) -> tuple[str, str]:
  """Adds an assignment; returns the names of its operation and of what it is fed with."""
  placeholder = v1.placeholder(variable.dtype.base_dtype, name=f'tf2verify_value/{op_name}')
  handle = graph.get_tensor_by_name(f'{op_name}:0')
  operation = tf.raw_ops.AssignVariableOp(
    resource=handle, value=placeholder, name=f'{op_name}/Assign'
  )
  return operation.name, placeholder.name
