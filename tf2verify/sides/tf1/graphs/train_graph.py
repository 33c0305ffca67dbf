"""The TF1 graph in training: the train op, added to model and losses."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.records.observation import RandomDraw, SourceLine, VariableRecord
from tf2verify.records.training import OptimizerRecord
from tf2verify.reference.graph_ops import initialize_without, ops_run_by
from tf2verify.reference.optimizers import can_be_fetched, learning_rate_of
from tf2verify.reference.random_draws import draws_in_functions
from tf2verify.reference.random_ops import is_random_op
from tf2verify.reference.slot_roles import slot_by_name
from tf2verify.reference.trained import trained_variables
from tf2verify.reference.updates import Updates
from tf2verify.reference.variables import variable_name
from tf2verify.sides import side
from tf2verify.sides.graphs.lines.op_recorder import OpRecorder
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import loss_parts
from tf2verify.sides.optimizers.made_lines import MadeLines
from tf2verify.sides.optimizers.state import (
  record_of,
  slots_of,
  told,
)
from tf2verify.sides.optimizers.update_recorder import update_recorder
from tf2verify.sides.tf1.graphs import build as tf1_build
from tf2verify.sides.tf1.graphs.added_again import RegularizationAddedAgain
from tf2verify.sides.tf1.graphs.build import GraphGradient, GraphVariable
from tf2verify.sides.tf1.graphs.changed_reference import change_train_op
from tf2verify.sides.tf1.graphs.loss_graph import LossGraph, in_graph, made_in
from tf2verify.sides.tf1.graphs.optimizer import checked_train_op, framework_train_op
from tf2verify.sides.tf1.graphs.racing import Fetches

v1 = tf.compat.v1
_KEYS = v1.GraphKeys


@dataclasses.dataclass(frozen=True)
class GraphSlot:
  """A slot by name, see `records.training.Slot`."""

  role: str
  variable: str
  state: GraphVariable
  word: str = ''


@dataclasses.dataclass(frozen=True, eq=False)
class TrainGraph:
  """What the train op has added."""

  train_op: str  # its name
  gradients: tuple[GraphGradient, ...]  # as differentiated
  applied_gradients: tuple[GraphGradient, ...]  # as given to the updates
  # Name of the tensor, or the number; None where it cannot be told. Of the first optimizer.
  learning_rate: str | float | None
  global_step: GraphVariable | None  # the counter; None without one
  # The variables that came with losses and train op, local ones too.
  added: tuple[GraphVariable, ...]
  slots: tuple[GraphSlot, ...]  # those of them that are an optimizer's or a moving average
  optimizers: tuple[OptimizerRecord, ...]  # in the order of their updates
  updates_left_out: tuple[str, ...]  # UPDATE_OPS that the train op does not run
  random_draws: tuple[RandomDraw, ...]  # of model, losses and train op
  drawn: tuple[str, ...]  # names of the tensors that a step draws
  draws_inside: bool  # whether it draws others, in functions or loops
  # The line that adds the regularization losses to a loss that contains them; None without one.
  regularized_again: SourceLine | None = None
  # Tells the user's line of an operation of this graph.
  line_of: Callable[[tf.Operation], SourceLine | None] = user_source
  # The operation that lets the train op wait for the losses; None without one.
  gate: str | None = None
  # Name of the one scalar that it differentiates, where that is not the total loss of the case: a
  # sum of its parts with weights, say; None where it is, and where it is not told.
  minimized: str | None = None
  # As `learning_rate`, of the other optimizers.
  further_rates: tuple[str | float | None, ...] = ()
  # The model's variables that it moves by their gradients; None where that is not known.
  trained: frozenset[str] | None = None

  def fetches(self, total_loss: str) -> Fetches:
    """Returns what a step is asked for, given the name of the loss that it minimizes."""
    names = [total_loss, *((self.minimized,) if self.minimized else ())]
    if isinstance(self.learning_rate, str):
      names.append(self.learning_rate)
    for gradient in (*self.gradients, *self.applied_gradients):
      names += gradient.tensors
    return Fetches(frozenset([self.train_op]), frozenset(names), self.gate)


_TRAIN_OP = 'make_tf1_train_op'


def add_train_op(
  losses: LossGraph, declaration: side.Declaration, recorder: OpRecorder
) -> TrainGraph:
  """Adds the case's train op to the graph.

  Everything that it adds runs after the total loss and the regularization losses have
  been computed, so that what is fetched along with it are the values before the update.

  Raises:
    CaseDefinitionError: a hook returned something else than an op or an optimizer.
    UserCodeError: a hook raised.
  """
  built, graph = losses.built, losses.built.graph
  total = graph.get_tensor_by_name(losses.total_loss)
  first = [total, graph.get_tensor_by_name(losses.loss)]
  named = (*(losses.parts or ()), *built.regularization_losses)
  first += [graph.get_tensor_by_name(name) for _, name in named]
  first += [part for part in loss_parts.parts_of(losses.total_nest).values() if tf.is_tensor(part)]
  updates, made_lines, own = update_recorder(), MadeLines(), declaration.declares(_TRAIN_OP)
  nest = total if losses.total_nest is None else losses.total_nest
  further = _further_arguments(declaration, losses)
  with graph.as_default():
    # One op in between: of hundreds of losses each op that follows would hold the names.
    gate = tf.group(*first)

  again = RegularizationAddedAgain(graph, total, [name for _, name in built.regularization_losses])

  def make() -> Any:
    with graph.control_dependencies([gate]):
      if not own:
        return framework_train_op(declaration, total)
      with user_code(side.TF1, 'make_tf1_train_op'):
        made = declaration.make_tf1_train_op(nest, **further)
      return checked_train_op(made, graph)

  hook = _TRAIN_OP if own else 'make_tf1_optimizer'
  with in_graph(built, recorder, hook), updates.recording(), made_lines.recording():
    train_op = made_in(graph, make)
  adding = again.op()
  rate = change_train_op(declaration, graph, _learning_rate(updates.optimizers, graph))
  all_variables = tf1_build.graph_variables(graph, recorder)
  initialize_without(gate, [graph.get_operation_by_name(v.initializer) for v in all_variables])
  model = {variable.record.name: variable.record for variable in built.variables}
  added = _added(all_variables, model, updates.counter)
  run = ops_run_by([train_op])
  draws = [op for op in run.values() if is_random_op(op.type)]
  with graph.as_default():  # the settings of Keras' are variables there
    records = tuple(record_of(optimizer) for optimizer in updates.optimizers)
  return TrainGraph(
    train_op=train_op.name,
    gradients=_gradients(updates.differentiated, model, graph),
    applied_gradients=_gradients(updates.applied, model, graph),
    learning_rate=rate,
    global_step=next((v for v in (*built.variables, *added) if v.global_step), None),
    added=added,
    slots=_slots(updates.optimizers, added, model, graph),
    optimizers=records,
    updates_left_out=tuple(name for name in built.update_ops if name not in run),
    random_draws=(*built.random_draws, *recorder.random_draws()),
    drawn=tuple(tensor.name for op in draws for tensor in op.outputs),
    draws_inside=draws_in_functions(graph, run.values())
    or any(op._get_control_flow_context() is not None for op in draws),
    regularized_again=None if adding is None else made_lines.line_of(adding),
    line_of=made_lines.line_of,
    gate=gate.name,
    minimized=_minimized(updates.losses, total, graph),
    further_rates=tuple(_learning_rate([one], graph) for one in updates.optimizers[1:]),
    trained=_trained(train_op, built, gate, updates),
  )


def _further_arguments(declaration: side.Declaration, losses: LossGraph) -> dict[str, Any]:
  taken = inspect.signature(declaration.make_tf1_train_op).parameters
  given = {'outputs': losses.built.output_nest, 'labels': losses.labels}
  return {name: value for name, value in given.items() if name in taken}


def _trained(
  train_op: tf.Operation, built: tf1_build.BuiltGraph, gate: tf.Operation, updates: Updates
) -> frozenset[str]:
  graph = built.graph
  handles = {
    variable.record.name: graph.get_operation_by_name(variable.initializer).inputs[0]
    for variable in built.variables
    if variable.record.trainable
  }
  return frozenset(trained_variables(train_op, handles, gate, updates))


def _minimized(losses: Mapping[str, Any], total: tf.Tensor, graph: tf.Graph) -> str | None:
  """Returns the one loss that is differentiated, where that is another scalar than the total."""
  if len(losses) != 1:
    return None
  ((name, loss),) = losses.items()
  is_scalar = loss.shape.rank == 0 and loss.dtype.is_floating
  return name if name != total.name and is_scalar and can_be_fetched(loss, graph) else None


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
    if all(part is None or can_be_fetched(part, graph) for part in parts):
      gradients.append(tf1_build.graph_gradient(record, tensor))
  return tuple(gradients)


def _learning_rate(optimizers: Sequence[Any], graph: tf.Graph) -> str | float | None:
  """Returns the name of the tensor that the first one's updates use, or the number, or None."""
  if not optimizers:
    return None
  rate: str | float | None = told(lambda: learning_rate_of(optimizers[0], graph))
  return rate


def _added(
  variables: Sequence[GraphVariable], model: Mapping[str, VariableRecord], counter: str | None
) -> tuple[GraphVariable, ...]:
  """Returns the variables that are not the model's; without a global step, any may be one."""
  found = [variable for variable in variables if variable.record.name not in model]
  if not any(variable.global_step for variable in variables):
    found = [dataclasses.replace(v, global_step=v.record.name == counter) for v in found]
  return tuple(found)


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
      for setting in getattr(optimizer, '_hyper', {}).values():  # of Keras: no slots
        if isinstance(setting, tf.Variable):
          left.pop(variable_name(setting), None)
      for slot in slots_of(optimizer, variables):
        state = left.pop(slot.name, None)
        if state is not None:
          found.append(GraphSlot(slot.role, slot.variable, state, slot.word))
  for name, state in left.items():
    role, owner = slot_by_name(name, model)
    found.append(GraphSlot(role, owner, state))
  return tuple(found)
