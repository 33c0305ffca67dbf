"""The tf1 side in training: one graph with losses and train op, run in fresh sessions."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import SourceLine, TensorRecord
from tf2verify.records.training import (
  ClippingTrial,
  LossObservation,
  Slot,
  TrainingRun,
  TrainingStep,
)
from tf2verify.reference import nests
from tf2verify.reference.perturbation import Mover
from tf2verify.sides import functional, side
from tf2verify.sides.graphs.effects import Program
from tf2verify.sides.graphs.op_recorder import OpRecorder
from tf2verify.sides.graphs.reading import user_source
from tf2verify.sides.graphs.run import open_session
from tf2verify.sides.process import randomness
from tf2verify.sides.tf1 import build as tf1_build
from tf2verify.sides.tf1 import gradient_trials, session_values
from tf2verify.sides.tf1.build import GraphGradient
from tf2verify.sides.tf1.effects import program_of
from tf2verify.sides.tf1.loss_function import Tf1LossFunction
from tf2verify.sides.tf1.loss_graph import LossGraph, add_losses, fetched_outputs
from tf2verify.sides.tf1.racing import Racing
from tf2verify.sides.tf1.reference_steps import PreparedSteps
from tf2verify.sides.tf1.train_graph import TrainGraph, add_train_op

v1 = tf.compat.v1


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
    self._recorder = OpRecorder()
    self._losses: LossGraph | None = None
    self._train: TrainGraph | None = None
    self._savers: dict[bool, Any] = {}

  def reason_without(self, hook: str) -> str:
    """Returns why the reference has nothing of a hook, where a case cannot declare it; ''."""
    return ''

  def observe_losses(self, run: side.FilledRun, again: bool = False) -> LossObservation:
    """Runs model and losses in a fresh session from given values.

    Args:
      run: inputs and values, and what moves them; its training mode is that of the case,
        training where there is one.
      again: whether the run is to show if it repeats itself.
    """
    losses = self._loss_graph()
    built = losses.built
    output_nest, fetched = built.output_nest, fetched_outputs(built)
    names = [*fetched.values(), losses.loss, losses.total_loss]
    names += [name for _, name in (*(losses.parts or ()), *built.regularization_losses)]
    if all(isinstance(name, str) for name in names):
      losses = self._in_order(losses, names)
      built = losses.built
    self._progress(f'running the TF1 losses, {run.description}')
    with open_session(built.graph) as session:
      session_values.fetch(session, built.table_initializers)
      session_values.assign(session, built.variables, run)
      if run.mover is not None:
        session_values.move(session, built.variables, run.mover)
      values = session_values.fetch(session, names, self._feeds(losses, run, run.mover))
    outputs = dict(zip(fetched, values, strict=False))
    loss, total, *further = values[len(fetched) :]
    places = [place for place, _ in losses.parts or ()]
    parts = tuple(map(TensorRecord, places, map(np.asarray, further)))
    regularization = further[len(places) :]
    return LossObservation(
      side.TF1,
      run.description,
      nests.map_leaves(lambda path, leaf: outputs.get(path, leaf), output_nest),
      np.asarray(loss),
      np.asarray(total),
      functional.total(regularization[::-1]),
      parts,
    )

  def loss_function(self, outputs: Any, labels: Any) -> Tf1LossFunction:
    """Returns what runs the loss, and metrics, on arrays, given the nests that they are of."""
    return Tf1LossFunction(self._declaration, outputs, labels)

  def prepare_steps(self, run: side.FilledRun, count: int) -> PreparedSteps:
    """Builds what training steps need and returns the run itself, as `prepare_filled` does."""
    train = self._train_graph()
    losses = self._in_order(self._loss_graph(), [train.train_op])

    def begin(mover: Mover | None, _: bool) -> Tf1Steps:
      self._progress(f'taking {count} TF1 training steps, {run.description}')
      steps = Tf1Steps(losses, train, self._feeds(losses, run, mover), run.description)
      try:
        steps.start(run, mover)
      except BaseException:
        steps.close()
        raise
      return steps

    return PreparedSteps(begin, count)

  def save(self, run: side.FilledRun, count: int, prefix: str) -> str:
    """Takes training steps and saves every variable, with slots, as a name-based checkpoint.

    Args:
      run: inputs and values.
      count: of steps; 0 saves the given values, with slots only if there is a train op.
      prefix: to write to.

    Returns:
      The prefix as `Saver.save` gives it.
    """
    losses = self._loss_graph()
    declares = self._declaration.declares
    trains = declares('make_tf1_optimizer') or declares('make_tf1_train_op')
    train = self._train_graph() if count or trains else None
    saver = self._saver(losses.built.graph, train is not None)
    if train is not None:
      losses = self._in_order(losses, [train.train_op])
    with Tf1Steps(losses, train, self._feeds(losses, run), run.description) as steps:
      steps.start(run, None)
      for _ in range(count):
        steps.update()
      os.makedirs(os.path.dirname(prefix) or '.', exist_ok=True)
      with losses.built.graph.as_default():
        saved = saver.save(steps.session, prefix, write_meta_graph=False, write_state=False)
      return str(saved)

  def program(self) -> Program | None:
    """Returns the graph of losses and training, to be looked into; None where none is declared."""
    declares = self._declaration.declares
    trains = declares('make_tf1_optimizer') or declares('make_tf1_train_op')
    if not trains and not declares('tf1_loss'):
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

  def _loss_graph(self) -> LossGraph:
    if self._losses is None:
      training = True in self._declaration.training_modes
      self._progress(f'building the TF1 graph for losses, {side.training_name(training)}')
      built = tf1_build.build_graph(self._declaration, self._inputs, training, randomness.CONSTANT)
      self._losses = add_losses(built, self._declaration, self._labels, self._recorder)
    return self._losses

  def _in_order(self, losses: LossGraph, fetches: Sequence[str]) -> LossGraph:
    """Returns the graph so that a run of some fetches is in the order which is asked for."""
    graph = losses.built.graph
    built = self.racing.in_order(
      losses.built, fetches, lambda op: self.source_of(graph.get_operation_by_name(op))
    )
    return losses if built is losses.built else dataclasses.replace(losses, built=built)

  def source_of(self, op: tf.Operation) -> SourceLine | None:
    """Returns the user's line of an operation of the training graph."""
    return user_source(op)

  def _train_graph(self) -> TrainGraph:
    if self._train is None:
      declares = self._declaration.declares
      if not declares('make_tf1_optimizer') and not declares('make_tf1_train_op'):
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

  def _feeds(
    self, losses: LossGraph, run: side.FilledRun, mover: Mover | None = None
  ) -> dict[str, np.ndarray]:
    feeds = session_values.feeds(losses.built, side.moved_inputs(run.inputs, mover))
    if self._labels is not None:
      leaves: dict[str, np.ndarray] = {}
      nests.map_leaves(leaves.__setitem__, self._labels)
      feeds.update({name: leaves[path] for path, name in losses.label_placeholders})
    return feeds


class Tf1Steps:
  """Training steps in a session, one by one.

  The port draws the same numbers at every step, since its seeds start again. A session
  would go on: what it draws first is fed to every step, or, where that cannot be, each
  step has a session of its own.
  """

  def __init__(
    self, losses: LossGraph, train: TrainGraph | None, feeds: dict[str, np.ndarray], run: str
  ) -> None:
    self._run = run
    self._number = 0
    self._before: TrainingRun | None = None
    self._losses = losses
    self._built = losses.built
    self._train = train
    self._feeds = dict(feeds)
    self._added = train.added if train is not None else ()
    self.session: Any = None
    self._open()

  def __enter__(self) -> 'Tf1Steps':
    return self

  def __exit__(self, *_: object) -> None:
    self.close()

  def close(self) -> None:
    """Lets go of the session."""
    self.session.close()

  def _open(self) -> None:
    self.session = open_session(self._built.graph)
    session_values.fetch(self.session, self._built.table_initializers)

  def start(self, run: side.FilledRun, mover: Mover | None) -> None:
    """Gives every variable its value before the first step."""
    session_values.assign(self.session, self._built.variables, run)
    if mover is not None:
      session_values.move(self.session, self._built.variables, mover)
    # A shadow starts as its variable's value, so they come second.
    session_values.initialize_after(self.session, self._added, self._built.variables)
    if self._train is not None and self._train.drawn and not self._train.draws_inside:
      drawn = session_values.fetch(self.session, self._train.drawn, self._feeds)
      self._feeds.update(zip(self._train.drawn, drawn, strict=True))

  def update(self) -> dict[str, Any]:
    """Takes a step; returns what it used, by tensor name."""
    assert self._train is not None
    train = self._train
    names = [self._losses.total_loss]
    if isinstance(train.learning_rate, str):
      names.append(train.learning_rate)
    for gradient in (*train.gradients, *train.applied_gradients):
      names += [name for name in (gradient.values, gradient.indices) if name is not None]
    names = list(dict.fromkeys(names))
    if train.draws_inside:
      self._carry_over()
    fetched = session_values.fetch(self.session, [*names, train.train_op], self._feeds)
    return dict(zip(names, fetched, strict=False))

  def _carry_over(self) -> None:
    """Goes on in a fresh session, whose random ops start again."""
    variables = (*self._built.variables, *self._added)
    values = session_values.read_all(self.session, variables)
    self.session.close()
    self._open()
    session_values.write(self.session, list(zip(variables, values, strict=True)))

  def run(self) -> TrainingRun:
    """Returns what is known before the first step; first asked for before it is taken."""
    assert self._train is not None
    if self._before is None:
      train, built = self._train, self._built
      regularization = session_values.fetch(
        self.session, [name for _, name in built.regularization_losses], self._feeds
      )
      before, slots_before, _ = self._state()
      self._before = TrainingRun(
        side.TF1,
        self._run,
        train.optimizers,
        before,
        slots_before,
        (),
        train.updates_left_out,
        functional.total(regularization[::-1]),
        train.random_draws,
        built.narrow_bits,
      )
    return self._before

  def take(self) -> TrainingStep:
    """Takes a step and reads everything after it."""
    assert self._train is not None
    self.run()
    self._number += 1
    train = self._train
    used = self.update()
    rate = train.learning_rate
    variables, slots, counter = self._state()
    gradients = {known: session_values.gradient_record(known, used) for known in _all(train)}
    return TrainingStep(
      number=self._number,
      loss=np.asarray(used[self._losses.total_loss]),
      learning_rate=float(used[rate]) if isinstance(rate, str) else rate,
      global_step=counter,
      gradients=tuple(gradients[gradient] for gradient in train.gradients),
      applied_gradients=tuple(gradients[gradient] for gradient in train.applied_gradients),
      variables=variables,
      slots=slots,
    )

  def try_clipping(self, factors: Mapping[str, float] | None = None) -> ClippingTrial | None:
    """Feeds far larger gradients in the place of those of a step, which it does not take."""
    assert self._train is not None
    graph, train = self._built.graph, self._train
    return gradient_trials.in_graph(self.session, graph, train, self._feeds, factors)

  def _state(self) -> tuple[tuple[TensorRecord, ...], tuple[Slot, ...], int | None]:
    """Reads the model's variables, the slots and the global step, all in one run."""
    assert self._train is not None
    model = [variable for variable in self._built.variables if not variable.local]
    slots, counter = self._train.slots, self._train.global_step
    wanted = [*model, *(slot.state for slot in slots), *((counter,) if counter else ())]
    values = session_values.read_all(self.session, wanted)
    records = tuple(
      TensorRecord(variable.record.name, value)
      for variable, value in zip(model, values, strict=False)
    )
    kept = tuple(
      Slot(slot.role, slot.variable, slot.state.record.name, value, slot.word)
      for slot, value in zip(slots, values[len(model) :], strict=False)
    )
    return records, kept, int(values[-1]) if counter else None


def _all(train: TrainGraph) -> set[GraphGradient]:
  return {*train.gradients, *train.applied_gradients}
