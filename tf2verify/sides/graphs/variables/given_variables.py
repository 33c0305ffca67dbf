"""Variables of a graph that is run from given values."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.reference.variables import static_shape

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


def assignment(graph_def: Any, op_name: str, variable: Any) -> tuple[str, str]:
  """Adds an assignment; returns the names of its operation and of what it is fed with.

  Args:
    graph_def: changed; an operation that is made in a graph takes ten times as long.
    op_name: of the handle.
    variable: what it is the handle of.
  """
  kind = variable.dtype.base_dtype.as_datatype_enum
  given = graph_def.node.add(name=f'tf2verify_value/{op_name}', op='Placeholder')
  given.attr['dtype'].type = kind
  given.attr['shape'].shape.unknown_rank = True
  made = graph_def.node.add(name=f'tf2verify_assign/{op_name}', op='AssignVariableOp')
  made.input.extend([op_name, given.name])
  made.attr['dtype'].type = kind
  return made.name, f'{given.name}:0'
