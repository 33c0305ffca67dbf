"""The tf2 side in training: a fresh layer and a fresh optimizer for every run."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.gradient_clips import enlargement, norm
from tf2verify.records.observation import Slices, TensorRecord
from tf2verify.records.training import (
  ClippingTrial,
  LossObservation,
  OptimizerRecord,
  Slot,
  TrainingRun,
  TrainingStep,
)
from tf2verify.reference import nests
from tf2verify.reference.perturbation import Mover
from tf2verify.reference.slot_roles import slot_by_name
from tf2verify.reference.variables import static_shape, variable_name
from tf2verify.sides import side
from tf2verify.sides.fill import MovedFill
from tf2verify.sides.optimizer_parts import parts_of
from tf2verify.sides.optimizer_state import (
  SlotVariable,
  is_keras,
  record_of,
  slots_of,
  told,
)
from tf2verify.sides.process import randomness
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.sides.tf2.port import Port, array_of
from tf2verify.sides.tf2.step import (
  Step,
  check_not_used,
  checked_optimizer,
  framework_step,
  losses_of,
  own_step,
)
from tf2verify.sides.update_recorder import UpdateRecorder
from tf2verify.sides.user_code import user_code

v1 = tf.compat.v1


class Tf2Training:
  """Takes the port's training steps."""

  def __init__(
    self, declaration: side.Declaration, layer: Tf2Layer, labels: Any, progress: side.Progress
  ) -> None:
    self._declaration = declaration
    self._layer = layer
    self._labels = labels
    self._progress = progress
    # To see that each optimizer is another one.
    self._optimizers: list[Any] = []
    self._updating: list[Any] = []

  def observe_losses(self, run: side.FilledRun) -> LossObservation:
    """Runs a fresh layer and the losses from given values, eagerly."""
    self._progress(f'running the TF2 losses, {run.description}')
    port = self._layer.filled_port(run)
    with randomness.seeded(randomness.CONSTANT):
      outputs = self._layer.call(port, run.inputs, run.training, run.description)
      losses = losses_of(self._declaration, port, outputs, self._label_tensors())
      _, regularization = self._layer.regularization_losses(port)
    return LossObservation(
      side.TF2,
      run.description,
      nests.map_leaves(lambda _, leaf: _array_leaf(leaf), outputs),
      array_of(losses.loss),
      array_of(losses.total),
      regularization,
      tuple(TensorRecord(place, array_of(part)) for place, part in losses.parts.items()),
    )

  def observe_steps(self, run: side.FilledRun, count: int) -> TrainingRun:
    """Takes training steps with a fresh layer and a fresh optimizer, from given values."""
    steps = self.begin_steps(run, count)
    taken = tuple(steps.take() for _ in range(count))
    return dataclasses.replace(steps.run(), steps=taken)

  def begin_steps(self, run: side.FilledRun, count: int) -> 'Tf2Steps':
    """Returns a fresh layer before its first step, to be taken one by one.

    Args:
      run: inputs and values.
      count: how many there will be, for progress.
    """
    declares = self._declaration.declares
    if not declares('make_tf2_optimizer') and not declares('tf2_train_step'):
      raise NotApplicable('the case declares neither make_tf2_optimizer nor tf2_train_step')
    self._progress(f'taking {count} TF2 training steps, {run.description}')
    port = self._layer.filled_port(run)
    # An optimizer's schedule may count on the global step, which is a graph's.
    v1.get_default_graph().clear_collection(v1.GraphKeys.GLOBAL_STEP)
    optimizer = self._optimizer()
    step = self._step(port, run, optimizer)
    before = port.values()
    with randomness.seeded(randomness.CONSTANT):
      _, regularization = self._layer.regularization_losses(port)
    known = TrainingRun(
      side.TF2, run.description, (), before, (), (), regularization_total=regularization
    )
    return Tf2Steps(port, optimizer, step, known, self._updating)

  def begin_steps_again(
    self, run: side.FilledRun, count: int, mover: Mover | None
  ) -> 'Tf2StepsAgain':
    """Returns such a layer, from values and inputs moved by rounding, beside one under way."""
    fill = run.fill if mover is None else MovedFill(run.fill, mover)
    inputs = side.moved_inputs(run.inputs, mover)
    again = dataclasses.replace(run, fill=fill, inputs=inputs)
    return Tf2StepsAgain(lambda: self.begin_steps(again, count))

  def _optimizer(self) -> Any:
    if not self._declaration.declares('make_tf2_optimizer'):
      return None
    with user_code(side.TF2, 'make_tf2_optimizer'), randomness.seeded(randomness.CONSTANT):
      optimizer = self._declaration.make_tf2_optimizer()
    own_step = self._declaration.declares('tf2_train_step')
    parts = checked_optimizer(optimizer, self._optimizers, own_step)
    self._optimizers += parts.state
    if not parts.optimizers or not all(map(is_keras, parts.optimizers)):
      v1.train.get_or_create_global_step()
    return optimizer

  def _step(self, port: Port, run: side.FilledRun, optimizer: Any) -> Step:
    labels = self._label_tensors()
    if self._declaration.declares('tf2_train_step'):
      return own_step(self._declaration, port, run.inputs, labels, optimizer)
    return framework_step(self._declaration, port, run, labels, optimizer)

  def _label_tensors(self) -> Any:
    if self._labels is None:
      return None
    return nests.map_leaves(lambda _, leaf: tf.constant(leaf), self._labels)


class Tf2Steps:
  """Training steps of one layer, one by one."""

  def __init__(
    self, port: Port, optimizer: Any, step: Step, known: TrainingRun, used: list[Any]
  ) -> None:
    """Takes what was made for the steps.

    Args:
      port: the layer.
      optimizer: of the case; None where its own step has one.
      step: takes a step.
      known: the run before its first step.
      used: the optimizers that have updated in any run; those of this one are added.
    """
    self._used_earlier, self._used = tuple(used), used
    self._slots_before: tuple[Slot, ...] = ()
    self._number = 0
    self._step = step
    self._before = known
    self._port = port
    self._optimizer = optimizer
    self._known = {id(variable) for variable in port.variables()}
    self._created_before = len(port.recorder.creations)
    self._updating: list[Any] = []
    # Of the last step: whether the update was given something else, and what.
    self._changes_gradients = False
    self._last: tuple[tuple[TensorRecord, ...], tuple[TensorRecord, ...]] = (), ()

  def run(self) -> TrainingRun:
    """Returns what is known beside the steps themselves.

    Optimizers, and the slots before the first step, which a Keras optimizer makes in it,
    only once a step was taken.
    """
    return dataclasses.replace(
      self._before,
      optimizers=self.records(),
      slots_before=self._slots_before,
      random_draws=self._port.recorder.random_draws(),
    )

  def take(self) -> TrainingStep:
    """Takes a step and reads everything after it."""
    self._number += 1
    number = self._number
    self._last = (), ()  # not held while the next ones are made
    updates = UpdateRecorder()
    loss = self._stepped(updates)
    for optimizer in updates.optimizers:
      if not any(optimizer is known for known in self._updating):
        self._updating.append(optimizer)
        self._used.append(optimizer)
    if number == 1:
      self._slots_before = self._slots_at_creation()
    first = updates.updates[0] if updates.updates else None
    self._changes_gradients = updates.changes_gradients
    self._last = self._gradients(updates.differentiated), self._gradients(updates.applied)
    return TrainingStep(
      number=number,
      loss=loss,
      learning_rate=None if first is None else first.learning_rate,
      global_step=self._global_step(),
      gradients=self._last[0],
      applied_gradients=self._last[1],
      variables=self._port.values(),
      slots=self._slots(),
      further_counts=parts_of(self._optimizer).counts(),
    )

  def _stepped(self, updates: UpdateRecorder) -> np.ndarray | None:
    with (
      randomness.seeded(randomness.CONSTANT),
      self._port.recorder.recording(f'training step {self._number}'),
      updates.recording(),
    ):
      try:
        loss = self._step()
      except UserCodeError:
        check_not_used(updates.begun, self._used_earlier)
        raise
    check_not_used(updates.begun, self._used_earlier)
    return loss

  def try_clipping(self, factors: Mapping[str, float] | None = None) -> ClippingTrial | None:
    """Takes a step with far larger gradients, the last step of all.

    Args:
      factors: as `ReferenceSteps.try_clipping`.

    Returns:
      What the updates were given; None where they are given the gradients as they are.

    Raises:
      NotApplicable: that cannot be tried.
    """
    raw, applied = self._last
    if not raw or not applied:
      raise NotApplicable('the step of the port does not tell what it makes of the gradients')
    if not self._changes_gradients:
      return None
    updates = UpdateRecorder(enlargement(raw) if factors is None else factors)
    self._number += 1
    self._stepped(updates)
    large, large_applied = map(self._gradients, (updates.differentiated, updates.applied))
    return ClippingTrial(raw, applied, large, large_applied)

  def records(self) -> tuple[OptimizerRecord, ...]:
    """Returns the optimizers that have updated something."""
    return tuple(record_of(optimizer) for optimizer in self._updating)

  def _global_step(self) -> int | None:
    """Returns the count of steps; None where the case's own step does not move it."""
    made = parts_of(self._optimizer)
    optimizers = self._updating or made.optimizers
    if optimizers and is_keras(optimizers[0]):
      counts = {int(optimizer.iterations) for optimizer in optimizers if is_keras(optimizer)}
      return counts.pop() if len(counts) == 1 else None  # of several, none is the one that counts
    if (counted := made.count()) is not None:
      return counted
    counter = v1.train.get_global_step()
    # Whoever keeps an optimizer of TF1 may count in a variable of his own.
    return int(counter) or None if counter is not None else None

  def _gradients(self, found: dict[str, Any]) -> tuple[TensorRecord, ...]:
    records = []
    for variable in self._port.variables():
      name = variable_name(variable)
      if name in found and _is_known(found[name]):
        records.append(_gradient_record(self._port, variable, found[name]))
    return tuple(records)

  def _slots(self) -> tuple[Slot, ...]:
    return tuple(self._slot(slot, slot.source) for slot in self._slot_variables())

  def _slots_at_creation(self) -> tuple[Slot, ...]:
    values = {id(c.variable): c.initial_value for c in self._port.recorder.creations}
    found = tuple(
      self._slot(slot, values[id(slot.source)])
      for slot in self._slot_variables()
      if values.get(id(slot.source)) is not None
    )
    for creation in self._port.recorder.creations[self._created_before :]:
      creation.initial_value = None  # it would be held as long as the layer
    return found

  def _slot(self, slot: SlotVariable, value: Any) -> Slot:
    shown = self._port.layouts.to_tf1(slot.variable, array_of(value))
    return Slot(slot.role, slot.variable, slot.name, shown, slot.word)

  def _slot_variables(self) -> tuple[SlotVariable, ...]:
    """Returns the state of the optimizers, and what else the steps have created."""
    variables = self._port.variables()
    found: list[SlotVariable] = []
    seen = set(self._known)
    made = parts_of(self._optimizer)
    for optimizer in self._updating or made.optimizers:
      for slot in slots_of(optimizer, variables):
        seen.add(id(slot.source))
        found.append(slot)
      seen |= {id(variable) for variable in _own_variables(optimizer)}
    counter = v1.train.get_global_step()
    for slot in made.slots(variables):
      if id(slot.source) not in seen and slot.source is not counter:
        found.append(slot)
      seen.add(id(slot.source))
    names = [variable_name(variable) for variable in variables]
    for creation in self._port.recorder.creations[self._created_before :]:
      variable = creation.variable
      if variable is None or variable is counter or id(variable) in seen or creation.layer:
        continue
      seen.add(id(variable))
      role, owner = slot_by_name(variable_name(variable), names)
      found.append(SlotVariable(role, owner, variable_name(variable), variable))
    return tuple(found)


class Tf2StepsAgain:
  """Steps beside those of a layer that is under way, whose global step they leave alone."""

  def __enter__(self) -> 'Tf2StepsAgain':
    return self

  def __exit__(self, *_: object) -> None:
    pass

  def __init__(self, begin: Callable[[], Tf2Steps]) -> None:
    """Takes what begins them."""
    self._counters: list[Any] = []
    with self._own_counter():
      self._steps = begin()

  def run(self) -> TrainingRun:
    """Returns what is known beside the steps themselves."""
    with self._own_counter():
      return self._steps.run()

  def take(self) -> TrainingStep:
    """Takes a step and reads everything after it."""
    with self._own_counter():
      return self._steps.take()

  @contextlib.contextmanager
  def _own_counter(self) -> Iterator[None]:
    known = v1.get_default_graph().get_collection_ref(v1.GraphKeys.GLOBAL_STEP)
    before, known[:] = list(known), self._counters
    try:
      yield
    finally:
      now = v1.get_default_graph().get_collection_ref(v1.GraphKeys.GLOBAL_STEP)
      self._counters, now[:] = list(now), before


def _own_variables(optimizer: Any) -> Iterable[Any]:
  variables = told(lambda: optimizer.variables)
  listed = (told(variables) if callable(variables) else variables) or ()
  # A new Keras optimizer does not list its learning rate.
  return [*listed, *(v for v in vars(optimizer).values() if isinstance(v, tf.Variable))]


def _is_known(gradient: Any) -> bool:
  parts = gradient if not isinstance(gradient, tf.IndexedSlices) else gradient.values
  return parts is None or hasattr(parts, 'numpy')


def _gradient_record(port: Port, variable: Any, gradient: Any) -> TensorRecord:
  if isinstance(gradient, tf.IndexedSlices):
    shape = tuple(size or 0 for size in static_shape(variable.shape))
    rows = array_of(gradient.values)
    dense = side.dense_gradient(rows, array_of(gradient.indices), shape)
    slices = Slices(len(rows), norm(rows))
    return dataclasses.replace(port.record_of(variable, dense), slices=slices)
  if gradient is None:
    return TensorRecord(variable_name(variable), None)
  return port.record_of(variable, gradient)


def _array_leaf(leaf: Any) -> Any:
  if isinstance(leaf, tf.SparseTensor):
    parts = (leaf.indices, leaf.values, leaf.dense_shape)
    return v1.SparseTensorValue(*(np.asarray(part) for part in parts))
  if isinstance(leaf, tf.RaggedTensor):
    value = _array_leaf(leaf.values)
    return v1.ragged.RaggedTensorValue(value, np.asarray(leaf.row_splits))
  if isinstance(leaf, (tf.Tensor, tf.Variable)):
    return array_of(leaf)
  return leaf
