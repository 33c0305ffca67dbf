"""Building the TF1 graph, and what is known of it by name."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

from tf2verify.errors import BuilderError, CaseDefinitionError, UserCodeError
from tf2verify.records.observation import RandomDraw, VariableRecord
from tf2verify.reference import nests
from tf2verify.reference.graph_ops import ops_behind, variables_behind
from tf2verify.reference.perturbation import fraction_bits
from tf2verify.reference.tf1_semantics import with_either_shape
from tf2verify.reference.variables import GraphVariable as DescribedVariable
from tf2verify.reference.variables import variable_name
from tf2verify.sides import side
from tf2verify.sides.graphs.lines.op_recorder import OpRecorder
from tf2verify.sides.graphs.lines.source_lines import user_line
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.process import loop_draws, randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.process.fence import fenced

v1 = tf.compat.v1
_KEYS = v1.GraphKeys
_HOOK = 'build_tf1_graph'
_OTHER_GRAPH = (
  'a different graph from the one it is called in: usually a `with tf.Graph().as_default():` '
  'inside '
  'the builder; remove it, tf2verify gives every call a fresh graph'
)


@dataclasses.dataclass(frozen=True)
class GraphVariable:
  """A variable of a graph, by the names of what reads and writes it.

  Attributes:
    record: what an inventory shows.
    read: the tensor that holds its value.
    initializer: the op that initializes it.
    value: the tensor that the initializer assigns.
    shares_value: whether another variable is initialized from the same tensor.
    may_change: whether any op but the initializer could write it.
    local: whether it is a LOCAL_VARIABLE (a metric's counter), not the model's.
    global_step: whether it is the graph's global step.
  """

  record: VariableRecord
  read: str
  initializer: str
  value: str
  shares_value: bool
  may_change: bool
  local: bool
  global_step: bool


@dataclasses.dataclass(frozen=True)
class GraphGradient:
  """The gradient for one variable, by tensor name.

  Attributes:
    variable: the variable's name.
    values: the gradient, or the rows of `IndexedSlices`; None if unconnected.
    indices: for `IndexedSlices`.
    shape: of the variable.
  """

  variable: str
  values: str | None
  indices: str | None
  shape: tuple[int, ...]

  @property
  def tensors(self) -> tuple[str, ...]:
    """Names of the tensors that give it; empty if unconnected."""
    return tuple(name for name in (self.values, self.indices) if name is not None)


@dataclasses.dataclass(frozen=True, eq=False)
class BuiltGraph:
  """A TF1 graph.

  Attributes:
    graph: the graph.
    mode: the mode its random ops are seeded for.
    training: the training mode.
    placeholders: input path to placeholder name.
    structure: of the outputs, as text.
    outputs: path, and tensor name (str), array or None.
    output_nest: the tensors themselves; None in a graph that was imported.
    variables: in the order of creation.
    regularization_losses: names of the variables read, and tensor name.
    update_ops: names of the ops in UPDATE_OPS.
    table_initializers: name of the op that initializes lookup tables.
    random_draws: the random ops in order.
    seed_obstacle: why the graph cannot be rewritten for `constant` mode; '' if it can.
    operation_seeds: how many op seeds the build has drawn.
    keras_seeds: the numbers that tf-keras has drawn as seeds of initializers, which are constants
      of the graph.
    fixed_draws: what it draws inside loops, and what is drawn like that: fixed numbers stand
      in its place.
  """

  graph: tf.Graph
  mode: str
  training: bool
  placeholders: tuple[tuple[str, str], ...]
  structure: str
  outputs: tuple[tuple[str, Any], ...]
  output_nest: Any
  variables: tuple[GraphVariable, ...]
  regularization_losses: tuple[tuple[tuple[str, ...], str], ...]
  update_ops: tuple[str, ...]
  table_initializers: tuple[str, ...]
  random_draws: tuple[RandomDraw, ...]
  seed_obstacle: str
  operation_seeds: int
  keras_seeds: tuple[int, ...] = ()
  fixed_draws: tuple[RandomDraw, ...] = ()

  @property
  def draws_in_computation(self) -> bool:
    """Whether a random op serves anything but a variable's initial value."""
    return any(draw.variable is None for draw in self.random_draws)

  @functools.cached_property
  def narrow_bits(self) -> int:
    """The fraction bits of the narrowest format below float32 that it computes in; 0 for none."""
    outputs = (output for op in self.graph.get_operations() for output in op.outputs)
    kinds = {output.dtype.base_dtype for output in outputs}
    found = (fraction_bits(kind.name) for kind in kinds if kind in (tf.bfloat16, tf.float16))
    return min((bits for bits in found if bits is not None), default=0)


def inventory_of(
  by_training: Iterable[tuple[bool, Iterable[GraphVariable]]],
) -> side.Inventory:
  """Returns the model's variables of the graphs of all training modes."""
  records: dict[str, VariableRecord] = {}
  names = []
  for training, variables in by_training:
    owned = [variable.record for variable in variables if not variable.local]
    for record in owned:
      records.setdefault(record.name, record)
    names.append((training, tuple(record.name for record in owned)))
  return side.Inventory(tuple(records.values()), variables_by_training=tuple(names))


@contextlib.contextmanager
def _one_graph() -> Iterator[None]:
  """Adds the likely cause to an error of a builder that makes graphs of its own."""
  graph_init, made = tf.Graph.__init__, False

  def init(graph: tf.Graph, *arguments: Any, **keywords: Any) -> None:
    nonlocal made
    made = made or type(graph) is tf.Graph  # not the graph of a tf.function
    graph_init(graph, *arguments, **keywords)

  try:
    with mock.patch.object(tf.Graph, '__init__', init):
      yield
  except UserCodeError as error:
    if not made:
      raise
    summary = f'{error.summary}; maybe since it makes {_OTHER_GRAPH}'
    cause, text = error.__cause__, error.traceback_text
    raise UserCodeError(error.side, error.hook, summary, text) from cause


def build_graph(
  declaration: side.Declaration, inputs: Any, training: bool, mode: str, as_keras3: bool = False
) -> BuiltGraph:
  """Builds the TF1 graph under TF1 semantics.

  `shape[i]` is a `Dimension`, as in TF1. A builder that counts on TF2's ints (a
  forward pass that is half ported) is built again with those.

  Args:
    declaration: the case.
    inputs: the checked nest of arrays.
    training: the training mode.
    mode: the mode to seed random ops for.
    as_keras3: as in `randomness.seeded`.

  Raises:
    BuilderError: it returned something unusable or turned a process global.
    UserCodeError: it raised.
  """

  def build(graph: tf.Graph, v2_tensorshape: bool) -> BuiltGraph:
    return _build(graph, declaration, inputs, training, mode, as_keras3, v2_tensorshape)

  built = with_either_shape(build, UserCodeError)
  fixed = loop_draws.of(built.fixed_draws)
  if fixed.isdisjoint(loop_draws.of(d for d in built.random_draws if d.variable is None)):
    return built
  # Draws like those of a loop were made before it: a port's cannot be told from them.
  with loop_draws.known(fixed):
    return with_either_shape(build, UserCodeError)


def placeholders_for(nest: Any, scope: str) -> tuple[Any, list[tuple[str, str]]]:
  """Returns placeholders for arrays, in the same nest, and the paths and names of all of them."""
  made: list[tuple[str, str]] = []

  def placeholder(path: str, leaf: Any) -> tf.Tensor:
    dtype = tf.string if leaf.dtype.kind in 'SU' else tf.as_dtype(leaf.dtype)
    tensor = v1.placeholder(dtype, leaf.shape, name=f'{scope}/{len(made)}')
    made.append((path, tensor.name))
    return tensor

  return nests.map_leaves(placeholder, nest), made


def _build(
  graph: tf.Graph,
  declaration: side.Declaration,
  inputs: Any,
  training: bool,
  mode: str,
  as_keras3: bool,
  v2_tensorshape: bool,
) -> BuiltGraph:
  recorder = OpRecorder()
  process_state.reset_names()
  with process_state.tf1_semantics(v2_tensorshape), graph.as_default():
    fed, placeholders = placeholders_for(inputs, 'tf2verify_input')
    with (
      randomness.seeded(mode, as_keras3=as_keras3, of_reference=True) as scope,
      recorder.recording('the build'),
      fenced(_HOOK),
      _one_graph(),
      user_code(side.TF1, _HOOK),
    ):
      scope.answers.line = user_line
      outputs = declaration.build_tf1_graph(fed, training)
    flat = _checked_outputs(outputs, graph)
    variables = graph_variables(graph, recorder)
    tables = graph.get_collection(_KEYS.TABLE_INITIALIZERS)
    losses = graph.get_collection(_KEYS.REGULARIZATION_LOSSES)
    return BuiltGraph(
      graph=graph,
      mode=mode,
      training=training,
      placeholders=tuple(placeholders),
      structure=flat.structure,
      outputs=tuple(
        (path, leaf.name if isinstance(leaf, tf.Tensor) else leaf) for path, leaf in flat.leaves
      ),
      output_nest=outputs,
      variables=variables,
      regularization_losses=tuple((tuple(variables_behind(loss)), loss.name) for loss in losses),
      update_ops=tuple(
        update.op.name if isinstance(update, tf.Tensor) else update.name
        for update in graph.get_collection(_KEYS.UPDATE_OPS)
      ),
      table_initializers=tuple(op.name for op in tables),
      random_draws=_draws_with_use(recorder.random_draws(), flat),
      seed_obstacle=scope.depends_on_more_than_op_seeds,
      operation_seeds=scope.tool.operation_seed,
      keras_seeds=scope.keras_seeds,
      fixed_draws=tuple(scope.answers.answered),
    )


def _draws_with_use(draws: tuple[RandomDraw, ...], flat: nests.FlatNest) -> tuple[RandomDraw, ...]:
  """Fills in which draws the outputs are computed from."""
  if all(draw.variable is not None for draw in draws):
    return draws
  behind = ops_behind(leaf for _, leaf in flat.leaves if isinstance(leaf, tf.Tensor))
  return tuple(
    dataclasses.replace(draw, feeds_outputs=draw.op_name in behind and not draw.in_loop)
    for draw in draws
  )


def _checked_outputs(outputs: Any, graph: tf.Graph) -> nests.FlatNest:
  if outputs is None:
    raise BuilderError(
      'build_tf1_graph returned None: usually a missing `return`; return the output tensors, in '
      "the same structure as the layer's"
    )
  try:
    flat = nests.flatten(outputs)
  except nests.NotATensor as error:
    raise BuilderError(
      f'build_tf1_graph returned something that is not a tensor: {error}; return tensors, or '
      'tuples, lists, named tuples and dictionaries of tensors'
    ) from error
  tensors = [(path, leaf) for path, leaf in flat.leaves if isinstance(leaf, tf.Tensor)]
  if not tensors:
    raise BuilderError(
      f'build_tf1_graph returned {outputs!r:.80}, which contains no tensor: there is nothing to '
      'compare; return the output tensors'
    )
  for path, leaf in tensors:
    if not hasattr(leaf, 'graph') or leaf.graph is not graph:
      raise BuilderError(f'build_tf1_graph returned {path} from {_OTHER_GRAPH}')
  return flat


def graph_variables(graph: tf.Graph, recorder: OpRecorder) -> tuple[GraphVariable, ...]:
  """Returns the variables that a recorder saw the graph get."""
  members = {
    key: {id(item) for item in graph.get_collection(key)} for key in graph.get_all_collection_keys()
  }
  found: dict[str, GraphVariable] = {}
  used_values: set[str] = set()
  for creation in recorder.creations:
    variable = creation.variable
    if variable is None or variable.graph is not graph or variable_name(variable) in found:
      continue
    keys = sorted(str(key) for key, items in members.items() if id(variable) in items)
    shared = variable.initializer.inputs[1].name in used_values
    known = DescribedVariable(variable, -1, keys, shared)
    used_values.add(known.value)
    found[known.name] = GraphVariable(
      VariableRecord(
        known.name,
        known.shape,
        known.dtype.name,
        trainable=known.trainable,
        trainable_flag=known.trainable_flag,
        collections=tuple(keys),
        source=creation.source,
      ),
      known.read,
      known.initializer,
      known.value,
      known.shares_value,
      known.may_change(),
      known.local,
      known.global_step,
    )
  return tuple(found.values())


def add_gradients(
  built: BuiltGraph, declaration: side.Declaration
) -> tuple[GraphGradient, ...] | None:
  """Adds the gradients of the case's loss for every trainable variable to the graph.

  Returns:
    The gradients in the order of the variables; None when the loss is None.
  """
  by_name = {
    variable_name(variable): variable
    for variable in built.graph.get_collection(_KEYS.TRAINABLE_VARIABLES)
  }
  trainable = [v.record for v in built.variables if v.record.name in by_name]
  with process_state.tf1_semantics(v2_tensorshape=True), built.graph.as_default():
    with user_code(side.TF1, 'loss'):
      loss = declaration.loss(built.output_nest)
    if loss is None:
      return None
    if not isinstance(loss, tf.Tensor):
      raise CaseDefinitionError(
        f'loss returned a {type(loss).__name__} on the tf1 side; return a scalar tensor'
      )
    with user_code(side.TF1, 'the gradient of loss'):
      gradients = tf.gradients(loss, [by_name[record.name] for record in trainable])
  return tuple(
    graph_gradient(record, gradient) for record, gradient in zip(trainable, gradients, strict=True)
  )


def graph_gradient(variable: VariableRecord, gradient: Any) -> GraphGradient:
  """Returns a gradient of the graph by name."""
  shape = tuple(size or 0 for size in variable.shape)
  if isinstance(gradient, tf.IndexedSlices):
    return GraphGradient(variable.name, gradient.values.name, gradient.indices.name, shape)
  return GraphGradient(variable.name, None if gradient is None else gradient.name, None, shape)
