"""The runs of a failed stage made again, with edits of the port's graph."""

import dataclasses
import functools
import math
import time
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.bench import Judged
from tf2verify.diagnosis.divergence.sources import InspectableRun
from tf2verify.numerics.relayout import agreement_as_held
from tf2verify.records.difference import Difference
from tf2verify.records.observation import Observation
from tf2verify.records.op_graph import TensorKey
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.graphs import repairs as editing
from tf2verify.sides.graphs.repairs import CannotRepair, Repair, Transplant
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.process import randomness
from tf2verify.sides.side import FilledRun
from tf2verify.sides.tf2.repaired import repaired_run, target_values
from tf2verify.sides.tf2.tracing import NotTraceable, TracedPort
from tf2verify.stages.comparison.reruns import Again, repeated, rerun_of
from tf2verify.stages.comparison.traced_port import TracedComparison
from tf2verify.stages.failed_stage import traced_port
from tf2verify.stages.passes.zero_randomness import case_fill, constant_fill
from tf2verify.stages.stage import CaseUnderTest

_OUTPUT, _LOSS, _STATE = 'output', 'regularization loss', 'state after the call'
_TOTAL = '(total)'
# What a stage compares of a run of the forward pass.
_COMPARED = {'zero_randomness': (_OUTPUT, _LOSS), 'seeded_constant': (_OUTPUT, _LOSS, _STATE)}
# An edit may let a loop run for ever.
_RUN_SECONDS = 60


class StageBench:
  """The runs of a failed stage, see `diagnosis.bench.Bench`.

  The layer of the case is traced, not called; its variables are those of the graph.
  """

  def __init__(
    self,
    case: CaseUnderTest,
    stage: str,
    differences: Sequence[Difference],
    failed: FilledRun,
    sides: tuple[GraphRun, TracedPort],
    seconds: float,
  ) -> None:
    """Prepares; runs are made when they are asked for.

    Args:
      case: both sides.
      stage: the failed one.
      differences: what it has found.
      failed: the first run that shows a difference, by tf1 names.
      sides: both sides of that run; the bench closes neither.
      seconds: how long experiments may take.
    """
    self._case = case
    self._stage = stage
    self._differences = differences
    self._failed = failed
    self._tf1, self._port = sides
    self._until = time.perf_counter() + seconds
    self._opened: list[GraphRun] = []
    self._as_it_is: Judged | None = None

  def why_not(self) -> str:
    """Returns why no experiment can be made; '' where it can."""
    try:
      first = self._runs[0]
      if any(name.endswith(')') and ' (' in name for name in first.updates()):
        return 'a variable is written more than once in a call'
      found = self.judged([]).left
    except (CannotRepair, NotTraceable) as error:
      return f'the port does not run again as a graph: {error}'[:200]
    names, compared = {run.name for run in self._runs}, _COMPARED[self._stage]
    here = {
      (d.quantity, d.tf1_subject, d.run)
      for d in self._differences
      if d.run in names and d.quantity in compared and not d.may_be_rounding
    }
    if not here & found:
      return 'traced as a graph, the port does not show the difference'
    if here - found:
      quantity, subject, _ = min(here - found)
      return f'{quantity} {subject} does not differ in the graph of the port'
    return ''

  @functools.cached_property
  def _outside(self) -> frozenset[tuple[str, str, str]]:
    """What differs in the stage that no run here shows, with or without an edit."""
    names = {run.name for run in self._runs}
    compared = _COMPARED[self._stage]
    return frozenset(
      (d.quantity, d.tf1_subject, d.run)
      for d in self._differences
      if not (d.run in names and d.quantity in compared) and not d.may_be_rounding
    )

  def run(self, repairs: Sequence[Repair]) -> InspectableRun:
    """Returns the port's first run that shows a difference, with edits."""
    return self._opened_run(self._runs[0].repaired(repairs))

  def judged(self, repairs: Sequence[Repair]) -> Judged:
    """Compares all runs of the stage, with edits of the port."""
    if not repairs and self._as_it_is is not None:
      return self._as_it_is
    left, shares = set(self._outside), list[float]()
    for one in self._runs:
      found, apart = one.judged(repairs)
      left |= found
      shares += apart
    distance = sum(min(share, 1.0) if share == share else 1.0 for share in shares)
    judged = Judged(frozenset(left), len(shares), max(shares, default=0.0), distance)
    if not repairs:
      self._as_it_is = judged
    return judged

  def transplant(
    self,
    tf2: InspectableRun,
    region: tuple[Sequence[int], int],
    partner: int,
    given: Mapping[TensorKey, TensorKey],
  ) -> Transplant:
    """Returns operations of tf1 to put into the port."""
    graphs = self._tf1.op_graph, tf2.op_graph
    return editing.transplant(self._tf1.nodes(), *graphs, region, partner, given)

  def is_over(self) -> bool:
    """Returns whether the time for experiments is used up."""
    return time.perf_counter() > self._until

  def close(self) -> None:
    """Lets go of the sessions."""
    for run in self._opened:
      run.close()
    self._opened.clear()

  def _opened_run(self, run: GraphRun) -> GraphRun:
    self._opened.append(run)
    return run

  @functools.cached_property
  def _runs(self) -> list['_BenchRun']:
    """The stage's runs, the one that failed first."""
    compared = _COMPARED[self._stage]
    losses_of = {d.run for d in self._differences if d.quantity == _LOSS}
    first = _run_of(
      self._case, self._stage, self._failed, compared, losses_of, (self._tf1, self._port)
    )
    others = [
      _run_of(self._case, self._stage, run, compared, losses_of)
      for run in _others(self._case, self._stage, self._failed)
    ]
    self._opened += [other.tf1 for other in others]
    return [first, *others]


@dataclasses.dataclass(frozen=True, eq=False)
class _BenchRun:
  """One run of the stage.

  Attributes:
    name: as differences name it.
    tf1: the reference.
    port: the port, traced.
    comparison: with the reference's run, as the stage does it.
    compared: the quantities that the stage compares.
    is_other: whether edits are made for another run, and applied to this one as well.
    losses_agree: whether the stage found no regularization loss that differs in this run.
  """

  name: str
  tf1: GraphRun
  port: TracedPort
  comparison: TracedComparison
  compared: tuple[str, ...]
  is_other: bool
  losses_agree: bool

  def updates(self) -> list[str]:
    """Returns the names of what variables are updated with."""
    targets = self.tf1.op_graph.targets()
    return [name for name in targets if name.startswith('update of ')]

  def repaired(self, repairs: Sequence[Repair]) -> GraphRun:
    """Returns the port's run with edits."""
    return repaired_run(self.port, repairs, self._given(repairs), self.is_other)

  def judged(self, repairs: Sequence[Repair]) -> tuple[set[tuple[str, str, str]], list[float]]:
    """Returns what differs with edits, and how far each pair of tensors is apart."""
    run = self.repaired(repairs)
    try:
      values, graph = target_values(run, _RUN_SECONDS), run.op_graph
    finally:
      run.close()
    found = self.comparison.differences(values, graph)
    left = {(d.quantity, d.tf1_subject, self.name) for d in found if d.quantity in self.compared}
    # The comparison takes what is not in the graph to be as in the reference.
    outputs = self.comparison.reference.outputs
    missing = [r.name for r in outputs if r.value is not None and f'output {r.name}' not in values]
    left |= {(_OUTPUT, name, self.name) for name in missing}
    if self.losses_agree and self._has_the_same_losses(values):
      # The stage found that they agree, in total, say; the edits have not changed them.
      left = {key for key in left if key[0] != _LOSS}
    if any(quantity == _LOSS for quantity, _, _ in left):
      left.add((_LOSS, _TOTAL, self.name))  # the sum of the others
    return left, self._apart(values)

  def _has_the_same_losses(self, values: Mapping[str, np.ndarray]) -> bool:
    """Returns whether edits leave the port's regularization losses as they are, bit by bit."""
    before = {name: one for name, one in self._as_it_is.items() if name.startswith(_LOSS)}
    now = {name: one for name, one in values.items() if name.startswith(_LOSS)}
    return before.keys() == now.keys() and all(
      one.tobytes() == now[name].tobytes() for name, one in before.items()
    )

  @functools.cached_property
  def _as_it_is(self) -> dict[str, np.ndarray]:
    run = repaired_run(self.port, [], {})
    try:
      return target_values(run, _RUN_SECONDS)
    finally:
      run.close()

  def _apart(self, values: Mapping[str, np.ndarray]) -> list[float]:
    wanted = self._reference_values
    shares = []
    for name in wanted.keys() & values.keys():
      if name.startswith('update of ') and _STATE not in self.compared:
        continue
      found, _ = agreement_as_held(wanted[name], values[name])
      shares.append(found.relative if not math.isnan(found.relative) else math.inf)
    return shares

  @functools.cached_property
  def _reference_values(self) -> dict[str, np.ndarray]:
    return target_values(self.tf1)

  def _given(self, repairs: Sequence[Repair]) -> dict[str, np.ndarray]:
    known = self.tf1.nodes()
    given = [value for repair in repairs for value in repair.values]
    given = [value for value in given if value.tf1.rpartition(':')[0] in known]
    fetched = self.tf1.fetch([value.tf1 for value in given])
    return {value.tf2: value.as_tf2(array) for value, array in zip(given, fetched, strict=True)}


def _run_of(
  case: CaseUnderTest,
  stage: str,
  run: FilledRun,
  compared: tuple[str, ...],
  losses_of: Collection[str],
  sides: tuple[GraphRun, TracedPort] | None = None,
) -> _BenchRun:
  reference, again = _reference(case, stage, run)
  is_other = sides is None
  if sides is None:
    sides = case.tf1.inspectable(run), traced_port(case, run)
  comparison = TracedComparison(case, reference, rerun_of(functools.cache(again)))
  return _BenchRun(
    reference.run, *sides, comparison, compared, is_other, reference.run not in losses_of
  )


def _reference(case: CaseUnderTest, stage: str, run: FilledRun) -> tuple[Observation, Again]:
  """Returns the reference's run as the stage made it, and what repeats it."""
  if stage == 'seeded_constant':
    seeded = case.tf1.prepare_seeded(randomness.CONSTANT, run.training)
    return seeded(), lambda mover, _: seeded(mover, again=True)
  run_tf1 = case.tf1.prepare_filled([run])
  (reference,) = run_tf1()
  return reference, repeated(run_tf1, run)


def _others(case: CaseUnderTest, stage: str, failed: FilledRun) -> list[FilledRun]:
  """Returns the other runs that the stage makes."""
  names = failed.tf1_names
  if stage == 'seeded_constant':
    found = []
    for training in case.declaration.training_modes:
      if training != failed.training:
        mode = randomness.CONSTANT
        reference = case.tf1.prepare_seeded(mode, training)()
        fill = case.tf1.initial_fill(mode, training, reference.initial_values)
        found.append(FilledRun(case.inputs, training, fill, names))
    return found
  varied, _ = case_inputs.varied_inputs(case.inputs)
  runs = [
    FilledRun(varied, failed.training, case_fill(case), names),
    FilledRun(case.inputs, failed.training, constant_fill(case), names),
  ]
  return [run for run in runs if run.description != failed.description]
