"""The graph of constant mode: the same with another second seed."""

from typing import Any, Iterator, Set

from .built_graph import BuiltGraph
from .random_ops import is_random_op
from .randomness import SEED


def constant_obstacle(built: BuiltGraph, graph_def: Any) -> str:
  """Returns why setting `seed2` to 0 does not give the graph of constant mode; '' if it does."""
  if built.seed_obstacle:
    return built.seed_obstacle
  seen: Set[int] = set()
  for node in random_nodes(graph_def):
    if 'seed2' not in node.attr:
      return '{} {} has no seed attribute'.format(node.op, node.name)
    number = node.attr['seed2'].i
    aligned = node.attr['seed'].i == SEED and number < built.operation_seeds
    if not aligned or number in seen:
      return '{} {} has seeds of its own'.format(node.op, node.name)
    seen.add(number)
  return ''


def random_nodes(graph_def: Any) -> Iterator[Any]:
  """Yields the nodes of a GraphDef, and of its functions, that draw."""
  nodes = [graph_def.node] + [function.node_def for function in graph_def.library.function]
  return (node for part in nodes for node in part if is_random_op(node.op))
