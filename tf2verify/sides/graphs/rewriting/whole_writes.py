"""Writes of some rows of a variable as assignments of all of it.

`scatter_sub(centers, labels, diff)` tells rows and what is taken from them, and a port may assign
what `tf.tensor_scatter_nd_sub` makes of the whole variable. As assignments the two are the same
kind of write, and what a variable becomes can be compared.
"""

import re
from typing import Any

import tensorflow as tf

from tf2verify.sides.graphs.graph_defs.inlining import become, control_inputs, data_inputs
from tf2verify.sides.graphs.graph_defs.new_nodes import constant_node, new_node

_SCATTERS = re.compile(r'ResourceScatter(Nd)?(Add|Sub|Update)')
_WRITTEN = '/as_assignment'


def writes_rows(op_type: str) -> bool:
  """Returns whether operations of a type write rows of a variable."""
  return _SCATTERS.fullmatch(op_type) is not None


def written_by(name: str) -> str:
  """Returns the write that an operation computes something for; other names as they are."""
  return name.partition(_WRITTEN)[0]


def with_whole_writes(graph_def: Any) -> None:
  """Replaces writes of rows by assignments, under the same names.

  Args:
    graph_def: the graph, which is changed.
  """
  added = []
  for node in graph_def.node:
    found = _SCATTERS.fullmatch(node.op)
    if found is None:
      continue
    kind = 'dtype' if 'dtype' in node.attr else 'T'
    dtype = node.attr[kind].type
    places = node.attr['Tindices'].type
    resource, indices, updates = data_inputs(node)
    waits = control_inputs(node)
    name = node.name + _WRITTEN
    read = new_node(f'{name}/before', 'ReadVariableOp', [resource, *waits], dtype=dtype)
    added.append(read)
    if not found[1]:
      added += _in_columns(name, indices, places)
      indices = added[-1].name
    reads = [read.name, indices, updates, *waits]
    added.append(new_node(name, f'TensorScatter{found[2]}', reads, T=dtype, Tindices=places))
    become(node, 'AssignVariableOp', [resource, name], dtype=dtype)
  graph_def.node.extend(added)


def _in_columns(name: str, indices: str, dtype: int) -> list[Any]:
  """Returns the operations that make each index one of its own, as a list of axes."""
  axis = constant_node(f'{name}/axis', -1)
  reads = [indices, axis.name]
  return [axis, new_node(f'{name}/indices', 'ExpandDims', reads, T=dtype, Tdim=tf.int32)]
