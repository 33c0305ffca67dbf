"""Attributes that differ, of operations that are the same function."""

from typing import Any

from tf2verify.diagnosis.patterns.operations.axes import are_same_axes
from tf2verify.records.op_graph import OpGraph, OpRecord

_PADDINGS = frozenset(('SAME', 'VALID'))
_CONVOLUTION = 'Conv2D'


def is_no_matter(
  graphs: tuple[OpGraph, OpGraph], ops: tuple[OpRecord, OpRecord], attribute: str, *values: Any
) -> bool:
  """Returns whether two values of an attribute make no difference.

  Args:
    graphs: of tf1, and of the port.
    ops: the operations that have it.
    attribute: its name.
    values: of tf1, and of the port.
  """
  if attribute == 'padding' and set(values) == _PADDINGS:
    # What covers one position needs no padding.
    return all(_covers_one(graph, op) for graph, op in zip(graphs, ops, strict=True))
  return are_same_axes(graphs, ops, attribute, None, (values[0], values[1]))


def _covers_one(graph: OpGraph, op: OpRecord) -> bool:
  if op.op_type != _CONVOLUTION or len(op.inputs) != len(('input', 'filter')):
    return False
  producer, number = op.inputs[1]
  shape = graph.ops[producer].outputs[number][1]
  return shape is not None and tuple(shape[:2]) == (1, 1)
