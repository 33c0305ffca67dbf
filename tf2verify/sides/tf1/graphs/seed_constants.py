"""Seeds of tf-keras' initializers in a graph, where they are constants `[seed, 0]`."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import tensorflow as tf

from tf2verify.reference.graph_ops import op_name_of

STATELESS = 'Stateless'
# Which input is the seed. The other stateless random ops take what the first of them gives.
_SEED_INPUTS = {'StatelessRandomGetKeyCounter': 0, 'StatelessRandomGetKeyCounterAlg': 0}
_OLD_SEED_INPUT = 1
_TAKES_KEY = 'V2'
_WITHOUT_SEED = ('StatelessRandomGetAlg', 'StatelessIf', 'StatelessCase', 'StatelessWhile')


def find(graph_def: Any, seeds: Collection[int]) -> list[Any] | str:
  """Returns the constants that hold given seeds.

  Args:
    graph_def: of the whole graph.
    seeds: what initializers have drawn, whether it was used or not.

  Returns:
    The nodes; or why they are not all that stateless random ops depend on.
  """
  found: list[Any] = []
  for scope in _scopes(graph_def):
    known = {name: node for name, node in scope.items() if _seed_of(node) in seeds}
    for node in scope.values():
      reads = [op_name_of(given) for given in node.input]
      seed = _seed_input(node)
      if seed is not None and reads[seed] not in known:
        return f'{node.op} {node.name} has seeds of its own'
      if not node.op.startswith(STATELESS) and not known.keys().isdisjoint(reads):
        return f'{node.op} {node.name} reads the seed of an initializer of tf-keras'
    found += known.values()
  return found


def write(node: Any, seed: int) -> None:
  """Gives a constant of `find` another seed."""
  value = tf.make_ndarray(node.attr['value'].tensor).copy()
  value[0] = seed
  node.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(value))


def _scopes(graph_def: Any) -> Iterator[Mapping[str, Any]]:
  yield {node.name: node for node in graph_def.node}
  for function in graph_def.library.function:
    yield {node.name: node for node in function.node_def}


def _seed_of(node: Any) -> int:
  """Returns the seed that a constant may hold; -1 if it cannot hold one."""
  if node.op != 'Const' or not tf.as_dtype(node.attr['dtype'].type).is_integer:
    return -1
  tensor = node.attr['value'].tensor
  if [dim.size for dim in tensor.tensor_shape.dim] != [2]:
    return -1
  first, second = tf.make_ndarray(tensor).tolist()
  return int(first) if second == 0 else -1


def _seed_input(node: Any) -> int | None:
  """Returns which input of a node is a seed; None for nodes without one."""
  if not node.op.startswith(STATELESS) or node.op in _WITHOUT_SEED:
    return None
  if node.op in _SEED_INPUTS:
    return _SEED_INPUTS[node.op]
  return None if node.op.endswith(_TAKES_KEY) else _OLD_SEED_INPUT
