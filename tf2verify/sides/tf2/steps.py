"""Training steps of the port, one by one."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.gradient_clips import enlargement
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import (
  ClippingTrial,
  OptimizerRecord,
  Slot,
  TrainingRun,
  TrainingStep,
)
from tf2verify.reference import nests
from tf2verify.reference.slot_roles import slot_by_name
from tf2verify.reference.updates import Updates
from tf2verify.reference.variables import variable_name
from tf2verify.sides.optimizers.made_lines import MadeLines
from tf2verify.sides.optimizers.parts import parts_of
from tf2verify.sides.optimizers.state import (
  SlotVariable,
  is_keras,
  record_of,
  slots_of,
  variables_of,
  with_keys,
)
from tf2verify.sides.optimizers.update_recorder import changes_gradients, update_recorder
from tf2verify.sides.process import randomness
from tf2verify.sides.seen import Seen
from tf2verify.sides.set_aside_steps import slots_set_aside
from tf2verify.sides.side import Change, Factor
from tf2verify.sides.tf2.graphs.edited_step import EditableStep
from tf2verify.sides.tf2.graphs.step_tracing import SharedNames, StepTracing
from tf2verify.sides.tf2.layers.layer_parts import own_variables
from tf2verify.sides.tf2.layers.port import HoldsElements, Port
from tf2verify.sides.tf2.layers.shown import shown_slots
from tf2verify.sides.tf2.optimization.given_gradients import GivenGradients
from tf2verify.sides.tf2.optimization.gradient_records import gradient_record, is_known
from tf2verify.sides.tf2.optimization.own_counts import rates_by_count
from tf2verify.sides.tf2.optimization.schedules import Schedule
from tf2verify.sides.tf2.optimization.step import (
  Step,
  check_not_used,
)

v1 = tf.compat.v1
# Makes a step of its trace, given the values of the reference before it, by what both call them.
MakesStep = Callable[[Mapping[str, np.ndarray]], EditableStep]


class Tf2Steps:
  """Training steps of one layer, one by one."""

  def __init__(
    self, port: Port, optimizer: Any, step: Step, known: TrainingRun, used: Seen
  ) -> None:
    """Takes what was made for the steps.

    Args:
      port: the layer.
      optimizer: of the case; None where its own step has one.
      step: takes a step.
      known: the run before its first step.
      used: the optimizers that have updated in any run; those of this one are added.
    """
    self._used_earlier, self._used = used.copy(), used
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
    self._given: GivenGradients | None = None
    self._factor: Factor = 1.0
    self._last: tuple[tuple[TensorRecord, ...], tuple[TensorRecord, ...]] = (), ()
    # The same of the last one on another batch.
    self._last_changed: tuple[tuple[TensorRecord, ...], tuple[TensorRecord, ...]] = (), ()

  def run(self) -> TrainingRun:
    """Returns what is known besides the steps themselves.

    Optimizers, and the slots before the first step, which a Keras optimizer makes in it,
    only once a step was taken.
    """
    model = self._port.variables(), own_variables(self._port.layer)
    return dataclasses.replace(
      self._before,
      optimizers=self.records(),
      slots_before=self._slots_before,
      random_draws=self._port.recorder.random_draws(),
      not_copied=tuple(parts_of(self._optimizer).not_copied(*model)),
    )

  def laid_out(self, variable: str, value: np.ndarray, has_shape: bool = False) -> np.ndarray:
    """Returns an average of a variable as tf1 would hold it; see `relation.shadows.LayOut`."""
    layouts = self._port.layouts
    if layouts.lie_apart(variable):
      return value
    if not has_shape:
      return layouts.to_tf1(variable, value)
    if not layouts.adds_constants(variable):
      return value
    added = layouts.to_tf2(variable, np.zeros_like(value))
    own: np.ndarray = value - layouts.to_tf1(variable, added, constants=False)
    return own

  def take(self) -> TrainingStep:
    """Takes a step and reads everything after it."""
    updates, loss = self._taken()
    rates = [update.learning_rate for update in updates.updates]
    self._changes_gradients = changes_gradients(updates)
    self._last = self._gradients(updates.differentiated), self._gradients(updates.applied)
    return TrainingStep(
      number=self._number,
      loss=loss,
      learning_rate=rates[0] if rates else None,
      global_step=self._global_step(),
      gradients=self._last[0],
      applied_gradients=self._last[1],
      variables=self._port.values(),
      slots=self._slots(),
      further_counts=parts_of(self._optimizer).counts(),
      further_rates=tuple(rate for rate in rates[1:] if rate is not None),
    )

  def give_gradients(self, names: Mapping[str, str], applied: bool) -> GivenGradients:
    """Returns what the steps get their gradients from; see there."""
    self._given = GivenGradients(self._port.layouts, names, applied)
    return self._given

  def advance(self) -> None:
    """Takes a step and reads nothing, as it is to be had on the way to a later one."""
    self._taken()

  def _taken(self) -> tuple[Updates, np.ndarray | None]:
    """Takes a step; returns its updates and its loss."""
    self._number += 1
    self._last = (), ()  # not held while the next ones are made
    updates = self._recorder()
    loss = self._stepped(updates)
    for optimizer in updates.optimizers:
      if not any(optimizer is known for known in self._updating):
        self._updating.append(optimizer)
        self._used.add(optimizer)
    if self._number == 1:
      self._slots_before = slots_set_aside(self._slots_at_creation())
    return updates, loss

  def _recorder(self) -> Updates:
    if self._given is not None:
      return self._given.recorder()
    return update_recorder(self._factor, begun=self._see_starts if self._number == 1 else None)

  def _see_starts(self, optimizer: Any) -> None:
    """Takes what slots start with from an optimizer that gives them values once they are made."""
    own = {id(variable): variable for variable in variables_of(optimizer)}
    for creation in self._port.recorder.creations[self._created_before :]:
      variable, known = own.get(id(creation.variable)), creation.initial_value
      if variable is not None and known is not None and tf.executing_eagerly():
        is_other = tf.reduce_any(tf.not_equal(variable, tf.convert_to_tensor(known)))
        creation.initial_value = tf.identity(variable) if is_other else known

  def hold(self, held: Mapping[str, HoldsElements]) -> None:
    """Gives elements of variables other values before the next step, by the names shown."""
    self._port.hold(held)

  def schedule(self) -> Schedule:
    """Returns the schedule of the learning rate, once a step was taken.

    Raises:
      NotApplicable: there is none that can be asked.
    """
    return Schedule(self._updating)

  def schedules(self) -> list[Schedule]:
    """Returns those of all optimizers that have updated and can be asked, numbers among them."""
    return Schedule.of_each(self._updating)

  def rates_by_count(self, counts: Sequence[int]) -> list[tuple[str, int, list[float]]]:
    """Returns the rates at values of what may count the steps, see there; none of several."""
    one = self._updating[0] if len(self._updating) == 1 else None
    return [] if one is None else list(rates_by_count(self._optimizer, one, counts))

  @property
  def optimizers(self) -> int:
    """How many have updated."""
    return len(self._updating)

  def take_at_rate(self, factor: float) -> TrainingStep:
    """Takes a step at the rate times a factor, see `ReferenceSteps.take_at_rate`."""
    schedule = self.schedule()
    wanted = factor * schedule.rates([schedule.count])[0]
    with schedule.scaled(factor):
      step = self.take()
    if step.learning_rate is None or not np.isclose(step.learning_rate, wanted, rtol=1e-4):
      raise NotApplicable('the step of the port keeps its learning rate')
    return step

  def take_with(self, change: Change) -> TrainingStep:
    """Takes a step on another batch, see `ReferenceSteps.take_with`."""
    last = self._last
    try:
      with self._on(change):
        return self.take()
    finally:
      self._last, self._last_changed = last, self._last

  @contextlib.contextmanager
  def _on(self, change: Change | None) -> Iterator[None]:
    """Has steps taken on another batch."""
    step = self._step
    if change is not None:
      of_batch = change
      labels = step.labels
      if labels is not None:
        labels = nests.map_leaves(lambda _, leaf: tf.constant(of_batch(leaf.numpy())), labels)
      inputs = nests.map_leaves(lambda _, leaf: of_batch(leaf), step.inputs)
      self._step = dataclasses.replace(step, inputs=inputs, labels=labels)
    try:
      yield
    finally:
      self._step = step

  def take_scaled(self, factor: Factor, change: Change | None = None) -> TrainingStep:
    """Takes a step at gradients times a factor, see `ReferenceSteps.take_scaled`."""
    if self._given is not None:
      raise NotApplicable('the port is given its gradients')
    last = self._last
    self._factor = factor if isinstance(factor, float) else self._by_own_name(factor)
    try:
      with self._on(change):
        return self.take()
    finally:
      self._factor, self._last = 1.0, last

  def traced(self, names: SharedNames, made: MadeLines) -> MakesStep:
    """Traces the next step, and does not take it.

    Args:
      names: what both sides call what they keep.
      made: where optimizers were made.

    Returns:
      What makes a step of the trace, given the values of the reference before it.

    Raises:
      NotTraceable: it does not run on symbolic tensors.
    """
    tracing = StepTracing(self._step, self._optimizer, names, made, self._recorder)
    with randomness.seeded(randomness.CONSTANT), self._port.recorder.recording('the trace'):
      traced = tracing.trace()
    self._updating += [one for one in tracing.optimizers if one not in self._updating]
    created = [creation.variable for creation in self._port.recorder.creations]
    slots = self._slot_variables()
    own = (v for optimizer in self._updating for v in variables_of(optimizer))
    given_to = [] if self._given is None else self._given.variables
    kept = [*(slot.source for slot in slots), *own, *given_to, *created, v1.train.get_global_step()]
    kept = [v for v in kept if v is not None]
    handles = {id(getattr(slot.source, 'handle', None)): slot.key for slot in slots}

    def step(before: Mapping[str, np.ndarray]) -> EditableStep:
      shared = dataclasses.replace(names, before=before)
      graph = tracing.graph(traced, kept, handles, shared)
      known = {variable.identity: variable.name for variable in graph.variables.values()}
      own = ((slot, getattr(slot.source, 'handle', None)) for slot in slots)
      told = tuple((slot, known.get(id(handle), '')) for slot, handle in own)
      given = frozenset(known.get(id(v.handle), '') for v in given_to)
      return EditableStep(graph, self._port, shared, told, given)

    return step

  def _stepped(self, updates: Updates) -> np.ndarray | None:
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

  def try_clipping(
    self, factors: Mapping[str, float] | None = None, change: Change | None = None
  ) -> ClippingTrial | None:
    """Takes a step with far larger gradients, the last step of all.

    Args:
      factors: as `ReferenceSteps.try_clipping`.
      change: likewise.

    Returns:
      What the updates were given; None where they are given the gradients as they are.

    Raises:
      NotApplicable: that cannot be tried.
    """
    raw, applied = self._last if change is None else self._last_changed
    if not raw or not applied:
      raise NotApplicable('the step of the port does not show how it changes the gradients')
    if not self._changes_gradients:
      return None
    factor = enlargement(raw) if factors is None else self._by_own_name(factors)
    updates = update_recorder(factor)
    self._number += 1
    with self._on(change):
      self._stepped(updates)
    large, large_applied = map(self._gradients, (updates.differentiated, updates.applied))
    return ClippingTrial(raw, applied, large, large_applied)

  def evened(self, factors: Mapping[str, float]) -> dict[str, float]:
    """Returns factors of gradients, one for all whose elements lie in the same variables."""
    return self._port.layouts.evened(factors)

  def _by_own_name(self, factors: Mapping[str, float]) -> dict[str, float]:
    names = self._port.layouts.own_names
    return {own: factor for name, factor in factors.items() for own in names(name)}

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
      if name in found and is_known(found[name]):
        records.append(gradient_record(self._port, variable, found[name]))
    return self._port.gradients(records)

  def _slots(self) -> tuple[Slot, ...]:
    return shown_slots(self._port, ((slot, slot.source) for slot in self._slot_variables()))

  def _slots_at_creation(self) -> tuple[Slot, ...]:
    values = {id(c.variable): c.initial_value for c in self._port.recorder.creations}
    known = ((slot, values.get(id(slot.source))) for slot in self._slot_variables())
    found = shown_slots(self._port, ((slot, v) for slot, v in known if v is not None))
    for creation in self._port.recorder.creations[self._created_before :]:
      creation.initial_value = None  # it would be held as long as the layer
    return found

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
      seen |= {id(variable) for variable in variables_of(optimizer)}
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
    return with_keys(found)
