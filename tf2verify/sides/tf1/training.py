"""The tf1 side in training: one graph with losses and train op, run in fresh sessions."""

import os
from collections.abc import Mapping
from typing import Any, final

import tensorflow as tf

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import SourceLine
from tf2verify.records.training import LossObservation
from tf2verify.reference.perturbation import Perturber
from tf2verify.reference.slot_roles import LINEAR
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.inlining import operation
from tf2verify.sides.graphs.lines.op_recorder import OpRecorder
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import StepGraph
from tf2verify.sides.graphs.variables.effects import Program
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.process import randomness
from tf2verify.sides.tf1.graphs import build as tf1_build
from tf2verify.sides.tf1.graphs.effects import program_of
from tf2verify.sides.tf1.graphs.loss_graph import LossGraph, add_losses, fetched_outputs
from tf2verify.sides.tf1.graphs.racing import Racing
from tf2verify.sides.tf1.graphs.train_graph import GraphSlot, TrainGraph, add_train_op
from tf2verify.sides.tf1.loss_function import Tf1LossFunction
from tf2verify.sides.tf1.reference_steps import PreparedSteps
from tf2verify.sides.tf1.sessions.session_steps import SessionSteps
from tf2verify.sides.tf1.training_runs import TrainingRuns

v1 = tf.compat.v1


@final
class Tf1Training:
  """Builds the training graph once, in constant mode: model, losses, train op.

  Attributes:
    racing: in which order operations run that the graph does not order.
  """

  def __init__(
    self, declaration: side.Declaration, inputs: Any, labels: Any, progress: side.Progress
  ) -> None:
    self._declaration = declaration
    self._inputs = inputs
    self._labels = labels
    self._progress = progress
    self.racing = Racing()
    self._runs = TrainingRuns(labels, self.racing, _source_of)
    self._recorder = OpRecorder()
    self._losses: LossGraph | None = None
    self._train: TrainGraph | None = None
    self._savers: dict[bool, Any] = {}

  def reason_without(self, hook: str) -> str:
    """Returns why the reference has nothing of a hook, where a case cannot declare it; ''."""
    return ''

  def observe_losses(self, run: side.RunSpec, again: bool = False) -> LossObservation:
    """Runs model and losses in a fresh session from given values.

    Args:
      run: inputs and values, and what moves them; its training mode is that of the case,
        training where there is one.
      again: whether the run is to show if it repeats itself.
    """
    losses = self._loss_graph()
    self._progress(f'running the TF1 losses, {run.description}')
    outputs = fetched_outputs(losses.built)
    return self._runs.observe(losses, run, outputs, losses.built.output_nest, losses.added)

  def loss_function(self, outputs: Any, labels: Any) -> Tf1LossFunction:
    """Returns what runs the loss, and metrics, on arrays, given the nests that they are of."""
    return Tf1LossFunction(self._declaration, outputs, labels)

  def trained_variables(self) -> frozenset[str] | None:
    """Returns the model's variables that the train op moves by gradients; None without one."""
    return self._train_graph().trained if self._trains() else None

  def prepare_steps(self, run: side.RunSpec, count: int) -> PreparedSteps:
    """Builds what training steps need and returns the run itself, as `prepare_filled` does."""
    train = self._train_graph()
    losses = self._runs.steps_in_order(self._loss_graph(), train)

    def begin(perturber: Perturber | None, _: bool) -> SessionSteps:
      self._progress(f'taking {count} TF1 training steps, {run.description}')
      return self._runs.begin(losses, train, run, perturber)

    return PreparedSteps(begin, count)

  def inspectable_losses(self, run: side.RunSpec) -> GraphRun:
    """Returns a run of model and losses of which every tensor can be asked for."""
    return self._runs.inspectable_losses(self._loss_graph(), run, user_source)

  def inspectable_step(self, run: side.RunSpec, number: int, names: Mapping[str, str]) -> StepGraph:
    """Takes the steps before one, and returns that one as a graph.

    Args:
      run: inputs and values.
      number: of the step, from 1.
      names: what both sides call a slot, by its own name.
    """
    train, losses = self._train_graph(), self._loss_graph()

    def line_of(op: str) -> SourceLine | None:
      found = operation(losses.built.graph, op)
      return None if found is None else train.line_of(found)

    ordered = self._runs.steps_in_order(losses, train)
    return self._runs.inspectable_step(ordered, train, run, number, names, line_of)

  def save(self, run: side.RunSpec, count: int, prefix: str) -> str:
    """Takes training steps and saves every variable, with slots, as a name-based checkpoint.

    Args:
      run: inputs and values.
      count: of steps; 0 saves the given values, with slots only if there is a train op.
      prefix: to write to.

    Returns:
      The prefix as `Saver.save` gives it.
    """
    losses = self._loss_graph()
    train = self._train_graph() if count or self._trains() else None
    saver = self._saver(losses.built.graph, train is not None)
    if train is not None:
      losses = self._runs.steps_in_order(losses, train)
    with self._runs.begin(losses, train, run, None) as steps:
      for _ in range(count):
        steps.update()
      os.makedirs(os.path.dirname(prefix) or '.', exist_ok=True)
      with steps.session.graph.as_default():
        saved = saver.save(steps.session, prefix, write_meta_graph=False, write_state=False)
      return str(saved)

  def slots(self) -> tuple[GraphSlot, ...]:
    """Returns what the train op keeps for the variables, and for itself."""
    return self._train_graph().slots

  def computed_from_slots(self) -> frozenset[str]:
    """Returns the variables that an update computes from slots alone, whatever they are."""
    if not self._trains():
      return frozenset()
    return frozenset(slot.variable for slot in self.slots() if slot.role == LINEAR)

  def begin_restored(self, run: side.RunSpec, prefix: str) -> SessionSteps:
    """Returns a session before its next step, restored from a checkpoint by a `Saver`.

    Args:
      run: inputs, and values until it is restored.
      prefix: of a checkpoint with all variables and slots.
    """
    train = self._train_graph()
    losses = self._runs.steps_in_order(self._loss_graph(), train)
    saver = self._saver(losses.built.graph, trained=True)
    steps = self._runs.begin(losses, train, run, None)
    try:
      with user_code(side.TF1, 'Saver.restore'), steps.session.graph.as_default():
        saver.restore(steps.session, prefix)
    except BaseException:
      steps.close()
      raise
    return steps

  def program(self) -> Program | None:
    """Returns the graph of losses and training, to be looked into; None where none is declared."""
    trains = self._trains()
    if not trains and not self._declaration.declares('tf1_loss'):
      return None
    losses = self._loss_graph()
    tensors = ((losses.loss, 'the loss'), (losses.total_loss, 'the total loss'))
    return program_of(losses.built, tensors, (self._train_graph().train_op,) if trains else ())

  def close(self) -> None:
    """Lets go of the graph."""
    self._losses = None
    self._train = None
    self._savers.clear()
    self._recorder = OpRecorder()

  def _trains(self) -> bool:
    return any(map(self._declaration.declares, ('make_tf1_optimizer', 'make_tf1_train_op')))

  def _loss_graph(self) -> LossGraph:
    if self._losses is None:
      training = True in self._declaration.training_modes
      self._progress(f'building the TF1 graph for losses, {side.training_name(training)}')
      built = tf1_build.build_graph(self._declaration, self._inputs, training, randomness.CONSTANT)
      self._losses = add_losses(built, self._declaration, self._labels, self._recorder)
    return self._losses

  def _train_graph(self) -> TrainGraph:
    if self._train is None:
      if not self._trains():
        raise NotApplicable('the case declares neither make_tf1_optimizer nor make_tf1_train_op')
      losses = self._loss_graph()
      self._progress('adding the train op to the TF1 graph')
      self._losses = None  # what a train op that fails has left in it is in nobody's way
      self._train = add_train_op(losses, self._declaration, self._recorder)
      self._losses = losses
    return self._train

  def _saver(self, graph: tf.Graph, trained: bool) -> Any:
    if trained not in self._savers:
      with graph.as_default():
        self._savers[trained] = v1.train.Saver(max_to_keep=None)
    return self._savers[trained]


def _source_of(graph: tf.Graph, op: str) -> SourceLine | None:
  return user_source(graph.get_operation_by_name(op))
