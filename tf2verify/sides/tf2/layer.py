"""The tf2 side: the port's layer, run eagerly."""

import contextlib
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import (
  CaseDefinitionError,
  LayerError,
  NotApplicable,
  Tf2VerifyError,
  UserCodeError,
)
from tf2verify.records.observation import Observation, RegularizationLoss, TensorRecord
from tf2verify.reference.variables import variable_name
from tf2verify.relation.layouts.variable_layouts import Layouts
from tf2verify.sides import side
from tf2verify.sides.graphs.initial_draws import InitialDraw
from tf2verify.sides.graphs.lines.op_recorder import MAKING
from tf2verify.sides.graphs.lines.traces import retraced
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.variables.dataflow import variables_behind_each
from tf2verify.sides.graphs.variables.effects import Effect
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import functional
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.tf2.graphs import port_tracing
from tf2verify.sides.tf2.graphs.effects import port_effects
from tf2verify.sides.tf2.layers import declared_sizes, layer_parts, outermost
from tf2verify.sides.tf2.layers.checked_layer import check_layer, check_not_built, is_placeholder
from tf2verify.sides.tf2.layers.grouped_draws import drawn_elements
from tf2verify.sides.tf2.layers.input_marks import InputMarks
from tf2verify.sides.tf2.layers.keras3_parts import check_keras3
from tf2verify.sides.tf2.layers.port import Port, array_of, checked_outputs, untraced
from tf2verify.sides.tf2.layers.port_records import gradient_record, losses_kept, output_records
from tf2verify.sides.tf2.layers.redrawn import Redrawn
from tf2verify.sides.tf2.layers.served_keras import served_keras_note
from tf2verify.sides.tf2.layers.shown import ValuesGiven, shown_draws, shown_names
from tf2verify.sides.tf2.traces.tracing import NotTraceable, TracedPort
from tf2verify.tensorflow_internals import keras3


class Tf2Layer:
  """Inspects one layer over several calls, and runs fresh layers for seeded runs."""

  def __init__(self, declaration: side.Declaration, inputs: Any, progress: side.Progress) -> None:
    self._declaration = declaration
    self._inputs = inputs
    self._progress = progress
    self._inspected: Port | None = None
    self._report: side.CreationReport | None = None
    self._inventory: side.Inventory | None = None
    self._layouts, self._marks = Layouts(), InputMarks()
    self._loss_variables: dict[int, list[tuple[str, ...]]] = {}
    self._of_keras3: bool | None = None
    self._redrawn = Redrawn(self, declaration, inputs)
    # To see that each layer is another one: whoever returns one twice keeps it alive.
    self._made: list[weakref.ref[Any]] = []

  @property
  def progress(self) -> side.Progress:
    """Whom to tell what is being run."""
    return self._progress

  def creation_report(self) -> side.CreationReport:
    """Calls one layer twice in every training mode and returns what the calls created."""
    try:
      self._inspect()
    except UserCodeError:
      if self._report is None:
        raise
    assert self._report is not None
    return self._report

  def _inspect(self) -> Port:
    if self._inspected is not None:
      return self._inspected
    with randomness.seeded(randomness.CONSTANT):
      port = [self.fresh_port() for _ in range(2 - bool(self._made))][-1]  # to see that two differ
      calls, first_call, modes = list[str](), 0, self._declaration.training_modes
      for training in (modes[0], *modes, modes[-1]):
        calls.append(f'call {len(calls) + 1} ({side.training_name(training)})')
        self._progress(f'calling the TF2 layer, {calls[-1]}')
        try:
          self.call(port, self._inputs, training, calls[-1])
        except UserCodeError:
          refused = port.recorder.refused_by_function()
          if refused:
            first = port.recorder.creation_records()[:first_call]
            self._report = side.CreationReport(tuple(calls), first, refused)
          raise
        first_call = first_call if len(calls) > 1 else len(port.recorder.creations)
    check_keras3(port)
    records = port.recorder.creation_records()
    self._report = side.CreationReport(
      tuple(calls),
      records[:first_call],
      records[first_call:],
      retraced(tuple(zip(calls, (modes[0], *modes, modes[-1]), strict=True)), port.recorder.traces),
      is_placeholder(port.layer),
    )
    self._inspected = port
    return port

  def served_keras_note(self) -> tuple[str, bool] | None:
    """Returns the note on the port's Keras, and whether it is a blind spot; None without one."""
    port = self._inspected
    return None if port is None else served_keras_note(port.layer, self._declaration)

  def inventory(self) -> side.Inventory:
    """Returns the variables of the inspected layer, and those that it fails to track."""
    if self._inventory is None:
      port = self._inspect()
      untracked = [one for one in port.used_beside() if not layer_parts.is_random_state(one)]
      self._inventory = side.Inventory(tuple(port.inventory()), tuple(port.described(untracked)))
    return self._inventory

  def seed_states(self) -> tuple[str, ...]:
    """Returns the names of the states of the random generators that the port uses."""
    port = self._inspect()
    beside = [one for one in port.used_beside() if layer_parts.is_random_state(one)]
    return layer_parts.seed_states(port.layer, beside)

  def present(self, layouts: Layouts, mapped: bool = False) -> None:
    """Gives and takes values from now on in the shapes that the reference has.

    Args:
      layouts: of the port's variables.
      mapped: whether they are listed as those of the reference, too.
    """
    self._layouts = layouts
    self._inventory = None if mapped else self._inventory
    if self._inspected is not None:
      self._inspected.layouts = layouts

  def made_by_get_variable(self) -> bool:
    """Returns whether anything in the layer is made as in tf1, with the names of tf1."""
    return self._inspect().made_by_get_variable()

  def note_on_name(self) -> str:
    """Returns what to say of the layer's name; '' for nothing, see `outermost`."""
    return outermost.note(self._inspect().layer)

  def is_native_keras(self) -> bool:
    """Returns whether the port is a layer of Keras 2 or 3 without any variable made as in tf1."""
    return not self.made_by_get_variable() and layer_parts.is_of_keras(self._inspect().layer)

  def observe_seeded(
    self, mode: str, training: bool, then: Callable[[Port], None] | None = None
  ) -> Observation:
    """Runs a layer from its own initial values.

    In `constant` mode that is the inspected layer, put back to these. In `num_random_ops` mode they
    depend on the order of random ops, and the layer is a fresh one, which `then` gets afterwards.
    """
    run = f'{side.training_name(training)}, {mode}'
    self._progress(f'running the TF2 layer, {run}')
    with randomness.seeded(mode) as scope:
      if mode == randomness.CONSTANT and self._inspect().keeps_initial_values():
        port = self._inspect()
        port.reset()
      else:
        port = self.fresh_port()
      outputs = self.call(port, self._inputs, training, run)
      losses, total = self.regularization_losses(port)
    observed = Observation(
      side=side.TF2,
      run=run,
      initial_values=port.initial_values(),
      state_after=port.values(),
      random_draws=shown_draws(self._layouts, port.recorder.random_draws()),
      **output_records(outputs),
      regularization_losses=losses,
      regularization_total=total,
      fixed_draws=tuple(scope.answers.answered),
    )
    if then is not None and port is not self._inspected:
      then(port)
    return observed

  def observe_started(self, mode: str, start: side.RunSpec) -> Observation:
    """Runs a layer from given initial values; the variables are there before random ops count.

    Args:
      mode: how the random ops of the call are seeded.
      start: inputs, training mode and values; variables without one keep their initial value.
    """
    run = f'{side.training_name(start.training)}, {mode}'
    self._progress(f'running the TF2 layer from the initial values of tf1, {run}')
    with randomness.seeded(randomness.CONSTANT):
      port = self._inspect()
      if not port.keeps_initial_values():
        port = self.fresh_port()
        self.call(port, self._inputs, start.training, 'the call that makes the variables')
    port.reset()
    self.assign(port, start)
    initial, call = port.values(), f'{run}, from the initial values of tf1'
    before = len(port.recorder.random_draws((call,)))
    with randomness.seeded(mode), untraced(mode):
      outputs = self.call(port, start.inputs, start.training, call)
      losses, total = self.regularization_losses(port)
    return Observation(
      side=side.TF2,
      run=run,
      initial_values=tuple(TensorRecord(r.name, np.array(r.value)) for r in initial),
      state_after=port.values(),
      random_draws=shown_draws(self._layouts, port.recorder.random_draws((call,))[before:]),
      **output_records(outputs),
      regularization_losses=losses,
      regularization_total=total,
    )

  def initial_draws(self, variable: str) -> tuple[InitialDraw, ...]:
    """Returns how the elements of a variable are drawn: in one way, or some in each of several."""
    with randomness.seeded(randomness.CONSTANT):
      port = self._inspect()
    return drawn_elements(self._layouts, port, variable, self._redrawn)

  def observe_filled(self, runs: Sequence[side.RunSpec]) -> tuple[Observation, ...]:
    """Runs the inspected layer from given values."""
    return tuple(self._observe_filled(run) for run in runs)

  def _observe_filled(self, run: side.RunSpec) -> Observation:
    port = self._inspect()
    self._progress(f'running the TF2 layer, {run.description}')
    self.assign(port, run)
    gradients: tuple[TensorRecord, ...] = ()
    losses: tuple[RegularizationLoss, ...] = ()
    total: np.ndarray | None = None
    with randomness.seeded(randomness.CONSTANT):
      if run.gradients:
        outputs, gradients = self.gradients(port, run)
      else:
        outputs = self.call(port, run.inputs, run.training, run.description)
        losses, total = self.regularization_losses(port)
    return Observation(
      side=side.TF2,
      run=run.description,
      gradients=gradients,
      **output_records(outputs),
      regularization_losses=losses,
      regularization_total=total,
      losses_left_out=0 if losses or run.gradients else losses_kept(port),
    )

  def inspectable(self, run: side.RunSpec) -> GraphRun:
    """Returns a run, traced as one graph, of which every tensor can be asked for.

    Raises:
      NotTraceable: the port does not run on symbolic tensors.
    """
    return self.traced(run).run()

  def traced(self, run: side.RunSpec, afresh: bool = False) -> TracedPort:
    """Returns the port traced as one graph; `afresh`, with a layer that is used nowhere else.

    Raises:
      NotTraceable: the port does not run on symbolic tensors.
    """
    self._progress(f'tracing the TF2 layer, {run.description}')
    if self._inspected is not None and not afresh:
      return port_tracing.traced_port(self._declaration, self._inspected, run)
    port = self.fresh_port()
    # Traced before it is called, which takes longer; recorded, or names of Keras 3 are not unique.
    with contextlib.suppress(NotTraceable), port.recorder.recording('the call that is traced'):
      return port_tracing.traced_port(self._declaration, port, run)
    port = self.fresh_port()
    with randomness.seeded(randomness.CONSTANT):
      self.call(port, self._inputs, self._declaration.training_modes[-1], 'the call before tracing')
    return port_tracing.traced_port(self._declaration, port, run)

  def effects_of(self, variables: Collection[str], labels: Any) -> dict[str, Effect] | None:
    """Returns which of some variables a compared number depends on; None if that is not known."""
    self._progress('tracing the TF2 layer, to see what reads its variables')
    return port_effects(self._declaration, self._inspect(), self._inputs, labels, variables)

  def filled_port(self, run: side.RunSpec) -> Port:
    """Returns a fresh layer, called once so that its variables are there, with given values."""
    with randomness.seeded(randomness.CONSTANT):
      port = self.fresh_port()
      self.call(port, self._inputs, run.training, 'the call that makes the variables')
    self.assign(port, run)
    return port

  def release(self) -> None:
    """Lets go of the inspected layer; another is made if it is asked for."""
    self._inspected = None

  def close(self) -> None:
    """Lets go of the layers."""
    self._inspected = None
    self._made.clear()

  def fresh_port(self) -> Port:
    """Returns a layer fresh from `make_tf2_layer`, which has not been called."""
    process_state.reset_names()
    port = Port(None, self._layouts)
    with user_code(side.TF2, 'make_tf2_layer'), port.recorder.recording(MAKING):
      layer = self._declaration.make_tf2_layer()
    check_layer(layer)
    if any(layer is earlier() for earlier in self._made):
      raise LayerError(
        'make_tf2_layer returned the same object twice: every stage needs a fresh, unbuilt layer, '
        'or the state of one run leaks into the next; construct the layer inside make_tf2_layer '
        'instead of in __init__, setUp or at module level'
      )
    check_not_built(layer, {id(creation.variable) for creation in port.recorder.creations})
    self._made.append(weakref.ref(layer))
    port.take(layer)
    self._of_keras3 = keras3.is_layer(layer)
    return port

  def is_of_keras3(self) -> bool:
    """Returns whether the port is a layer of Keras 3; False where no port can be made."""
    if self._of_keras3 is None:
      with contextlib.suppress(Tf2VerifyError), randomness.seeded(randomness.CONSTANT):
        self.fresh_port()
    return bool(self._of_keras3)

  def call(self, port: Port, inputs: Any, training: bool, call: str) -> Any:
    """Calls a layer through the case's hook; what it does is recorded under the name `call`."""
    fed = self._marks.fed(inputs)
    with user_code(side.TF2, 'call_tf2_layer'), port.recorder.recording(call):
      outputs = self._declaration.call_tf2_layer(port.layer, fed, training)
    checked = checked_outputs(outputs)
    self._marks.look(checked, training)
    return checked

  def inputs_behind_outputs(self, training: bool) -> frozenset[str]:
    """Returns the inputs that outputs were seen to be computed from; others may be read unseen."""
    self._inspect()
    return self._marks.behind(training)

  def declared_limit(self, run: side.RunSpec, error: Exception) -> str:
    """Returns how the port says itself that it refuses inputs of this size; '' if it does not.

    Args:
      run: what it raised at.
      error: what it raised.
    """
    return declared_sizes.declared_limit(self._inspect().layer, self._inputs, run.inputs, error)

  def gradients(self, port: Port, run: side.RunSpec) -> tuple[Any, tuple[TensorRecord, ...]]:
    """Calls a layer under a tape; returns its outputs and the gradients of the loss."""
    with tf.GradientTape() as tape:
      outputs = self.call(port, run.inputs, run.training, run.description)
      with user_code(side.TF2, 'loss'):
        loss = self._declaration.loss(outputs)
    if loss is None:
      raise NotApplicable('no output is floating, so the default loss has nothing to sum')
    if not isinstance(loss, tf.Tensor):
      raise CaseDefinitionError(
        f'loss returned a {type(loss).__name__} on the tf2 side; return a scalar tensor'
      )
    trainable = port.trainable_variables()
    with user_code(side.TF2, 'the gradient of loss'):
      gradients = tape.gradient(loss, trainable)
    return outputs, port.gradients(
      gradient_record(port, variable, gradient)
      for variable, gradient in zip(trainable, gradients, strict=True)
    )

  def assign(self, port: Port, run: side.RunSpec) -> None:
    """Gives every variable its value: filled, or initial where the fill has none."""
    values = ValuesGiven(port, run)
    port.assign(values)
    if run.gradients:  # they need the memory
      port.forget_initial_values(values.filled)

  def regularization_losses(
    self, port: Port
  ) -> tuple[tuple[RegularizationLoss, ...], np.ndarray | None]:
    """Returns the losses that a layer holds after a call, and their sum."""

    def losses() -> list[Any]:
      return layer_parts.regularization(self._declaration.tf2_regularization_losses(port.layer))

    variables = [(v, variable_name(v)) for v in port.variables() if hasattr(v, 'handle')]
    with user_code(side.TF2, 'tf2_regularization_losses'):
      values = losses()
      if not values:
        return (), None
      # A trace of its own for every number of losses: an activity regularizer adds
      # its loss to some calls only. Fresh layers list their losses in one order.
      if len(values) not in self._loss_variables:
        self._loss_variables[len(values)] = variables_behind_each(losses, variables)
      names = self._loss_variables[len(values)]
      total = functional.total(values)
    records = tuple(
      RegularizationLoss(shown_names(self._layouts, read), np.array(array_of(value)))
      for value, read in zip(values, names, strict=True)
    )
    return records, total
