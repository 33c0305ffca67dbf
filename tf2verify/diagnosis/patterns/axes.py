"""Axes that are spelt otherwise and are the same."""

from typing import Any

import numpy as np

from tf2verify.records.op_graph import OpGraph, OpRecord

# Names of inputs and attributes that count axes.
_NAMES = (
  'dim',
  'axis',
  'dimension',
  'reduction_indices',
  'concat_dim',
  'split_dim',
  'squeeze_dims',
)


def are_same_axes(
  graph: OpGraph, op: OpRecord, what: str, slot: int | None, tf1: Any, tf2: Any
) -> bool:
  """Returns whether two values are axes, and the same ones.

  Some may be counted from the end, 1 and -2, in another order, or one without a list.

  Args:
    graph: the tf1 side's graph.
    op: the operation that takes them.
    what: the name of the input or attribute.
    slot: the input's number; None for an attribute.
    tf1: the tf1 side's axes.
    tf2: the port's.
  """
  if what not in _NAMES:
    return False
  ranks = {
    len(shape)
    for number, (producer, output) in enumerate(op.inputs)
    if number != slot
    for _, shape in graph.ops[producer].outputs[output : output + 1]
    if shape is not None
  }
  arrays = [np.asarray(value) for value in (tf1, tf2)]
  rank = max(ranks, default=0) + (op.op_type == 'ExpandDims')
  if not rank or any(array.dtype.kind not in 'iu' for array in arrays):
    return False
  one, other = ({int(axis) % rank for axis in array.reshape(-1)} for array in arrays)
  return one == other
