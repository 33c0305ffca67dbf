"""The runs of a failed stage made again, with edits of the port's graph."""

import time
from collections.abc import Callable, Collection, Hashable, Sequence

from tf2verify.diagnosis.places.bench import BenchRun, Judged, Left, LookedAt
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Difference
from tf2verify.sides.graphs.edits.contents import content
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import CannotRepair
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.tf2.traces.tracing import NotTraceable, TracedPort
from tf2verify.stages.experiments.forward_runs import COMPARED, ForwardRuns, forward_runs
from tf2verify.stages.experiments.gradient_runs import GRADIENT, GradientRun, gradient_run
from tf2verify.stages.stage import CaseUnderTest, EditedRuns, Findings


class StageBench:
  """The runs of a failed stage, see `diagnosis.bench.Bench`.

  The layer of the case is traced, not called; its variables are those of the graph.
  """

  def __init__(
    self,
    make: Callable[[], Sequence[BenchRun]],
    compared: Collection[str],
    differences: Sequence[Difference],
    seconds: float,
    derives: bool = False,
  ) -> None:
    """Prepares; runs are made when they are asked for.

    Args:
      make: makes them, the one that failed first.
      compared: the quantities that are compared of them.
      differences: what the stage has found.
      seconds: how long experiments may take.
      derives: whether the port's gradients follow from an edit.
    """
    self._make = make
    self._compared = compared
    self._differences = differences
    self._seconds = seconds
    self._until: float | None = None  # not while the sides are looked into
    self._opened: list[GraphRun] = []
    self._made: Sequence[BenchRun] = ()
    # The same edits are asked for again where one of several turns out to be needless, and where
    # another search proposes them again. The error of those that make no graph.
    self._judged: dict[Hashable, Judged | CannotRepair] = {}
    self.derives = derives
    self.proven: Sequence[Repair] = ()

  def why_not(self) -> str:
    """Returns why no experiment can be made; '' where it can."""
    try:
      refused = next((why for run in self._runs if (why := run.why_not())), '')
      if refused:
        return refused
      found = self.judged([]).left
    except (CannotRepair, NotTraceable) as error:
      return f'the port does not run again as a graph: {error}'[:200]
    here = self._told(lambda difference: self._shows(difference))
    if not here & found:
      return 'traced as a graph, the port does not show the difference'
    # Other initial values alone may make what is computed from them differ.
    if here - found and not self._told(_is_start):
      quantity, subject, _ = min(here - found)
      return f'{quantity} {subject} does not differ in the graph of the port'
    return ''

  def _shows(self, difference: Difference) -> bool:
    """Returns whether a difference is one that the runs here would show."""
    here = any(difference.run in run.names for run in self._runs)
    return here and difference.quantity in self._compared

  def _told(self, which: Callable[[Difference], bool]) -> Left:
    known = [d for d in self._differences if not d.may_be_rounding]
    return frozenset((d.quantity, d.tf1_subject, d.run) for d in known if which(d))

  def looked_at(self, repairs: Sequence[Repair], left: Left) -> LookedAt:
    """Returns both sides of the run to look into for what is left with edits."""
    found = self._runs[0].looked_at(repairs, left)
    self._opened.append(found.tf2)
    return found

  def judged_if_passing(self, repairs: Sequence[Repair]) -> Judged | None:
    """Compares all runs of the stage, with edits with which it passes; None for others."""
    self._begin()
    is_known = tuple(map(content, repairs)) in self._judged
    if not is_known and any(run.still_fails(repairs) for run in self._runs):
      return None
    found = self.judged(repairs)
    return found if found.passes else None

  def _begin(self) -> None:
    self._until = self._until or time.perf_counter() + self._seconds

  def judged(self, repairs: Sequence[Repair]) -> Judged:
    """Compares all runs of the stage, with edits of the port."""
    edits = tuple(repairs)
    # The port as it is has to be traced, in every step: that is no experiment yet.
    if edits:
      self._begin()
    key = tuple(map(content, edits))
    if key not in self._judged:
      try:
        self._judged[key] = self._compared_with(edits)
      except CannotRepair as error:
        self._judged[key] = error
    found = self._judged[key]
    if isinstance(found, CannotRepair):
      raise found
    if found.passes and (not self.proven or len(edits) < len(self.proven)):
      self.proven = edits
    return found

  def passes_with_those_of_others(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether the stage passes with edits that were made for another one's runs.

    Not of one that differs by more than its runs compute, or whose runs show no difference as they
    are.
    """
    if self._told(lambda one: not self._shows(one) or _is_start(one)) or self.why_not():
      return False
    try:
      return all(
        isinstance(run, ForwardRuns | GradientRun) and run.passes_with_those_of_others(repairs)
        for run in self._runs
      )
    except CannotRepair:
      return False

  def _compared_with(self, repairs: Sequence[Repair]) -> Judged:
    # What differs in the stage that no run here shows does so with any edit. The runs begin with
    # the values of tf1: initial values that differ are mistakes of their own.
    left = set(self._told(lambda one: not (self._shows(one) or _is_start(one))))
    shares = list[float]()
    for one in self._runs:
      found, apart = one.judged(repairs)
      left |= found
      shares += apart
    distance = sum(min(share, 1.0) if share == share else 1.0 for share in shares)
    return Judged(frozenset(left), len(shares), max(shares, default=0.0), distance)

  def causes(self, repairs: Sequence[Repair]) -> Sequence[Cause]:
    """Returns what the stage itself takes for the cause of what differs with edits."""
    try:
      return self._runs[0].causes(repairs)
    except CannotRepair:
      return ()

  def is_over(self) -> bool:
    """Returns whether the time for experiments is used up."""
    return self._until is not None and time.perf_counter() > self._until

  def close(self) -> None:
    """Lets go of the sessions."""
    for opened in self._opened:
      opened.close()
    for run in self._made:
      run.close()
    self._opened.clear()

  @property
  def _runs(self) -> Sequence[BenchRun]:
    """The stage's runs, the one that failed first."""
    self._made = self._made or self._make()
    return self._made


def _is_start(difference: Difference) -> bool:
  return difference.quantity == 'initial value'


def bench_for(
  case: CaseUnderTest,
  stage: str,
  findings: Findings,
  sides: tuple[GraphRun, TracedPort | None],
  seconds: float,
) -> StageBench | None:
  """Returns what experiments on a failed stage are made on; None for a stage without.

  Args:
    case: both sides.
    stage: the failed one.
    findings: its own.
    sides: of the first run that shows a difference; the bench closes neither.
    seconds: how long experiments may take.
  """
  tf1, port = sides
  edited: EditedRuns | None = None if findings.inspection is None else findings.inspection.edited
  if edited is not None:
    make, told = edited.make, edited.told
    differences = [known for known in findings.differences if known.quantity not in told]
    return StageBench(lambda: [make(tf1)], edited.compared, differences, seconds, edited.derives)
  failed = findings.failed_run
  if port is None or failed is None:
    return None
  if stage == 'gradients':
    run, found = failed, findings.differences
    return StageBench(lambda: [gradient_run(case, run, found)], (GRADIENT,), found, seconds, True)
  if stage not in COMPARED:
    return None
  return StageBench(
    lambda: [forward_runs(case, stage, findings.differences, failed, (tf1, port))],
    COMPARED[stage],
    findings.differences,
    seconds,
  )
