"""Whether a case's inputs and tolerances would show a fault of the port.

Small faults are planted into the port's graph, one at a time, and the graph is run and
compared as the ladder does it. A fault that no run catches is one that the case would
not show if the port had it.
"""

import dataclasses
import functools
import time
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.case import EquivalenceCase, new_ladder
from tf2verify.diagnosis.divergence.effects import survival
from tf2verify.errors import CaseDefinitionError, LayerError, UsageError
from tf2verify.records.adequacy import AdequacyReport, ByProof, Fate, FaultOutcome
from tf2verify.records.difference import Difference
from tf2verify.records.observation import Observation
from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.records.status import Status
from tf2verify.reference import inputs as case_inputs
from tf2verify.relation.proof.proving import prove
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.process import randomness
from tf2verify.sides.side import Progress, RunSpec
from tf2verify.sides.tf2.traces import planting
from tf2verify.sides.tf2.traces.possible_faults import PossibleFault, possible_faults
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.comparison.noise.reruns import Again, repeated, rerun_of
from tf2verify.stages.comparison.proof.proving import compared, paired_variables, reference_graph
from tf2verify.stages.comparison.traced_port import TracedComparison
from tf2verify.stages.passes.zero_randomness import (
  ZeroRandomness,
  case_fill,
  constant_fill,
)
from tf2verify.stages.stage import CaseUnderTest

LIMIT = 50
# A run with a fault may take this many times as long as one without, and these seconds.
_PATIENCE = 20
_LEAST_SECONDS = 10


def adequacy(
  case: type[EquivalenceCase],
  limit: int = LIMIT,
  seed: int = 0,
  progress: Progress | None = None,
) -> AdequacyReport:
  """Plants faults into a case's port and tells which the case would show.

  Args:
    case: a subclass of `EquivalenceCase` that passes up to `zero_randomness`.
    limit: how many faults to run; those that TensorFlow refuses do not count.
    seed: of the draw.
    progress: called with one line of text before every long step.

  Raises:
    UsageError: the port fails one of the first three stages.
    LayerError: the port cannot be traced as one graph.
    CaseDefinitionError: the class is not a complete case, or `limit` is below 1.
  """
  if limit < 1:
    raise CaseDefinitionError(f'limit is {limit}; it must be the number of faults, at least 1')
  say = progress or (lambda _: None)
  start = time.perf_counter()
  ladder = new_ladder(case, say)
  try:
    verdict = ladder.stage(ZeroRandomness)
    if verdict.status is not Status.PASSED:
      first = next(s for s in ladder.verdict().stages if s.status is not Status.PASSED)
      why = first.error.summary if first.error is not None else first.reason
      raise UsageError(
        f'{case.__name__} does not pass {first.stage}: {first.status.value}'
        f'{f", {why}" if why else ""}; adequacy plants faults into a port that agrees without '
        'them, so make this stage pass first: python -m tf2verify run'
      )
    with ladder.conditions():
      runs, notes = _runs(ladder.prepared())
      possible, outcomes = _outcomes(runs, limit, seed, say)
      if not any(outcome.fate is not Fate.NOT_RUN for outcome in outcomes):
        notes.append(
          'nothing is known: no fault of these kinds applies to the operations of the port'
        )
    module = ladder.verdict().module
  except NotTraceable as error:
    raise LayerError(
      f'the port of {case.__name__} cannot be traced as one graph, so no fault can be planted '
      f'into it: {error}'
    ) from error
  finally:
    ladder.close()
  return AdequacyReport(
    case.__name__,
    module,
    tuple(run.name for run in runs),
    possible,
    seed,
    outcomes,
    tuple(notes),
    time.perf_counter() - start,
  )


class _Run:
  """A run of the ladder, to be repeated with faults in the port.

  Attributes:
    name: for reports.
    base: the port without a fault.
    faults: what can be planted, by key.
  """

  def __init__(
    self, case: CaseUnderTest, run: RunSpec, reference: Observation, again: Again
  ) -> None:
    self.name = reference.run
    self._case, self._run = case, run
    self._reference: OpGraph | None = None
    # The perturbed runs are the same for every fault.
    self._compared = TracedComparison(case, reference, rerun_of(functools.cache(again)))
    names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
    traced = case.tf2.traced(dataclasses.replace(run, tf1_names=names))
    self._port = dataclasses.replace(traced, values=functools.cache(traced.values))
    self.base = self._port.run()
    start = time.perf_counter()
    self._values = _target_values(self.base)
    # A fault may let a loop run for ever.
    self._seconds = _LEAST_SECONDS + round(_PATIENCE * (time.perf_counter() - start))
    self._left_out: frozenset[tuple[str, str]] = frozenset()
    differing = self.differences(self._values, self.base.op_graph)
    self._left_out = frozenset((found.quantity, found.subject) for found in differing)
    self.faults = {
      possible.key: possible for possible in possible_faults(self.base.op_graph, traced.prefix)
    }

  @property
  def left_out(self) -> frozenset[tuple[str, str]]:
    """What differs already without a fault."""
    return self._left_out

  def planted(self, possible: PossibleFault) -> GraphRun:
    """Returns the run with a fault.

    Raises:
      CannotPlant: there is none.
    """
    return planting.plant(self._port, self.faults[possible.key])

  def values(self, faulty: GraphRun) -> dict[str, np.ndarray]:
    """Returns what the run with a fault yields, by target.

    Raises:
      CannotPlant: it does not run.
    """
    return _target_values(faulty, self._seconds)

  def changes(self, values: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Returns the targets that a fault changes, and by how much at most."""
    found = {}
    for name, value in values.items():
      before = self._values.get(name)
      if before is None or not survival.is_identical(before, value):
        found[name] = survival.greatest_change(before, value)
    return found

  def judged_by_proof(self, faulty: OpGraph) -> ByProof:
    """Returns what the comparison of graphs says of the graph with a fault."""
    known = {
      op.name: (op.outputs[0][0], op.outputs[0][1] or ())
      for op in faulty.ops
      if op.op_type == VARIABLE and op.outputs[0][0] != 'resource'
    }
    if not prove(self.base.op_graph, faulty, known).tested:
      return ByProof.EQUIVALENT
    pairs = self._case.alignment().pairs
    if self._reference is None:
      self._reference = reference_graph(self._case.tf1, self._run, pairs)
    variables = paired_variables(self._case)
    named = compared(self._reference, faulty, variables, self.name, 0.0).differences
    return ByProof.NAMED if named else ByProof.NOTHING

  def differences(self, values: Mapping[str, np.ndarray], graph: OpGraph) -> list[Difference]:
    """Compares what the port yields with the reference, as the ladder does."""
    found = self._compared.differences(values, graph)
    return [d for d in found if (d.quantity, d.subject) not in self._left_out]


def _target_values(run: GraphRun, seconds: int = 0) -> dict[str, np.ndarray]:
  graph = run.op_graph
  names = {name: graph.ops[position].tensors[0] for name, position in graph.targets().items()}
  return dict(zip(names, planting.fetched(run, list(names.values()), seconds), strict=True))


def _runs(case: CaseUnderTest) -> tuple[list[_Run], list[str]]:
  """Returns the runs that the first stages compare, the most telling first."""
  modes = case.declaration.training_modes
  tf1_names = {tf1: tf1 for tf1, _ in case.alignment().pairs}
  training = False not in modes
  varied, _ = case_inputs.varied_inputs(case.inputs)
  filled = [
    RunSpec(varied, training, case_fill(case), tf1_names),
    RunSpec(case.inputs, training, constant_fill(case), tf1_names),
  ]
  run_tf1 = case.tf1.prepare_filled(filled)
  first, last = (
    _Run(case, run, reference, repeated(run_tf1, run))
    for run, reference in zip(filled, run_tf1(), strict=True)
  )
  runs = [first]
  notes = []
  if True in modes:
    seeded = case.tf1.prepare_seeded(randomness.CONSTANT, True)
    reference = seeded()
    if any(draw.in_loop for draw in reference.random_draws):
      notes.append(f'not run: {reference.run}, which draws random numbers inside a loop')
    else:
      fill = case.tf1.initial_fill(randomness.CONSTANT, True, reference.initial_values)
      run = RunSpec(case.inputs, True, fill, tf1_names)
      runs.append(_Run(case, run, reference, lambda perturber, _: seeded(perturber, again=True)))
  runs.append(last)
  for one in runs:
    for quantity, subject in sorted(one.left_out):
      notes.append(
        f'left out: {quantity} {subject} [{one.name}], which differs without a fault once the '
        'port is traced as a graph'
      )
  return runs, notes


def _outcomes(
  runs: Sequence[_Run], limit: int, seed: int, progress: Progress
) -> tuple[int, tuple[FaultOutcome, ...]]:
  """Returns the number of possible faults, and what became of those drawn."""
  possible = {key: fault for run in reversed(runs) for key, fault in run.faults.items()}
  order = [key for run in runs for key in run.faults]
  drawn = planting.drawn([possible[key] for key in dict.fromkeys(order)], seed)
  outcomes: list[FaultOutcome] = []
  counted = 0
  for fault in drawn:
    if counted == limit:
      break
    progress(f'fault {counted + 1} of {min(limit, len(drawn))}: {fault.fault}')
    outcomes.append(_outcome(runs, fault))
    counted += outcomes[-1].fate is not Fate.NOT_RUN
  return len(possible), tuple(outcomes)


def _outcome(runs: Sequence[_Run], possible: PossibleFault) -> FaultOutcome:
  """Runs the port with a fault until it is caught."""
  refused = ''
  changes: dict[str, float] = {}
  traces = []
  judged: set[ByProof] = set()
  for run in runs:
    if possible.key not in run.faults:
      continue
    faulty: GraphRun | None = None
    try:
      faulty = run.planted(possible)
      values = run.values(faulty)
      changed = run.changes(values)
      if changed and run.differences(values, faulty.op_graph):
        return FaultOutcome(possible.fault, Fate.CAUGHT, run.name)
      changes.update({f'{name} [{run.name}]': far for name, far in changed.items()})
      operations = run.faults[possible.key].operations
      traces.append(survival.trace(run.base, faulty, operations, bool(possible.path)))
      judged.add(run.judged_by_proof(faulty.op_graph))
    except planting.CannotPlant as error:
      refused = str(error)
    finally:
      if faulty is not None:
        faulty.close()
  if not traces:
    return FaultOutcome(possible.fault, Fate.NOT_RUN, explanation=refused[:200])
  proof = ByProof.NAMED if ByProof.NAMED in judged else ByProof.NOTHING
  if judged == {ByProof.EQUIVALENT}:
    proof = ByProof.EQUIVALENT
  if changes:
    why = survival.within_tolerance(changes)
    return FaultOutcome(possible.fault, Fate.WITHIN_TOLERANCE, explanation=why, by_proof=proof)
  why = survival.explained(traces)
  return FaultOutcome(possible.fault, Fate.IDENTICAL, explanation=why, by_proof=proof)
