"""A model's graph, built and described."""

import contextlib
from typing import Any, Callable, Set

import numpy as np
import tensorflow as tf

from .arrays import Array, is_string
from .built_graph import BuiltGraph
from .creations import Creations
from .errors import RecorderError
from .graph_ops import variables_behind
from .nests import flatten, map_leaves
from .private_tensorflow import v1
from .random_draws import describe_draws
from .randomness import Seeding, seeded
from .runs_alone import FED_BY_BUILDER, check_runs_alone
from .source_lines import SourceLines
from .tf1_semantics import collection_keys, tf1_semantics, with_either_shape
from .user_code import OTHER_GRAPH, input_hint, user_code
from .variables import GraphVariable


def build_graph(
  builder: Callable[[Any, bool], Any],
  inputs: Any,
  training: bool,
  mode: str,
  sources: SourceLines,
) -> BuiltGraph:
  """Builds the graph under TF1's semantics, every random op seeded.

  Under TensorFlow 2 a builder that counts on TF2's shapes is built again with those.

  Raises:
    RecorderError: the builder raised or returned something unusable.
  """

  def build(graph: Any, v2_tensorshape: bool) -> BuiltGraph:
    return _build(graph, builder, inputs, training, mode, sources, v2_tensorshape)

  return with_either_shape(build, RecorderError)


def _build(
  graph: Any,
  builder: Callable[[Any, bool], Any],
  inputs: Any,
  training: bool,
  mode: str,
  sources: SourceLines,
  v2_tensorshape: bool,
) -> BuiltGraph:
  built = BuiltGraph(graph, training, sources)
  creations = Creations(graph, sources)
  seeding = Seeding(mode)

  def placeholder(path: str, leaf: Array) -> Any:
    dtype = tf.string if is_string(leaf) else tf.as_dtype(leaf.dtype)
    name = 'tf2verify_input/{}'.format(len(built.placeholders))
    tensor = v1.placeholder(dtype, leaf.shape, name=name)
    built.placeholders.append((path, tensor.name))
    return tensor

  with tf1_semantics(v2_tensorshape), graph.as_default():
    fed = map_leaves(placeholder, inputs)
    with contextlib.ExitStack() as stack:
      stack.enter_context(user_code('the builder', lambda error: input_hint(error, inputs)))
      stack.enter_context(seeded(seeding))
      stack.enter_context(v1.variable_creator_scope(creations))
      built.output_nest = builder(fed, training)
    _describe_outputs(built)
    describe_collections(built, creations)
    check_runs_alone('the builder', built, built.targets(), FED_BY_BUILDER)
    if seeding.keras.draws:
      built.seed_obstacle = '{} seeds came from Keras, as constants'.format(seeding.keras.draws)
    built.operation_seeds = seeding.ops.count
    describe_draws(built, creations)
  return built


def _describe_outputs(built: BuiltGraph) -> None:
  if built.output_nest is None:
    raise RecorderError(
      'the builder returned None: usually a missing `return`; return the output tensors'
    )
  try:
    built.structure, leaves = flatten(built.output_nest)
  except TypeError as error:
    raise RecorderError(
      'the builder returned something that is not a tensor: {}; return tensors, or tuples, lists '
      'and dictionaries of tensors'.format(error)
    ) from error
  if not any(isinstance(leaf, tf.Tensor) for _, leaf in leaves):
    raise RecorderError(
      'the builder returned {:.80}, which contains no tensor; return the output tensors'.format(
        repr(built.output_nest)
      )
    )
  for path, leaf in leaves:
    if isinstance(leaf, np.ndarray):
      leaf = tf.constant(leaf, name='tf2verify_output')
    if leaf is not None and getattr(leaf, 'graph', None) is not built.graph:
      raise RecorderError('the builder returned {} from {}'.format(path, OTHER_GRAPH))
    built.outputs.append((path, None if leaf is None else leaf.name))


def describe_collections(built: BuiltGraph, creations: Creations) -> None:
  """Fills in what the collections of a graph hold."""
  graph, keys = built.graph, v1.GraphKeys
  members = {key: {id(i) for i in graph.get_collection(key)} for key in collection_keys(graph)}
  used_values: Set[str] = set()
  for variable, source in creations.variables():
    held_by = sorted(key for key, items in members.items() if id(variable) in items)
    value = variable.initializer.inputs[1].name
    built.variables.append(GraphVariable(variable, source, held_by, value in used_values))
    built.objects[built.variables[-1].name] = variable
    used_values.add(value)
  for loss in graph.get_collection(keys.REGULARIZATION_LOSSES):
    built.regularization_losses.append((variables_behind(loss), loss.name))
  # What is no operation has one: a tensor, what the update of a variable returns.
  updates = [getattr(update, 'op', update) for update in graph.get_collection(keys.UPDATE_OPS)]
  built.update_ops = [op.name for op in updates]
  built.table_initializers = [op.name for op in graph.get_collection(keys.TABLE_INITIALIZERS)]
