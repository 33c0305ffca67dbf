"""What a run of a graph writes, and what it reads of a variable after that.

A read after a write yields another value than one before the write. A part that is run alone makes
no write, so it is given what the whole run reads there.
"""

from collections.abc import Iterable

import tensorflow as tf

from tf2verify.records.op_graph import VARIABLE, OpGraph, OpRecord
from tf2verify.reference.graph_ops import op_name_of, ops_run_by

_READ = 'ReadVariableOp'
_WRITES = ('Assign', 'ResourceScatter', 'ResourceApply', 'ResourceSparse')


def may_write(op: tf.Operation) -> bool:
  """Returns whether an operation changes a variable, if its inputs are one; not so `ScatterNd`."""
  return 'Assign' in op.type or 'Scatter' in op.type


def is_reference(dtype: tf.DType) -> bool:
  """Returns whether a variable of TensorFlow 1's own kind is read by reference."""
  return bool(dtype != dtype.base_dtype)


def run_for(graph: tf.Graph, op_graph: OpGraph) -> Iterable[tf.Operation]:
  """Returns the operations that run when any tensor of an op graph is fetched."""
  first = (name for op in op_graph.ops for name in op.tensors[:1])
  return ops_run_by(graph.get_tensor_by_name(name).op for name in first).values()


def late_reads(graph: tf.Graph, op_graph: OpGraph) -> dict[str, str]:
  """Returns the reads after a write, each with the first read of the same value.

  Args:
    graph: the graph.
    op_graph: its operations.

  Returns:
    Names of operations, and the tensors as `op_graph` names them.
  """
  names = {op.tensors[0]: op_name_of(op.tensors[0]) for op in op_graph.ops if _is_leaf(op)}
  reads = {tensor: graph.get_operation_by_name(name) for tensor, name in names.items()}
  counts = {tensor: _writes_before(op) for tensor, op in reads.items() if op.type == _READ}
  known = {(_handle(reads[tensor]), count): tensor for tensor, count in counts.items() if count}
  if not known:
    return {}
  handles = {handle for handle, _ in known}
  found = (op for op in graph.get_operations() if op.type == _READ and _handle(op) in handles)
  late = {op.name: known.get((_handle(op), _writes_before(op))) for op in found}
  return {name: tensor for name, tensor in late.items() if tensor is not None}


def _is_leaf(op: OpRecord) -> bool:
  return op.op_type == VARIABLE and bool(op.tensors)


def _handle(read: tf.Operation) -> str:
  op = read.inputs[0].op
  while op.type == 'Identity':
    op = op.inputs[0].op
  return str(op.name)


def _writes_before(read: tf.Operation) -> int:
  """Returns how often the variable is written before a read."""
  handle = _handle(read)
  run = ops_run_by(list(read.control_inputs)).values()
  return sum(
    op.type.startswith(_WRITES) and bool(op.inputs) and _handle(op) == handle for op in run
  )
