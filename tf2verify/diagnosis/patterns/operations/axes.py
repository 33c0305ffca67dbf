"""Axes that are written differently and are the same, and those that are not."""

from typing import Any

import numpy as np

from tf2verify.diagnosis.divergence.tensors.regions import Region, RegionPair
from tf2verify.diagnosis.patterns.numbers.known_values import known_value
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
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
# These go along the last axis; TensorFlow transposes for another one, and back.
_ALONG_THE_LAST = ('Softmax', 'LogSoftmax')


def other_axis(tf1: OpGraph, tf2: OpGraph, pair: RegionPair) -> GraphDifference | None:
  """Returns that a softmax goes along another axis; None where it does not, or none is there.

  Args:
    tf1: the tf1 side's graph.
    tf2: the port's.
    pair: the regions to look at.
  """
  one, other = _along(tf1, pair.tf1), _along(tf2, pair.tf2)
  if one is None or other is None:
    return None
  (position, axis), (its, other_axis) = one, other
  op = tf1.ops[position]
  if axis == other_axis or op.op_type != tf2.ops[its].op_type:
    return None
  both = str(axis), str(other_axis)
  return GraphDifference(
    GraphAspect.ATTRIBUTE, op.name, op.op_type, 'axis', *both, axis, other_axis
  )


def only_transposes(known: GraphDifference) -> bool:
  """Returns whether all that one side has more than the other are transposes."""
  types = {*(known.tf1_value or ()), *(known.tf2_value or ())}
  return types == {'Transpose'}


def _along(graph: OpGraph, region: Region) -> tuple[int, int] | None:
  """Returns the one softmax of a region, and the axis that it goes along."""
  found = [n for n in (*region.inner, region.end) if graph.ops[n].op_type in _ALONG_THE_LAST]
  if len(found) != 1:
    return None
  producer, number = graph.ops[found[0]].inputs[0]
  before = graph.ops[producer]
  if before.op_type == 'Transpose':
    order = known_value(graph, before.inputs[1][0])
    return None if order is None or not order.size else (found[0], int(order.ravel()[-1]))
  shape = before.outputs[number][1] if number < len(before.outputs) else None
  return None if not shape else (found[0], len(shape) - 1)


def are_same_axes(
  graphs: tuple[OpGraph, OpGraph],
  ops: tuple[OpRecord, OpRecord],
  what: str,
  slot: int | None,
  axes: tuple[Any, Any],
) -> bool:
  """Returns whether two values are axes, and the same ones.

  Some may be counted from the end, 1 and -2, in another order, or one without a list; each side
  counts those of its own tensor.

  Args:
    graphs: of tf1, and of the port.
    ops: the operations that take them.
    what: the name of the input or attribute.
    slot: the input's number; None for an attribute.
    axes: those of tf1, and of the port.
  """
  if what not in _NAMES:
    return False
  known = [_rank(graph, op, slot) for graph, op in zip(graphs, ops, strict=True)]
  ranks = [rank or known[1 - number] for number, rank in enumerate(known)]
  arrays = [np.asarray(value) for value in axes]
  if not all(ranks) or any(array.dtype.kind not in 'iu' for array in arrays):
    return False
  one, other = (
    {int(axis) % rank for axis in array.reshape(-1)}
    for array, rank in zip(arrays, ranks, strict=True)
  )
  return one == other


def _rank(graph: OpGraph, op: OpRecord, slot: int | None) -> int:
  """Returns how many axes there are; 0 where that is not known."""
  ranks = {
    len(shape)
    for number, (producer, output) in enumerate(op.inputs)
    if number != slot
    for _, shape in graph.ops[producer].outputs[output : output + 1]
    if shape is not None
  }
  rank = max(ranks, default=0)
  return rank and rank + (op.op_type == 'ExpandDims')
