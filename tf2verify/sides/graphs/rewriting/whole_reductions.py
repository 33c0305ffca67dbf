"""Reductions over all axes, in a graph of which an edit gives tensors another rank."""

from typing import Any

import tensorflow as tf

from tf2verify.sides.graphs.graph_defs import inlining
from tf2verify.sides.graphs.graph_defs.new_nodes import constant_node, new_node

_REDUCTIONS = ('Sum', 'Mean', 'Max', 'Min', 'Prod', 'All', 'Any', 'EuclideanNorm')
_ADDED = 'tf2verify_rank/'


def with_ranks_followed(graph_def: Any) -> None:
  """Lets what reduces a scalar, over no axis, reduce whatever it is given over all of its axes.

  `tf.reduce_mean(x)` is traced with the axes that `x` has there: none, where a mistake before it
  has summed too much. With that corrected, it is still a mean of all that there is.

  Args:
    graph_def: the graph, which is changed.
  """
  nodes = {node.name: node for node in graph_def.node}
  for node in list(graph_def.node):
    read = inlining.data_inputs(node)
    if node.op not in _REDUCTIONS or len(read) != 2 or not _is_empty(read[1], nodes):
      continue
    added = _all_axes(node.name, read[0])
    slot = list(node.input).index(read[1])
    node.input[slot] = added[-1].name
    node.attr['Tidx'].type = tf.int32.as_datatype_enum
    rank = added[0]
    rank.attr['T'].type = node.attr['T'].type
    graph_def.node.extend(added)


def _is_empty(axes: str, nodes: dict[str, Any]) -> bool:
  """Returns whether a tensor names no axes, by constants."""
  node = nodes.get(axes.partition(':')[0])
  if node is None or node.op not in ('Const', 'Range'):
    return False
  if node.op == 'Const':
    return bool(tf.make_ndarray(node.attr['value'].tensor).size == 0)
  ends = [nodes.get(name.partition(':')[0]) for name in inlining.data_inputs(node)[:2]]
  if any(one is None or one.op != 'Const' for one in ends):
    return False
  start, limit = (tf.make_ndarray(one.attr['value'].tensor) for one in ends if one is not None)
  return bool(start == limit)


def _all_axes(reduction: str, read: str) -> list[Any]:
  """Returns what yields the axes of a tensor: its rank first, the axes last."""
  name = f'{_ADDED}{reduction}'
  rank = new_node(f'{name}/rank', 'Rank', [read])
  start = constant_node(f'{name}/start', 0)
  delta = constant_node(f'{name}/delta', 1)
  ends = [start.name, rank.name, delta.name]
  return [rank, start, delta, new_node(f'{name}/axes', 'Range', ends, Tidx=tf.int32)]
