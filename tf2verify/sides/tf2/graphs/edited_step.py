"""A traced training step of the port, taken with edits and from other values."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.numerics.gradient_clips import norm
from tf2verify.records.observation import Slices, TensorRecord
from tf2verify.records.training import Slot, TrainingStep
from tf2verify.reference.variables import static_shape, variable_name
from tf2verify.relation.shadows import SHADOW
from tf2verify.sides import side
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.same_steps import on_graph_of
from tf2verify.sides.graphs.step_run import (
  LOSS_TARGET,
  StepGraph,
  StepRun,
  applied_target,
  gradient_target,
  update_target,
)
from tf2verify.sides.optimizers.state import SlotVariable
from tf2verify.sides.tf2.graphs.step_tracing import SharedNames
from tf2verify.sides.tf2.layers.port import HoldsElements, Port, array_of
from tf2verify.sides.tf2.layers.shown import shown_slots, slot_with
from tf2verify.sides.tf2.traces.tracing import Change

# What a run yields, by target.
_Values = Mapping[str, tuple[np.ndarray, ...]]


@dataclasses.dataclass(frozen=True, eq=False)
class BegunStep:
  """A run of a step, which can go on as another step of the same graph."""

  _step: StepRun

  @property
  def run(self) -> GraphRun:
    """The run."""
    return self._step.run

  def restart(self, port: 'EditableStep') -> bool:
    """Goes as another step from now on; returns False where that has another graph."""
    return self._step.restart(port.step)


@dataclasses.dataclass(frozen=True, eq=False)
class EditableStep:
  """A step that is traced, and was not taken."""

  step: StepGraph  # its graph
  port: Port  # the layer that would take it
  names: SharedNames  # what both sides call what they keep
  # Each slot, in order, and the name of the step's variable; several slots may have one name, and
  # '' stands for one that the step does not use.
  slots: tuple[tuple[SlotVariable, str], ...]
  given: frozenset[str] = frozenset()  # names of variables that are given to this step alone

  def begin(self, change: Change | None = None, targets_only: bool = False) -> 'BegunStep':
    """Returns a run of the step, as it was traced or changed, which can go on as another one."""

    def changed(graph_def: Any) -> None:
      if change is not None:
        change(graph_def, {})

    return BegunStep(StepRun(self.step, changed, targets_only, shows_choices=True))

  def on_graph_of(self, other: 'EditableStep') -> 'EditableStep':
    """Returns the step as a run of another one's graph, where both are one; itself elsewhere."""
    step = on_graph_of(self.step, other.step)
    return self if step is None else dataclasses.replace(self, step=step)

  def is_on_graph_of(self, other: 'EditableStep') -> bool:
    """Returns whether it is a run of another one's graph, by whatever values."""
    return self.step.rewritten is other.step.rewritten

  def starting_from(self, values: Mapping[str, np.ndarray]) -> 'EditableStep':
    """Returns the step from other values of its variables, of those that are given."""
    variables = {
      op: dataclasses.replace(variable, value=values.get(variable.name, variable.value))
      for op, variable in self.step.variables.items()
    }
    return dataclasses.replace(self, step=dataclasses.replace(self.step, variables=variables))

  def starting_from_tf1(self, values: Mapping[str, np.ndarray]) -> 'EditableStep':
    """Returns the step from values of the reference, as the port holds them.

    Args:
      values: by what both sides call them, in the shapes of tf1; what has no counterpart of its
        shape in the port is passed over.
    """
    layouts, names = self.port.layouts, self.names.variables
    shown = {own: values[tf1] for own, tf1 in names.items() if tf1 in values}
    whole = {own: v for own, v in shown.items() if all(n in shown for n in layouts.neighbours(own))}
    laid_out = dict(values)
    for own, value in layouts.ungrouped(whole).items():
      laid_out[self.names.of_variable(own)] = layouts.to_tf2(own, value)
    owners = {tf1: own for own, tf1 in names.items()}
    for name, value in values.items():
      role, _, owner = name.rpartition(' of ')
      if role and owner in owners:
        laid_out[name] = layouts.to_tf2(owners[owner], value, constants=role == SHADOW)
    return self.starting_from(
      {
        # A count of steps may be a float on one side.
        known.name: laid_out[known.name].astype(known.value.dtype, copy=False)
        for known in self.step.variables.values()
        if known.name in laid_out and laid_out[known.name].shape == known.shape
      }
    )

  def left_behind(self, values: _Values) -> dict[str, np.ndarray]:
    """Returns what the step's variables hold after it, given what its run yields."""
    known = {variable.name for variable in self.step.variables.values()} - self.given
    return {name: values[update_target(name)][0] for name in known}

  def with_elements(
    self, held: Mapping[str, np.ndarray], elements: Mapping[str, HoldsElements]
  ) -> dict[str, np.ndarray]:
    """Returns variables with elements that have other values, by the names of `left_behind`.

    Args:
      held: what variables hold.
      elements: by the names under which variables are shown; parts of a group are left out.
    """
    found = {}
    layouts = self.port.layouts
    for shown, known in elements.items():
      name = self.names.of_variable(shown)
      if name in held and not layouts.lie_apart(shown):
        value = known.into(layouts.to_tf1(shown, held[name]))
        found[name] = layouts.to_tf2(shown, value)
    return found

  def taken(
    self, values: _Values, held: Mapping[str, np.ndarray], like: TrainingStep
  ) -> TrainingStep:
    """Returns the step as a record of what it has done.

    Args:
      values: what its run yields.
      held: what variables hold after it, of all that was written in it and before.
      like: the step as the port takes it without edits, from which comes what no graph shows.
    """
    own = {
      variable_name(v): held.get(self.names.of_variable(variable_name(v)), array_of(v))
      for v in self.port.variables()
    }
    shown = self.port.shown(own)
    loss = values.get(LOSS_TARGET)
    return dataclasses.replace(
      like,
      loss=None if like.loss is None or loss is None else loss[0],
      gradients=self._gradients(gradient_target, values, like.gradients),
      applied_gradients=self._gradients(applied_target, values, like.applied_gradients),
      variables=tuple(
        TensorRecord(record.name, shown.get(record.name, record.value)) for record in like.variables
      ),
      slots=tuple(self._slots(held, like.slots)),
    )

  def _slots(self, held: Mapping[str, np.ndarray], like: Sequence[Slot]) -> Iterator[Slot]:
    by_key = {pair[0].key: pair for pair in self.slots}
    # Of one variable of the port that is several of tf1, all have its slot's key.
    together = {(slot.key, slot.variable): slot for slot in self._slots_of_groups(held)}
    for slot in like:
      found = by_key.get(slot.key)
      value = None if found is None else held.get(found[1])
      group = together.get((slot.key, slot.variable))
      if group is not None and group.value.shape == slot.value.shape:
        yield dataclasses.replace(slot, value=group.value)
      else:
        yield slot if value is None else slot_with(self.port, slot, value)

  def _slots_of_groups(self, held: Mapping[str, np.ndarray]) -> tuple[Slot, ...]:
    """Returns the slots of several variables that are shown together, where the step has all."""
    apart = [pair for pair in self.slots if self.port.layouts.lie_apart(pair[0].variable)]
    lacking = {slot.role for slot, name in apart if name not in held}
    known = [(slot, held[name]) for slot, name in apart if slot.role not in lacking]
    return shown_slots(self.port, known)

  def _gradients(
    self, target: Callable[[str], str], values: _Values, like: tuple[TensorRecord, ...]
  ) -> tuple[TensorRecord, ...]:
    """Returns the gradients that the graph shows, as tf1 has the variables."""
    layouts, wanted = self.port.layouts, {record.name for record in like}
    found = []
    for variable in self.port.variables():
      own = variable_name(variable)
      known = values.get(target(self.names.of_variable(own)))
      if known is None:
        continue
      rows, *indices = known
      shape = tuple(size or 0 for size in static_shape(variable.shape))
      dense = side.dense_gradient(rows, indices[0], shape) if indices else rows
      # A clipping takes the norm of the rows as they are.
      slices = Slices(len(rows), norm(rows)) if indices else None
      found.append(TensorRecord(own, layouts.to_tf1(own, dense, False), slices))
    return tuple(record for record in self.port.gradients(found) if record.name in wanted)
