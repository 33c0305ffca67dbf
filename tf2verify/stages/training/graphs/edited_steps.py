"""The port's training steps, taken again with edits of their graph."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from tf2verify.diagnosis.places.bench import Left, LookedAt
from tf2verify.numerics.agreement import agreement
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Difference
from tf2verify.records.training import TrainingRun, TrainingStep
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.optimizers.state import SlotVariable
from tf2verify.sides.tf2.graphs.edited_step import EditableStep
from tf2verify.sides.tf2.traces.repaired import (
  RepairedRuns,
  given_values,
  repaired_run,
  target_tensors,
)
from tf2verify.stages.training.steps.quantities import QuantityPair, step_name
from tf2verify.stages.training.steps.resets import Held

# An edit may let a loop run for ever.
_RUN_SECONDS = 60
# Of the tensors that a step compares; so many variables at most are passed over.
_LITTLE = 0.03


@dataclasses.dataclass(frozen=True, eq=False)
class StepJudge:
  """What the stage makes of steps of the port.

  Attributes:
    pairs: what both sides tell of a step, given the port's run and the step's number.
    compare: the same, as what differs.
    explain: causes that the numbers of a run show.
  """

  pairs: Callable[[TrainingRun, int], Sequence[QuantityPair]]
  compare: Callable[[TrainingRun, int], Sequence[Difference]]
  explain: Callable[[TrainingRun], Sequence[Cause]]


class MakesSteps(Protocol):
  """Makes graphs of steps, by their numbers."""

  @property
  def is_moved(self) -> bool:
    """Whether the step that is looked into starts from other values than the one of the stage."""

  def own(self, number: int) -> EditableStep:
    """Returns a step of the port from its own values, on one graph with others where it can be."""

  def looked_at(self, number: int) -> EditableStep:
    """Returns a step of the port from tf1's values before it, where these are the same kind."""

  def reference(self, number: int) -> GraphRun:
    """Returns a step of the reference."""


class EditedSteps:
  """All steps of the stage, see `diagnosis.bench.BenchRun`.

  Each starts from what the step before it has left behind, the first one from the port's own
  values. A step that is looked into starts from those of tf1.
  """

  def __init__(
    self,
    graphs: MakesSteps,
    number: int,
    tf1: GraphRun,
    port: TrainingRun,
    judge: StepJudge,
    held: Mapping[int, Held],
  ) -> None:
    """Prepares; a step is traced when it is first asked for.

    Args:
      graphs: makes graphs of steps.
      number: of the step in which the sides differ first, from 1.
      tf1: the reference in that step, as it is looked into.
      port: the port's steps as they were taken; arrays of that step.
      judge: what the stage makes of steps.
      held: what the port was given of tf1 after steps, by their numbers.
    """
    self._held = held
    self._graphs = graphs
    self._number = number
    self._tf1 = tf1
    self._port = port
    self._judge = judge
    self._references = {} if graphs.is_moved else {number: tf1}
    self._traced: dict[int, EditableStep] = {}
    self._from_tf1: dict[int, EditableStep] = {}

  @property
  def names(self) -> frozenset[str]:
    """The steps, as differences name them."""
    return frozenset(step_name(step.number) for step in self._port.steps)

  def why_not(self) -> str:
    """Returns why the port cannot be edited; '' where its graphs take the steps that it takes.

    What the graphs do not show is seen by what differs; here, that they show no more before it.
    """
    early = self._early()
    if not early or self._background:
      return ''
    run, quantity, name = min(early)
    return f'as a graph, the port takes a different {run}: {quantity} {name} differs there'

  def looked_at(self, repairs: Sequence[Repair], left: Left) -> LookedAt:
    """Returns both sides of the first step that is left, from the values of tf1."""
    runs = {run for _, _, run in left}
    names = {step.number: step_name(step.number) for step in self._port.steps}
    number = next((n for n, name in names.items() if name in runs), self._number)
    reference = self._tf1 if number == self._number else self._reference(number)
    if number not in self._from_tf1:
      self._from_tf1[number] = self._graphs.looked_at(number)
    step, given = self._from_tf1[number], given_values(reference, repairs)
    # All steps have the same sizes.
    run = repaired_run(step, repairs, given, {} if number != self._number else None)
    target_tensors(run, _RUN_SECONDS)  # what is given to it may not fit there
    return LookedAt(names[number], reference, run)

  def judged(self, repairs: Sequence[Repair]) -> tuple[Left, list[float]]:
    """Returns what differs in any step with edits, and how far each pair of tensors is apart."""
    left, shares = self._as_it_is if not repairs else self._judged(repairs)
    return frozenset(one for one in left if _owner(one[1]) not in self._background), shares

  def still_fails(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether the step that differs first still does with edits."""
    run = self._taken_with(repairs, self._number)
    found = self._judge.compare(run, self._number)
    return any(_owner(one.tf1_subject) not in self._background for one in found)

  def _early(self) -> list[tuple[str, str, str]]:
    """Returns run, quantity and name of what differs as a graph, and did not as it was taken."""
    before = {step_name(number) for number in range(1, self._number)}
    return [(run, quantity, name) for quantity, name, run in self._as_it_is[0] if run in before]

  @functools.cached_property
  def _background(self) -> frozenset[str]:
    """Variables whose rounding alone a graph does differently, of many; they are passed over.

    A gradient that is zero in exact arithmetic is rounding, and another one in a graph: it differs
    in steps that were found equal, and no edit changes that.
    """
    left, shares = self._as_it_is
    owners = frozenset(_owner(name) for _, _, name in self._early())
    others = [name for _, name, _ in left if _owner(name) not in owners]
    if any(owner.startswith('(') for owner in owners):  # a loss, a rate
      return frozenset()
    is_little = len(owners) <= _LITTLE * len(shares) / len(self._port.steps)
    return owners if others and is_little else frozenset()

  @functools.cached_property
  def _as_it_is(self) -> tuple[Left, list[float]]:
    return self._judged([])

  @functools.cached_property
  def _taken_as_it_is(self) -> TrainingRun:
    return self._taken_with([])

  def _judged(self, repairs: Sequence[Repair]) -> tuple[Left, list[float]]:
    run = self._taken(repairs)
    left: set[tuple[str, str, str]] = set()
    shares: list[float] = []
    for step in run.steps:
      found = self._judge.compare(run, step.number)
      left |= {(d.quantity, d.tf1_subject, d.run) for d in found}
      shares += _shares(self._judge.pairs(run, step.number))
    return frozenset(left), shares

  def causes(self, repairs: Sequence[Repair]) -> Sequence[Cause]:
    """Returns the mistakes that the numbers of the edited steps show."""
    return self._judge.explain(self._taken(repairs))

  def close(self) -> None:
    """Lets go of the references in other steps."""
    for reference in self._references.values():
      if reference is not self._tf1:
        reference.close()

  def _taken(self, repairs: Sequence[Repair]) -> TrainingRun:
    return self._taken_with(repairs) if repairs else self._taken_as_it_is

  def _taken_with(self, repairs: Sequence[Repair], last: int | None = None) -> TrainingRun:
    """Returns the port's steps with edits, all of them or up to the number of one."""
    like = self._port.steps[self._number - 1]
    held: dict[str, np.ndarray] = {}
    slots: dict[object, tuple[SlotVariable, str]] = {}
    steps: list[TrainingStep] = []
    with RepairedRuns(repairs) as runs:
      for known in self._port.steps[:last]:
        step = self._of(known.number).starting_from(held)
        # A step that only adds up gradients leaves the other slots as they are.
        slots |= {pair[0].key: pair for pair in step.slots if pair[1] or pair[0].key not in slots}
        step = dataclasses.replace(step, slots=tuple(slots.values()))
        values = self._values(step, known.number, repairs, runs)
        held |= step.left_behind(values)
        steps.append(step.taken(values, held, _told_as(like, known)))
        held |= step.with_elements(held, self._held.get(known.number, {}))
    return dataclasses.replace(self._port, steps=tuple(steps))

  def _values(
    self, step: EditableStep, number: int, repairs: Sequence[Repair], runs: RepairedRuns
  ) -> Mapping[str, tuple[np.ndarray, ...]]:
    given: dict[str, np.ndarray] = {}
    if any(repair.given for repair in repairs):
      given = given_values(self._reference(number), repairs)
    is_other = not step.is_on_graph_of(self._of(self._number))
    values, _ = runs.targets(step, given, {} if is_other else None, _RUN_SECONDS)
    return values

  def _of(self, number: int) -> EditableStep:
    if number not in self._traced:
      self._traced[number] = self._graphs.own(number)
    return self._traced[number]

  def _reference(self, number: int) -> GraphRun:
    if number not in self._references:
      self._references[number] = self._graphs.reference(number)
    return self._references[number]


def _owner(name: str) -> str:
  """Returns the variable of a quantity: of `velocity of kernel`, `kernel`."""
  return name.rpartition(' of ')[2]


def _told_as(like: TrainingStep, step: TrainingStep) -> TrainingStep:
  """Returns a step with what is told of another one: its number, rate and counts."""
  return TrainingStep(
    step.number,
    like.loss,
    step.learning_rate,
    step.global_step,
    like.gradients,
    like.applied_gradients,
    like.variables,
    like.slots,
    step.further_counts,
  )


def _shares(pairs: Sequence[QuantityPair]) -> list[float]:
  """Returns how far apart quantities are, as shares of tf1's greatest element."""
  both = [(p.tf1, p.tf2) for p in pairs if p.tf1 is not None and p.tf2 is not None]
  return [agreement(one, other).relative for one, other in both]
