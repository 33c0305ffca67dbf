"""The TF1 graph in training: losses and train op added to the model's graph."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import tensorflow as tf

from tf2verify.errors import CaseDefinitionError, NotApplicable, UserCodeError
from tf2verify.records.observation import RandomDraw, VariableRecord
from tf2verify.records.training import OptimizerRecord
from tf2verify.sides import dataflow, nests, process_state, randomness, side, tf1_build
from tf2verify.sides.op_recorder import OpRecorder, variable_name
from tf2verify.sides.optimizer_state import (
  graph_learning_rate,
  record_of,
  slot_by_name,
  slots_of,
)
from tf2verify.sides.tf1_build import BuiltGraph, GraphGradient, GraphVariable
from tf2verify.sides.tf1_optimizer import checked_train_op, framework_train_op
from tf2verify.sides.update_recorder import UpdateRecorder
from tf2verify.sides.user_code import user_code

v1 = tf.compat.v1
_KEYS = v1.GraphKeys
_Made = TypeVar('_Made')


@dataclasses.dataclass(frozen=True, eq=False)
class LossGraph:
  """A model's graph with the losses.

  Attributes:
    built: the model.
    label_placeholders: path and name.
    loss: name of the tensor.
    total_loss: what is minimized, likewise.
  """

  built: BuiltGraph
  label_placeholders: tuple[tuple[str, str], ...]
  loss: str
  total_loss: str


@dataclasses.dataclass(frozen=True)
class GraphSlot:
  """A slot by name, see `records.training.Slot`."""

  role: str
  variable: str
  state: GraphVariable


@dataclasses.dataclass(frozen=True, eq=False)
class TrainGraph:
  """What the train op has added.

  Attributes:
    train_op: its name.
    gradients: as differentiated.
    applied_gradients: as given to the updates.
    learning_rate: name of the tensor, or the number; None where it cannot be told.
    global_step: the counter; None without one.
    added: the variables that came with losses and train op, local ones too.
    slots: those of them that are an optimizer's or a moving average.
    optimizers: in the order of their updates.
    updates_left_out: UPDATE_OPS that the train op does not run.
    random_draws: of model, losses and train op.
  """

  train_op: str
  gradients: tuple[GraphGradient, ...]
  applied_gradients: tuple[GraphGradient, ...]
  learning_rate: str | float | None
  global_step: GraphVariable | None
  added: tuple[GraphVariable, ...]
  slots: tuple[GraphSlot, ...]
  optimizers: tuple[OptimizerRecord, ...]
  updates_left_out: tuple[str, ...]
  random_draws: tuple[RandomDraw, ...]

  @property
  def draws(self) -> bool:
    """Whether a step draws random numbers."""
    return any(draw.variable is None for draw in self.random_draws)


@contextlib.contextmanager
def _in_graph(built: BuiltGraph, recorder: OpRecorder, hook: str) -> Iterator[None]:
  """Continues the graph under the conditions under which it was built."""
  with (
    built.graph.as_default(),
    randomness.seeded(randomness.CONSTANT),
    recorder.recording(hook),
    tf1_build.fenced(hook),
  ):
    yield


def _with_either_shape(graph: tf.Graph, make: Callable[[], _Made]) -> _Made:
  """Calls user code under TF1's tensor shapes; where it counts on TF2's, with those."""
  collections = {key: list(graph.get_collection(key)) for key in graph.get_all_collection_keys()}
  try:
    with process_state.tf1_semantics(v2_tensorshape=False):
      return make()
  except UserCodeError as error:
    if not isinstance(error.__cause__, (TypeError, AttributeError, ValueError)):
      raise
    first = error
  for key in graph.get_all_collection_keys():
    graph.get_collection_ref(key)[:] = collections.get(key, [])
  try:
    with process_state.tf1_semantics(v2_tensorshape=True):
      return make()
  except UserCodeError:
    raise first from first.__cause__


def add_losses(
  built: BuiltGraph, declaration: side.Declaration, labels: Any, recorder: OpRecorder
) -> LossGraph:
  """Adds the case's losses to the graph of its model.

  Args:
    built: the graph, built in constant mode.
    declaration: the case.
    labels: the checked nest of arrays; None without.
    recorder: sees what is created.

  Raises:
    NotApplicable: there is no loss.
    CaseDefinitionError: a hook returned no tensor.
    UserCodeError: a hook raised.
  """
  placeholders: list[tuple[str, str]] = []

  def placeholder(path: str, leaf: Any) -> tf.Tensor:
    dtype = tf.string if leaf.dtype.kind in 'SU' else tf.as_dtype(leaf.dtype)
    tensor = v1.placeholder(dtype, leaf.shape, name=f'tf2verify_label/{len(placeholders)}')
    placeholders.append((path, tensor.name))
    return tensor

  with built.graph.as_default():
    fed = None if labels is None else nests.map_leaves(placeholder, labels)
  hook = 'tf1_loss' if declaration.declares('tf1_loss') else 'loss'

  def model_loss() -> Any:
    with user_code(side.TF1, hook):
      if hook == 'tf1_loss':
        return declaration.tf1_loss(built.output_nest, fed)
      return declaration.loss(built.output_nest)

  def total() -> Any:
    if not declaration.declares('tf1_total_loss'):
      return _with_regularization(built.graph, loss)
    with user_code(side.TF1, 'tf1_total_loss'):
      return declaration.tf1_total_loss(built.output_nest, fed)

  with _in_graph(built, recorder, hook):
    loss = _with_either_shape(built.graph, model_loss)
  if loss is None and hook == 'loss':
    raise NotApplicable('no output is floating, so the default loss has nothing to sum')
  loss = _checked_loss(loss, hook, built.graph)
  with _in_graph(built, recorder, 'tf1_total_loss'):
    total_loss = _with_either_shape(built.graph, total)
  total_loss = _checked_loss(total_loss, 'tf1_total_loss', built.graph)
  return LossGraph(built, tuple(placeholders), loss.name, total_loss.name)


def _checked_loss(loss: Any, hook: str, graph: tf.Graph) -> tf.Tensor:
  if isinstance(loss, (tf.Variable, int, float)):
    with graph.as_default():
      loss = tf.convert_to_tensor(loss)
  if not isinstance(loss, tf.Tensor) or getattr(loss, 'graph', None) is not graph:
    slip = 'usually a missing `return`' if loss is None else 'return the tensor to minimize'
    raise CaseDefinitionError(
      f'{hook} returned {loss!r:.80} on the tf1 side, which is no tensor of the graph: {slip}'
    )
  return loss


def _with_regularization(graph: tf.Graph, loss: tf.Tensor) -> tf.Tensor:
  losses = graph.get_collection(_KEYS.REGULARIZATION_LOSSES)
  behind = dataflow.op_names_behind([loss])
  if not losses or any(regularization.op.name in behind for regularization in losses):
    return loss
  return loss + tf.cast(tf.add_n(losses), loss.dtype)


def add_train_op(
  losses: LossGraph, declaration: side.Declaration, recorder: OpRecorder
) -> TrainGraph:
  """Adds the case's train op to the graph.

  Everything that it adds runs after the total loss and the regularization losses have
  been computed, so that what is fetched beside it are the values before the update.

  Raises:
    CaseDefinitionError: a hook returned something else than an op or an optimizer.
    UserCodeError: a hook raised.
  """
  built, graph = losses.built, losses.built.graph
  total = graph.get_tensor_by_name(losses.total_loss)
  first = [total, graph.get_tensor_by_name(losses.loss)]
  first += [graph.get_tensor_by_name(name) for _, name in built.regularization_losses]
  updates = UpdateRecorder()
  own = declaration.declares('make_tf1_train_op')

  def make() -> Any:
    with graph.control_dependencies(first):
      if not own:
        return framework_train_op(declaration, total)
      with user_code(side.TF1, 'make_tf1_train_op'):
        made = declaration.make_tf1_train_op(total)
      return checked_train_op(made, graph)

  hook = 'make_tf1_train_op' if own else 'make_tf1_optimizer'
  with _in_graph(built, recorder, hook), updates.recording():
    train_op = _with_either_shape(graph, make)
  all_variables = tf1_build.graph_variables(graph, recorder)
  model = {variable.record.name: variable.record for variable in built.variables}
  added = tuple(variable for variable in all_variables if variable.record.name not in model)
  counters = [v for v in (*built.variables, *added) if v.global_step]
  behind = _ops_run_by(train_op)
  rates = [graph_learning_rate(optimizer) for optimizer in updates.optimizers]
  return TrainGraph(
    train_op=train_op.name,
    gradients=_gradients(updates.differentiated, model, graph),
    applied_gradients=_gradients(updates.applied, model, graph),
    learning_rate=_rate_name(rates[0], graph) if rates else None,
    global_step=counters[0] if counters else None,
    added=added,
    slots=_slots(updates.optimizers, added, model, graph),
    optimizers=tuple(record_of(optimizer) for optimizer in updates.optimizers),
    updates_left_out=tuple(name for name in built.update_ops if name not in behind),
    random_draws=(*built.random_draws, *recorder.random_draws()),
  )


def _gradients(
  found: dict[str, Any], model: dict[str, VariableRecord], graph: tf.Graph
) -> tuple[GraphGradient, ...]:
  """Returns the gradients for the model's variables that a session can be asked for."""
  gradients = []
  for name, record in model.items():
    if name not in found:
      continue
    tensor = found[name]
    parts = [tensor.values, tensor.indices] if isinstance(tensor, tf.IndexedSlices) else [tensor]
    if all(part is None or _can_be_fetched(part, graph) for part in parts):
      gradients.append(tf1_build.graph_gradient(record, tensor))
  return tuple(gradients)


def _can_be_fetched(tensor: Any, graph: tf.Graph) -> bool:
  return isinstance(tensor, tf.Tensor) and tensor.graph is graph and graph.is_fetchable(tensor)


def _rate_name(rate: Any, graph: tf.Graph) -> str | float | None:
  if isinstance(rate, tf.Variable):
    rate = rate._as_graph_element()
  if isinstance(rate, tf.Tensor):
    return rate.name if _can_be_fetched(rate, graph) else None
  return None if rate is None else float(rate)


def _slots(
  optimizers: Iterable[Any],
  added: tuple[GraphVariable, ...],
  model: dict[str, VariableRecord],
  graph: tf.Graph,
) -> tuple[GraphSlot, ...]:
  left = {
    variable.record.name: variable
    for variable in added
    if not variable.local and not variable.global_step
  }
  variables = [
    variable
    for variable in graph.get_collection(_KEYS.GLOBAL_VARIABLES)
    if variable_name(variable) in model
  ]
  found = []
  with graph.as_default():  # `get_slot` asks for it
    for optimizer in optimizers:
      for slot in slots_of(optimizer, variables):
        state = left.pop(slot.name, None)
        if state is not None:
          found.append(GraphSlot(slot.role, slot.variable, state))
  for name, state in left.items():
    role, owner = slot_by_name(name, model)
    found.append(GraphSlot(role, owner, state))
  return tuple(found)


def _ops_run_by(op: tf.Operation) -> set[str]:
  """Returns the names of all ops that running an op runs, by data and by control."""
  names: set[str] = set()
  pending = [op]
  while pending:
    current = pending.pop()
    if current.name not in names:
      names.add(current.name)
      pending += [tensor.op for tensor in current.inputs]
      pending += current.control_inputs
  return names
