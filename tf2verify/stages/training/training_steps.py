"""Rung 8: training goes the same way."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.errors import NotApplicable
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Aspect, Difference, ErrorSummary
from tf2verify.records.proven import Proven
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import TrainingRun
from tf2verify.relation.shadows import SHADOW
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf1.reference_steps import PreparedSteps
from tf2verify.stages.comparison import first_nan
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.rounding import Judge
from tf2verify.stages.comparison.zero_by_zero import leave_out
from tf2verify.stages.stage import CaseUnderTest, Findings, Inspection, Stage
from tf2verify.stages.training.counted_units import CountedUnits
from tf2verify.stages.training.further_steps.later_counts import compare_later_counts
from tf2verify.stages.training.further_steps.later_steps import Later, compare_later
from tf2verify.stages.training.further_steps.other_gradients import other_gradients
from tf2verify.stages.training.further_steps.other_rows import QUANTITY, OtherRows, compare_rows
from tf2verify.stages.training.further_steps.small_gradients import small_gradients
from tf2verify.stages.training.further_steps.untaken_branches import untaken_branches
from tf2verify.stages.training.graphs.edited_steps import StepJudge
from tf2verify.stages.training.graphs.step_graphs import COMPARED, StepGraphs, of_step
from tf2verify.stages.training.graphs.step_proof import (
  RelatedStep,
  relate,
  representative,
  to_relate,
)
from tf2verify.stages.training.graphs.updates_alone import compare_updates
from tf2verify.stages.training.rounding import steps_here
from tf2verify.stages.training.rounding.gradients import RoundingWatch
from tf2verify.stages.training.rounding.perturbed_runs import PerturbedRuns
from tf2verify.stages.training.rounding.unread_gradients import UnreadGradients
from tf2verify.stages.training.rounding.wide_steps import wide_steps
from tf2verify.stages.training.scaled_inside import (
  PROPORTIONAL,
  inside_notes,
  scaled_inside,
  without,
)
from tf2verify.stages.training.scaled_slots import ScaledSlots
from tf2verify.stages.training.slot_pairs import check_slot_names, slots_alone
from tf2verify.stages.training.steps import quantities
from tf2verify.stages.training.steps.both_sides import BothSides
from tf2verify.stages.training.steps.clipping_trials import ClippingWatch
from tf2verify.stages.training.steps.notes import (
  UNMOVED,
  IdleUpdates,
  blind_spots,
  idle_updates,
  is_within_noise,
  settings_apart,
  step_curves,
  step_extent,
  step_notes,
  step_table,
)
from tf2verify.stages.training.steps.prepared_runs import prepared_runs
from tf2verify.stages.training.steps.quantities import QuantityPair, Steps, step_name, tolerance_for
from tf2verify.stages.training.turns import Turns

# Without a number in one of them, averages and counters are all that a step shows.
_NEEDS_NUMBERS = ((quantities.GRADIENT, ''), (quantities.APPLIED, ''), (quantities.UPDATE, ''))
# What is to be compared of a pair; None for nothing.
_Left = Callable[[QuantityPair], QuantityPair | None]


class TrainingSteps(Stage):
  """Takes training steps on both sides."""

  name = 'training_steps'
  needs = ('gradients', 'loss')
  tried_when_blocked = stands_alone = True
  proves = (
    'after each of several training steps, losses, variables and the state of the optimizers agree'
  )
  diagnosed = False

  def check_alone(self, case: CaseUnderTest) -> Findings:
    return compare_updates(case)

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares step by step, at distinct variable values and with aligned random ops.

    Stops at the first step that differs: what follows are consequences. Of a variable
    its change since the start is compared, which is small compared to its value.
    """
    runs = prepared_runs(case)
    count, run_tf1 = runs.count, runs.run_tf1
    with run_tf1.begin(None) as reference:
      both = runs.both_sides(reference)
      watch = RoundingWatch(
        lambda perturber: run_tf1.begin(perturber, again=True),
        lambda perturber: case.tf2_training.begin_steps_again(runs.tf2_run, count, perturber),
        dict(case.alignment().pairs),
        count,
      )
      sides = runs.tf1_run, runs.tf2_run
      return _Judge(case, both, run_tf1, watch, sides, count).findings(runs.replaced)


class _Judge:
  """Compares two runs step by step."""

  def __init__(
    self,
    case: CaseUnderTest,
    both: BothSides,
    run_tf1: PreparedSteps,
    watch: RoundingWatch,
    runs: tuple[RunSpec, RunSpec],
    count: int,
  ) -> None:
    self._case = case
    self._both = both
    self._count = count
    self._moved = PerturbedRuns(run_tf1, count)
    self._rounding = watch
    self._runs = runs
    self._unread = UnreadGradients(case, runs[0])
    self._idle = IdleUpdates()
    self._clipping = ClippingWatch()
    self._turns = Turns()
    self._variables: dict[TensorKey, str] = {}
    self._inside: frozenset[str] = frozenset()
    self._scaled = ScaledSlots()
    self._units = CountedUnits(both)
    self._extents: list[ErrorSummary] = []
    self._related: RelatedStep | None = None
    self._made: StepGraphs | None = None
    self._steps = self._looked_at = both.take_next()
    check_slot_names(self._steps, case.declaration.slot_names)
    self._names = dict(self._steps.names)

  def findings(self, replaced: Sequence[str]) -> Findings:
    """Returns what the stage found."""
    comparison = Comparison()
    comparison.telling.needs_numbers = _NEEDS_NUMBERS
    parted, differing = self._parted(comparison)
    case, run = self._case, self._runs[0]
    first_nan.explain(comparison, lambda: case.tf1_training.inspectable_losses(run))
    self._looked_at, whose = self._steps, self._whose(parted)
    for number in range(parted + 1, self._count + 1 if parted else 0):
      differing[number] = self._consequences(number, parted)
    alone = [*slots_alone(self._looked_at), *self._scaled.told(parted)]
    comparison.blind_spots += self._units.told if parted else [*self._units.told, *alone]
    rows, later, left = OtherRows(), Later(), self._rounding.left
    if not parted:
      later = compare_later(self._both, left, lambda s, n: self._causes_of(s, n, ()), comparison)
      # Before a step on other examples: what a batch norm makes of one example alone is rounding.
      small = small_gradients(self._both, left)
      rows = compare_rows(case, self._both, run.inputs, left, comparison, small)
      comparison.blind_spots += small
    comparison.blind_spots += blind_spots(self._looked_at, later.of_unknown_rates)
    known = self._clipping, comparison, self._inside
    tried = [] if parted else self._both.try_clipping(*known, rows.change)
    comparison.blind_spots += rows.blind_spots(comparison.differences)
    tried += self._rounding.notes
    counts, proven = ((), None) if parted else self._proven(comparison)
    later = later.also(counts)
    notes = [*tried, *step_notes(self._looked_at, parted, self._count)]
    notes += [*([whose] if whose else []), *inside_notes(self._inside)]
    notes += [*rows.notes, *(alone if parted else [])]
    if replaced:
      notes.append(f'constant inputs were varied: {", ".join(replaced)}')
    findings = comparison.findings(notes)
    explained, causes = self._explained(findings.differences, parted)
    explained = tuple(
      dataclasses.replace(d, hint=rows.cause if d.quantity == QUANTITY else later.hint(d))
      for d in explained
    )
    reason = self._idle.reason if self._idle.variables else findings.inconclusive
    if not reason and comparison.telling.tells_nothing_of(quantities.UPDATE):
      reason = UNMOVED
    table = step_table(self._steps, differing if parted else {})
    return dataclasses.replace(
      findings,
      differences=explained,
      causes=causes,
      inconclusive=reason,
      tables=(table,),
      curves=step_curves(self._steps),
      extents=tuple(self._extents),
      proven=proven,
      inspection=self._inspection(self._looked_at, parted) if parted else None,
    )

  def _proven(self, comparison: Comparison) -> tuple[tuple[tuple[str, str], ...], Proven | None]:
    """Looks beyond steps that agree; returns causes by run, and what is proven of a step."""
    if self._related is None:
      return (), None
    # Graphs of a large model take as much memory as the steps, which nobody looks at any more.
    steps = self._steps = self._looked_at = self._steps.without_arrays()
    self._both.let_go()
    counts = compare_later_counts(self._related, comparison, steps)
    comparison.blind_spots += untaken_branches(self._related, self._count)
    proven = relate(self._related, comparison, self._count)
    told = settings_apart(steps, proven)
    if not told and not (proven is not None and proven.is_whole):
      told = other_gradients(self._related, proven is not None and bool(proven.differences))
    comparison.blind_spots += told
    return counts, proven

  def _parted(self, comparison: Comparison) -> tuple[int, dict[int, int]]:
    """Compares step by step; returns the first that differs, or 0, and how much each does."""
    differing: dict[int, int] = {}
    with comparison.unless_drawn_in_a_loop(self._steps.tf1.without_arrays()) as part:
      for number in range(1, self._count + 1):
        if number > 1:
          if self._rounding.moved:
            self._rounding.holds()
          self._both.hold(self._rounding.moved)
          self._steps = self._looked_at = self._steps.without_arrays()  # not held any more
          self._steps = self._both.take_next()
        self._idle = idle_updates(self._steps)
        self._clipping.see(self._steps.tf2.steps[-1])
        part.absorb(self._compared(number))
        again = self._moved.rerun(number), self._moved.here(number)
        part.excuse_rounding(self._steps.tf1, *again, further=self._with_64_bits(number))
        leave_out(part, lambda: self._case.tf1.inspectable(self._runs[0]), step_name(number))
        self._scaled.leave_out(part, number, self._steps.tf1.steps[number - 1].variables)
        differing[number] = len(part.differences)
        self._extents.append(step_extent(part, number))
        if part.differences:
          return number, differing | self._scaled.counts
        if number == representative(self._count):
          self._related = to_relate(self._graphs(self._steps, number), self._steps)
    return 0, differing

  def _with_64_bits(self, number: int) -> Judge:
    steps = self._steps

    def graphs() -> tuple[GraphRun, GraphRun]:
      return self._graphs(steps, number).sides()

    return wide_steps(steps, number, self._variables, graphs)

  def _graphs(self, steps: Steps, number: int) -> StepGraphs:
    """Returns what makes graphs of a step, given the arrays after it; once for the last one."""
    if self._made is None or self._made.number != number:
      keeps = self._moved.are_kept(steps.tf1)
      self._made = StepGraphs(self._case, self._runs, steps, number, keeps)
    return self._made

  def _inspection(self, looked_at: Steps, parted: int) -> Inspection:
    port = self._steps.tf2  # of each step what is told of it; of the one that differs, arrays
    steps = [looked_at.tf2.steps[n] if n == parted - 1 else s for n, s in enumerate(port.steps)]
    port = dataclasses.replace(port, steps=tuple(steps))
    judge, held = None, dict(self._both.held)
    if self._moved.are_kept(looked_at.tf1):
      where = self._rounding.elements(parted)
      judge = StepJudge(
        self._pairs_again,
        lambda run, number: self._compared_again(run, number, where),
        lambda run: self._causes_of(self._beside(run, self._count), parted, ()),
      )
      for step in self._moved.taken().steps if where else ():
        held.setdefault(step.number, self._both.held_after(step, where))
    made = self._graphs(looked_at, parted).guessing(looked_at)
    return of_step(made, port, judge, held)

  def _beside(self, port: TrainingRun, number: int) -> Steps:
    """Returns the first steps of another run of the port beside those of the reference."""
    tf1 = self._moved.taken()
    first = [dataclasses.replace(run, steps=run.steps[:number]) for run in (tf1, port)]
    return self._both.beside(first[0], first[1])

  def _pairs_again(self, port: TrainingRun, number: int) -> Sequence[QuantityPair]:
    pairs = self._pairs(self._beside(port, number), number)
    return [pair for pair in pairs if pair.quantity in COMPARED]

  def _pairs(self, steps: Steps, number: int) -> list[QuantityPair]:
    idle = self._idle.variables
    known = self._units.left(self._unread.left(steps.pairs(number)))
    return [p for p in known if p.variable not in idle]

  def _compared_again(
    self, port: TrainingRun, number: int, where: Mapping[str, np.ndarray]
  ) -> Sequence[Difference]:
    """Returns what differs in a step of another run of the port, but for some elements."""
    part = self._compare(self._pairs_again(port, number), number, lambda p: p.without(where))
    part.excuse_rounding(self._moved.taken(), self._moved.rerun(number), self._moved.here(number))
    ScaledSlots().leave_out(part, number, self._steps.tf1.steps[number - 1].variables)
    return part.differences

  def _whose(self, parted: int) -> str:
    """Returns whose the difference from a recorded reference is; '' where that is not told."""
    here = self._moved.here(parted) if parted else None
    if here is None:
      return ''
    pairs = self._pairs(self._steps, parted)
    try:
      values = here(frozenset(pair.key for pair in pairs))
    except NotApplicable as reason:
      return str(reason)
    tolerances = self._case.training_tolerance
    return steps_here.said_of(pairs, values, lambda pair: tolerance_for(pair, tolerances))

  def _consequences(self, number: int, parted: int) -> int:
    """Takes a step beyond the one that parts; returns how many tensors differ then."""
    self._steps, scalars = self._both.take_beyond()
    self._turns.see(self._steps, parted)
    part = self._compared(number, looks=False)
    self._steps = scalars
    self._extents.append(step_extent(part, number))
    return len(part.differences)

  def _compared(self, number: int, looks: bool = True) -> Comparison:
    """Compares a step, but for elements whose gradient is rounding alone, if these are looked for.

    That takes all steps again, several times.
    """
    self._rounding.see(self._steps.tf2.steps[-1])
    pairs = self._pairs(self._steps, number)
    found = self._compare(pairs, number)
    slots = self._steps.tf1.steps[number - 1].slots
    rules = {record.rule for record in self._steps.tf1.optimizers}
    keeps = any(slot.role != SHADOW for slot in slots) and not (rules and rules <= PROPORTIONAL)
    if inside := scaled_inside(pairs, found.differences, keeps, self._inside):
      self._inside |= inside
      pairs = without(pairs, inside)
      found = self._compare(pairs, number)
    differing = {d.key for d in found.differences if d.aspect is Aspect.VALUES}
    doubtful = [pair for pair in pairs if self._key(pair, number) in differing]
    if looks and doubtful and self._rounding.look(doubtful, number, pairs):
      return self._compare(pairs, number)
    return found

  def _compare(
    self, pairs: Sequence[QuantityPair], number: int, left: _Left | None = None
  ) -> Comparison:
    comparison, left = Comparison(), left or self._rounding.left
    for pair in pairs:
      key = self._key(pair, number)
      self._variables[key] = pair.variable
      allowed = tolerance_for(pair, self._case.training_tolerance)
      known = left(pair)
      if known is None:
        size = 0 if pair.tf1 is None else pair.tf1.size
        comparison.rounding_alone(key, size)
      else:
        comparison.tensors(key, known.tf1, known.tf2, allowed)
    return comparison

  def _key(self, pair: QuantityPair, number: int) -> TensorKey:
    port = self._names.get(pair.variable, pair.variable)
    names_port = '' if port == pair.variable else port
    return TensorKey(pair.quantity, pair.subject, step_name(number), names_port)

  def _explained(
    self, found: Sequence[Difference], parted: int
  ) -> tuple[tuple[Difference, ...], tuple[Cause, ...]]:
    """Sorts differences by cause and effect, and names the causes that the numbers show."""
    if not parted:
      return tuple(found), ()
    order = quantities.CAUSAL_ORDER
    ordered = sorted(found, key=lambda known: (known.may_be_rounding, order.index(known.quantity)))
    causes = self._causes_of(self._steps, parted, found)
    return tuple(self._with_cause(known, causes) for known in ordered), causes

  def _causes_of(self, steps: Steps, parted: int, found: Sequence[Difference]) -> tuple[Cause, ...]:
    rounding = {
      self._variables.get(known.key, '')
      for known in found
      if known.quantity == quantities.GRADIENT and is_within_noise(known)
    }
    evidence = training_evidence(
      steps.tf1,
      steps.tf2,
      steps.names,
      parted,
      rounding,
      self._both.clip_beyond,
      self._rounding.elements(parted),
      self._both.rates_if_known(),
      self._turns.moved,
      self._both.rates_by_count,
      self._both.fitting_arguments,
    )
    return tuple(causes_of(evidence))

  def _with_cause(self, difference: Difference, causes: Sequence[Cause]) -> Difference:
    """Returns a difference with the first cause that it follows from as its hint."""
    variable = self._variables.get(difference.key, '')
    about = quantities.ABOUT[difference.quantity]
    # What is about some variables alone tells more of them than what is about all.
    named = sorted(causes, key=lambda cause: variable not in cause.variables)
    hints = (cause.text for cause in named if cause.accounts_for(about, variable))
    return dataclasses.replace(difference, hint=next(hints, difference.hint))
