"""Operations to be added to a GraphDef."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def new_node(name: str, op: str, inputs: Iterable[str] = (), **types: Any) -> Any:
  """Returns a NodeDef, given the dtypes of which its attributes are."""
  node = v1.NodeDef(name=name, op=op, input=inputs)
  for attribute, dtype in types.items():
    node.attr[attribute].type = tf.as_dtype(dtype).as_datatype_enum
  return node


def constant_node(name: str, value: Any) -> Any:
  """Returns the NodeDef of a constant; Python's whole numbers are of int32."""
  tensor = tf.make_tensor_proto(value)
  node = new_node(name, 'Const', dtype=tensor.dtype)
  node.attr['value'].tensor.CopyFrom(tensor)
  return node
