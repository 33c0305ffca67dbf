"""Both sides' training step as graphs, to look for the first divergence in."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.records.training import Slot, TrainingRun, TrainingStep
from tf2verify.sides.graphs.rewriting.settled_numbers import without_partner
from tf2verify.sides.graphs.rewriting.without_state import WrittenOtherwise
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import (
  StepGraph,
  numbers_by_count,
  step_run,
  update_target,
)
from tf2verify.sides.optimizers.made_lines import MadeLines
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.graphs.edited_step import EditableStep
from tf2verify.sides.tf2.graphs.step_tracing import SharedNames
from tf2verify.sides.tf2.steps import MakesStep
from tf2verify.sides.tf2.steps_again import Tf2StepsAgain
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.comparison.proof.proving import TOO_LARGE
from tf2verify.stages.stage import CaseUnderTest, EditedRuns, Inspection
from tf2verify.stages.training.graphs.distinct_starts import distinct_values, from_values
from tf2verify.stages.training.graphs.edited_steps import EditedSteps, StepJudge
from tf2verify.stages.training.steps.quantities import (
  CAUSAL_ORDER,
  GLOBAL_STEP,
  LEARNING_RATE,
  Steps,
  step_name,
)
from tf2verify.stages.training.steps.resets import Held

_SHADOW = 'shadow'
# Rate and count are told by an optimizer, and in no graph.
COMPARED = tuple(known for known in CAUSAL_ORDER if known not in (LEARNING_RATE, GLOBAL_STEP))


def of_step(
  made: 'StepGraphs', port: TrainingRun, judge: StepJudge | None, held: Mapping[int, Held]
) -> Inspection:
  """Returns a step that differs, both sides from the values of the reference before it.

  Args:
    made: makes its graphs.
    port: all steps that it has taken, with what it tells of itself in each.
    judge: what the stage makes of steps that are taken again; None for no experiments.
    held: what the port was given of tf1 after steps, by their numbers.
  """

  def edited(tf1: GraphRun) -> EditedSteps:
    assert judge is not None
    return EditedSteps(made, made.number, tf1, port, judge, held)

  known = None if judge is None else EditedRuns(edited, COMPARED, told=(LEARNING_RATE,))
  name = step_name(made.number)
  return Inspection(
    name, 'the training step of the port', made.distinct_sides, known, made.guessed_targets
  )


class StepGraphs:
  """Makes graphs of steps.

  Attributes:
    case: the case.
    number: of the step that is looked into, from 1.
  """

  def __init__(
    self,
    case: CaseUnderTest,
    runs: tuple[RunSpec, RunSpec],
    steps: Steps,
    number: int,
    keeps: bool = False,
    guesses: bool = False,
    given: Sequence[TrainingStep] = (),
  ) -> None:
    """Pairs what both sides keep, by its values after a step.

    Args:
      case: the case.
      runs: what both sides were given, tf1 before tf2.
      steps: taken so far, with the arrays of this one.
      number: of the step, from 1.
      keeps: whether traces are kept, each with a layer: experiments take all steps again.
      guesses: whether slots are pairs of which no number says so, for a search: a mistake may be
        why. What is told of pairs stays with those that are sure.
      given: steps of tf1 whose gradients those of the port get; none for its own.
    """
    self._given = given
    self.case = case
    self._runs = runs
    self.number = number
    guessed = steps.undecided_slots() if guesses else []
    self._tf1_names, self._slots = _shared_slots(steps, number, guessed)
    self._guessed = {shared for one, _ in guessed if (shared := self._tf1_names.get(one.name))}
    self._variables = {tf2: tf1 for tf1, tf2 in steps.names}
    # The last step of the reference that was asked for, by its number.
    self._of_tf1: tuple[int, StepGraph] | None = None
    self._keeps = keeps
    self._traces: dict[int, MakesStep] = {}
    # By the number of the step that is next: steps that were traced up to there, and not taken.
    self._under_way: dict[int, tuple[Tf2StepsAgain, MadeLines]] = {}
    self._own: dict[int, EditableStep] = {}
    self._distinct: dict[str, np.ndarray] | None = None  # None until they were looked for

  @property
  def are_left_out(self) -> bool:
    """Whether the graphs of the case are too large to be looked into, or are not to be."""
    return self.case.declaration.relate_graphs is False or TOO_LARGE in self.case.remembered

  def guessing(self, steps: Steps) -> 'StepGraphs':
    """Returns the same with slots as pairs of which no number says so; itself without any."""
    if not steps.undecided_slots():
      return self
    known = self.case, self._runs, steps, self.number, self._keeps
    return StepGraphs(*known, guesses=True, given=self._given)

  def sides(self) -> tuple[GraphRun, GraphRun]:
    """Returns both sides of the step that differs, from tf1's values before it."""
    reference = self.of_tf1()
    return self.runs(reference, self.of_tf2(reference, self.number))

  def distinct_sides(self) -> tuple[GraphRun, GraphRun]:
    """Returns both sides of it, from values that tell its quantities apart, see there."""
    reference = self.of_tf1()
    try:
      step = self.looked_at(self.number)
    except WrittenOtherwise:
      return self.sides()
    tf1 = from_values(reference, self._distinct or {})
    return self.runs(tf1, step.step, shows_choices=True)

  @property
  def guessed_targets(self) -> tuple[str, ...]:
    """What graphs call the slots after the step that are pairs for a search only."""
    return tuple(map(update_target, sorted(self._guessed)))

  @property
  def is_moved(self) -> bool:
    """Whether the step that is looked into starts from other values than the one of the stage."""
    return bool(self._distinct)

  def of_tf1(self) -> StepGraph:
    """Returns the step of the reference as it is built."""
    return self.step_of_tf1(self.number)

  def of_tf2(self, reference: StepGraph, number: int) -> StepGraph:
    """Returns a step of the port as it is traced, from the values of that of the reference."""
    return self._traced(number)(_values(reference)).step

  def runs(
    self,
    tf1: StepGraph,
    tf2: StepGraph,
    shows_choices: bool = False,
    shows_decisions: bool = False,
  ) -> tuple[GraphRun, GraphRun]:
    """Returns runs of both, to be asked for any tensor; see `step_run`.

    Raises:
      NotApplicable: a variable of the reference is written in a way without formula.
      NotTraceable: one of the port is.
    """
    try:
      one = step_run(_settled(tf1, tf2), shows_choices, shows_decisions)
    except WrittenOtherwise as error:
      raise NotApplicable(f'the train op of tf1 is not examined: {error}') from error
    try:
      return one, step_run(tf2, shows_choices, shows_decisions)
    except WrittenOtherwise as error:
      one.close()
      raise NotTraceable(str(error)) from error

  def looked_at(self, number: int) -> EditableStep:
    """Returns a step of the port from tf1's values before it, as far as both sides share them.

    The one that differs starts from distinct values.

    Raises:
      WrittenOtherwise: tf1 writes a variable in a way that cannot be taken apart.
    """
    reference = self.step_of_tf1(number)
    before = _values(reference)
    step = self._traced(number)(before)
    if number != self.number:
      return step.starting_from_tf1(before)  # its own may be those of a mistake before
    if self._distinct is None:
      # Numbers that Python has read are those of the values that the step starts from.
      is_free = not step.step.numbers_read
      self._distinct = distinct_values(reference, step, self._guessed) if is_free else {}
    return step.starting_from_tf1(self._distinct)

  def own(self, number: int) -> EditableStep:
    """Returns a step of the port from its own values; on the graph of the one that differs.

    On its own graph where it is another one.
    """
    if number not in self._own:
      self._own[number] = self._of_port(number)
    return self._own[number]

  def _of_port(self, number: int) -> EditableStep:
    if number == self.number:
      return self._traced(number)({})
    self.own(self.number)  # on whose graph others are to be
    step = self._traced_next(number)
    found = None if step is None else self._on_known_graph(step)
    if found is not None:
      return found
    step = self._traced(number)({})
    return self._on_known_graph(step) or step

  def _on_known_graph(self, step: EditableStep) -> EditableStep | None:
    """Returns a step on the graph of another one; None where it has one of its own."""
    for known in self._own.values():
      moved = step.on_graph_of(known)
      if moved.is_on_graph_of(known):
        return moved
    return None

  def reference(self, number: int) -> GraphRun:
    """Returns a step of the reference."""
    port = self.looked_at(number).step
    return step_run(_settled(self.step_of_tf1(number), port), shows_choices=True)

  def step_of_tf1(self, number: int) -> StepGraph:
    """Returns a step of the reference as it is built, by its number."""
    if self._of_tf1 is None or self._of_tf1[0] != number:
      training, names = self.case.tf1_training, self._tf1_names
      self._of_tf1 = number, training.inspectable_step(self._runs[0], number, names)
    return self._of_tf1[1]

  def _traced(self, number: int) -> MakesStep:
    if number in self._traces:
      return self._traces[number]
    made = MadeLines()
    with made.recording():
      again = self.case.tf2_training.begin_steps_again(self._runs[1], number, None)
    for before in range(1, number):
      self._give(again, before)
      again.advance()
    self._give(again, number, traced=True)
    found = again.traced(self._names, made)
    if self._keeps:
      self._traces[number] = found
      self._under_way[number + 1] = again, made
    return found

  def _traced_next(self, number: int) -> EditableStep | None:
    """Returns a step traced after others, none of which was taken; None where it cannot be.

    That saves a layer and the steps before. Python counts in them as in steps that are taken.
    """
    if number not in self._under_way:
      return None
    again, made = self._under_way.pop(number)
    self._give(again, number, traced=True)
    try:
      found = again.traced(self._names, made)
      self._under_way[number + 1] = again, made
      step = found({})
    except NotTraceable:
      return None
    # Numbers that Python has read are those before a step that was not taken.
    return None if step.step.numbers_read else step

  def _give(self, again: Tf2StepsAgain, number: int, traced: bool = False) -> None:
    """Gives the next step its gradients, where they are those of tf1."""
    if self._given:
      pairs = dict(self.case.alignment().pairs)
      again.give_gradients(pairs, self._given[number - 1], traced)

  @property
  def _names(self) -> SharedNames:
    return SharedNames(self._variables, self._slots, {})


def _settled(tf1: StepGraph, tf2: StepGraph) -> StepGraph:
  """Returns a step of the reference with numbers where the port's Python has read its count."""
  if not any(number.of_counts for number in tf2.numbers_read):
    return tf1
  try:
    numbers = without_partner(numbers_by_count(tf1), numbers_by_count(tf2))
  except WrittenOtherwise:
    return tf1
  return dataclasses.replace(tf1, settled=numbers)


def _values(step: StepGraph) -> dict[str, np.ndarray]:
  return {known.name: known.value for known in step.variables.values()}


def _shared_slots(
  steps: Steps, number: int, guessed: Sequence[tuple[Slot, Slot]] = ()
) -> tuple[dict[str, str], dict[str, str]]:
  """Returns what both sides call what optimizers and averages keep, by each side's own names.

  Args:
    steps: taken so far.
    number: of the step, from 1.
    guessed: pairs besides those that the numbers show.
  """
  one, other = steps.tf1.steps[number - 1], steps.tf2.steps[number - 1]
  model = {tf2: tf1 for tf1, tf2 in steps.names}
  by_value = {id(slot.value): slot.name for slot in one.slots}
  # Of several variables that are shown as one, none has the slot that tf1 has.
  named = {id(slot.value): slot.key for slot in other.slots if not slot.of_group}
  tf1: list[tuple[str, str]] = []
  tf2: list[tuple[str, str]] = []
  for pair in steps.slots(number).pairs:
    # What is kept in another unit, or only means the same after the step, is no pair before it.
    if id(pair.tf2) in named and id(pair.tf1) in by_value:
      shared = f'{pair.role} of {pair.variable}' if pair.variable else pair.role
      tf1.append((by_value[id(pair.tf1)], shared))
      tf2.append((named[id(pair.tf2)], shared))
  tf1 += [(ours.name, f'{ours.role} of {ours.variable}') for ours, _ in guessed]
  tf2 += [(theirs.key, f'{ours.role} of {ours.variable}') for ours, theirs in guessed]
  tf1 += [(s.name, f'{_SHADOW} of {s.variable}') for s in one.slots if s.role == _SHADOW]
  shadows = [slot for slot in other.slots if slot.role == _SHADOW and not slot.of_group]
  owners = [model.get(slot.variable, slot.variable) for slot in shadows]
  tf2 += [(named[id(s.value)], f'{_SHADOW} of {o}') for s, o in zip(shadows, owners, strict=True)]
  return _unambiguous(tf1), _unambiguous(tf2)


def _unambiguous(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
  """Returns names by names, without those that several variables have."""
  known: Mapping[str, str] = dict(pairs)
  counts = Counter(name for name, _ in set(pairs)), Counter(known.values())
  return {
    name: shared for name, shared in known.items() if counts[0][name] == counts[1][shared] == 1
  }
