"""From the graph of one randomness mode to that of the other without a second build."""

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any, Protocol

import tensorflow as tf

from tf2verify.errors import NotApplicable
from tf2verify.reference.graph_ops import ops_behind
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.process import randomness
from tf2verify.sides.tf1.graphs import seed_constants
from tf2verify.sides.tf1.graphs.build import BuiltGraph
from tf2verify.sides.tf1.graphs.idle_draws import idle_draws


def _nodes(graph_def: Any) -> Iterator[Any]:
  yield from graph_def.node
  for function in graph_def.library.function:
    yield from function.node_def


class SeededBuild(Protocol):
  """What is known of how a graph got its seeds; see `BuiltGraph`."""

  @property
  def seed_obstacle(self) -> str: ...
  @property
  def operation_seeds(self) -> int: ...


def rewriting_obstacle(built: SeededBuild, graph_def: Any) -> str:
  """Returns why setting `seed2` to 0 does not give the `constant` graph; '' if it does.

  In `num_random_ops` mode every random op has the seeds (42, n), n counting from
  0; in `constant` mode all have (42, 0). Anything else in the graph that draws
  got its seed in another way.
  """
  if built.seed_obstacle:
    return built.seed_obstacle
  seen: set[int] = set()
  for node in _nodes(graph_def):
    if not is_random_op(node.op) or node.op.startswith(seed_constants.STATELESS):
      continue
    if 'seed2' not in node.attr:
      return f'{node.op} {node.name} has no seed attribute'
    number = node.attr['seed2'].i
    aligned = node.attr['seed'].i == randomness.SEED and number < built.operation_seeds
    if not aligned or number in seen:
      return f'{node.op} {node.name} has seeds of its own'
    seen.add(number)
  return ''


def make_constant(built: SeededBuild, graph_def: Any, keras_seeds: Collection[int] = ()) -> str:
  """Rewrites the GraphDef of a graph for `constant` mode.

  Args:
    built: what is known of its seeds.
    graph_def: is changed in place.
    keras_seeds: the numbers that tf-keras has drawn as seeds of initializers.

  Returns:
    Why it cannot be rewritten, with nothing changed; '' if it was.
  """
  obstacle = rewriting_obstacle(built, graph_def)
  seeds = seed_constants.find(graph_def, keras_seeds)
  if obstacle or isinstance(seeds, str):
    return obstacle or str(seeds)
  for node in _nodes(graph_def):
    if is_random_op(node.op) and 'seed2' in node.attr:
      node.attr['seed2'].i = 0
  for node in seeds:
    seed_constants.write(node, randomness.SEED)
  return ''


def constant_seed_graph(built: BuiltGraph) -> BuiltGraph | str:
  """Returns the graph as `constant` mode would have built it.

  Args:
    built: a graph built in `num_random_ops` mode.

  Returns:
    The imported graph, its names unchanged; or why it cannot be rewritten.
  """
  graph_def = built.graph.as_graph_def()
  obstacle = make_constant(built, graph_def, built.keras_seeds)
  if obstacle:
    return obstacle
  graph = tf.Graph()
  with graph.as_default():
    tf.import_graph_def(graph_def, name='')
  return dataclasses.replace(built, graph=graph, mode=randomness.CONSTANT, output_nest=None)


def computation_seed_graph(built: BuiltGraph, mode: str = randomness.COMPUTATION) -> BuiltGraph:
  """Returns the graph with the random ops of its computation numbered from 0 on.

  Those that only initial values are computed from keep their seeds, and with them the
  initial values stay.

  Args:
    built: a graph built in `num_random_ops` mode.
    mode: one of `OF_COMPUTATION`.

  Returns:
    The imported graph, its names unchanged.

  Raises:
    NotApplicable: not all of them have the seeds that the build gave them; or all have an effect,
      and those without one are not to count.
  """
  graph_def = built.graph.as_graph_def()
  left_out = _ops_of_initial_values(built)
  if mode == randomness.EFFECTIVE:
    idle = idle_draws(built) - left_out
    if not idle:
      raise NotApplicable('all random ops of the computation have an effect')
    left_out |= idle
  obstacle = _number(built, graph_def, left_out)
  if obstacle:
    raise NotApplicable(f'the random ops of the computation cannot be numbered: {obstacle}')
  graph = tf.Graph()
  with graph.as_default():
    tf.import_graph_def(graph_def, name='')
  return dataclasses.replace(
    built,
    graph=graph,
    mode=mode,
    output_nest=None,
    random_draws=tuple(
      draw for draw in built.random_draws if draw.variable is None and draw.op_name not in left_out
    ),
  )


def _ops_of_initial_values(built: BuiltGraph) -> frozenset[str]:
  """Returns the ops that nothing but initial values is computed from."""
  graph = built.graph
  ends = [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
  ends += [tensor for _, tensor in built.regularization_losses]
  tensors = [graph.get_tensor_by_name(name) for name in ends]
  tensors += [t for name in built.update_ops for t in graph.get_operation_by_name(name).inputs]
  values = [graph.get_tensor_by_name(variable.value) for variable in built.variables]
  return frozenset(ops_behind(values).keys() - ops_behind(tensors).keys())


def _number(built: BuiltGraph, graph_def: Any, left_out: frozenset[str]) -> str:
  """Rewrites the seeds of the other ops; returns why not, '' if it did."""
  nodes = [node for node in graph_def.node if node.name not in left_out]
  for function in graph_def.library.function:
    nodes += function.node_def
  drawn = [node for node in nodes if is_random_op(node.op) and 'seed2' in node.attr]
  seen: set[int] = set()
  for node in drawn:
    number = node.attr['seed2'].i
    if node.attr['seed'].i != randomness.SEED or number >= built.operation_seeds:
      return f'{node.op} {node.name} has seeds of its own'
    if number in seen:
      return f'{node.op} {node.name} has the seeds of another op'
    seen.add(number)
  drawn.sort(key=lambda node: node.attr['seed2'].i)
  for number, node in enumerate(drawn):
    node.attr['seed2'].i = number
  return ''
