"""The runs of a failed forward pass, to be made again with edits of the port's graph."""

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.places.bench import Left, LookedAt
from tf2verify.numerics.relayout import agreement_as_held
from tf2verify.records.diagnosis import Cause
from tf2verify.records.difference import Difference
from tf2verify.records.observation import Observation
from tf2verify.records.op_graph import OpGraph
from tf2verify.reference import inputs as case_inputs
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.process import randomness
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.traces.repaired import (
  RepairedRuns,
  given_values,
  repaired_run,
  target_values,
)
from tf2verify.sides.tf2.traces.tracing import TracedPort
from tf2verify.stages.comparison.noise.reruns import Again, repeated, rerun_of
from tf2verify.stages.comparison.traced_port import TracedComparison
from tf2verify.stages.failures.failed_stage import traced_port
from tf2verify.stages.passes.zero_randomness import case_fill, constant_fill
from tf2verify.stages.stage import CaseUnderTest

_OUTPUT, _LOSS, _STATE = 'output', 'regularization loss', 'state after the call'
_TOTAL = '(total)'
# What a stage compares of a run of the forward pass.
COMPARED = {'zero_randomness': (_OUTPUT, _LOSS), 'seeded_constant': (_OUTPUT, _LOSS, _STATE)}
# An edit may let a loop run for ever.
_RUN_SECONDS = 60


def forward_runs(
  case: CaseUnderTest,
  stage: str,
  differences: Sequence[Difference],
  failed: RunSpec,
  sides: tuple[GraphRun, TracedPort],
) -> 'ForwardRuns':
  """Returns the runs of a stage.

  Args:
    case: both sides.
    stage: the failed one.
    differences: what it has found.
    failed: the first run that shows a difference, by tf1 names.
    sides: both sides of that run.
  """
  compared = COMPARED[stage]
  losses_of = {d.run for d in differences if d.quantity == _LOSS}
  first = _run_of(case, stage, failed, compared, losses_of, sides)
  others = _others(case, stage, failed)
  known = failed, sides[1]
  further = (_run_of(case, stage, run, compared, losses_of, known=known) for run in others)
  return ForwardRuns((first, *further))


@dataclasses.dataclass(frozen=True, eq=False)
class ForwardRuns:
  """All runs of the stage, the one that failed first; see `diagnosis.bench.BenchRun`."""

  runs: tuple['ForwardRun', ...]

  @property
  def names(self) -> frozenset[str]:
    """As differences name them."""
    return frozenset(run.name for run in self.runs)

  def why_not(self) -> str:
    """Returns why the port cannot be edited in one; '' where it can in all."""
    return next((why for run in self.runs if (why := run.why_not())), '')

  def causes(self, repairs: Sequence[Repair]) -> Sequence[Cause]:
    """Returns none: rules on a forward pass go by its places."""
    del repairs
    return ()

  def looked_at(self, repairs: Sequence[Repair], left: Left) -> LookedAt:
    """Returns both sides of the run that failed first, the port with edits."""
    del left
    return self.runs[0].looked_at(repairs)

  def judged(self, repairs: Sequence[Repair]) -> tuple[Left, list[float]]:
    """Returns what differs with edits, and how far each pair of tensors is apart."""
    with RepairedRuns(repairs) as runs:
      found = [run.judged(repairs, runs) for run in self.runs]
    return (
      frozenset[tuple[str, str, str]]().union(*(left for left, _ in found)),
      [share for _, shares in found for share in shares],
    )

  def still_fails(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether the run that failed first still does with edits."""
    with RepairedRuns(repairs) as runs:
      left, _ = self.runs[0].judged(repairs, runs)
    return bool(left)

  def passes_with_those_of_others(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether all runs pass with edits that were made for another stage's runs."""
    with RepairedRuns(repairs) as runs:
      others = (dataclasses.replace(run, is_other=True) for run in self.runs)
      return not any(run.judged(repairs, runs)[0] for run in others)

  def close(self) -> None:
    """Lets go of the references, but for that of the run that was looked into."""
    for run in self.runs[1:]:
      run.tf1.close()


@dataclasses.dataclass(frozen=True, eq=False)
class ForwardRun:
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

  def why_not(self) -> str:
    """Returns why the port cannot be edited in it; '' where it can."""
    if self.is_other:
      return ''
    updates = [name for name in self.tf1.op_graph.targets() if name.startswith('update of ')]
    if any(name.endswith(')') and ' (' in name for name in updates):
      return 'a variable is written more than once in a call'
    return ''

  def looked_at(self, repairs: Sequence[Repair]) -> LookedAt:
    """Returns both sides of the run, the port with edits."""
    return LookedAt(self.name, self.tf1, self.repaired(repairs))

  def repaired(self, repairs: Sequence[Repair]) -> GraphRun:
    """Returns the port's run with edits."""
    given = given_values(self.tf1, repairs)
    return repaired_run(self.port, repairs, given, self._other_run)

  @property
  def _other_run(self) -> Mapping[str, Any] | None:
    return self.tf1.nodes() if self.is_other else None

  def judged(self, repairs: Sequence[Repair], runs: RepairedRuns) -> tuple[Left, list[float]]:
    """Returns what differs with edits, and how far each pair of tensors is apart.

    Args:
      repairs: the edits.
      runs: makes the graphs of runs with them.
    """
    values, graph = self._yielded(repairs, runs) if repairs else self._as_it_is
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
    return frozenset(left), self._apart(values)

  def _has_the_same_losses(self, values: Mapping[str, np.ndarray]) -> bool:
    """Returns whether edits leave the port's regularization losses as they are, bit by bit."""
    before = {name: one for name, one in self._as_it_is[0].items() if name.startswith(_LOSS)}
    now = {name: one for name, one in values.items() if name.startswith(_LOSS)}
    return before.keys() == now.keys() and all(
      one.tobytes() == now[name].tobytes() for name, one in before.items()
    )

  @functools.cached_property
  def _as_it_is(self) -> tuple[dict[str, np.ndarray], OpGraph]:
    with RepairedRuns([]) as runs:
      return self._yielded([], runs)

  def _yielded(
    self, repairs: Sequence[Repair], runs: RepairedRuns
  ) -> tuple[dict[str, np.ndarray], OpGraph]:
    """Returns what the port yields with edits, by target, and its targets."""
    given = given_values(self.tf1, repairs)
    values, graph = runs.targets(self.port, given, self._other_run, _RUN_SECONDS)
    return {name: found[0] for name, found in values.items()}, graph

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


def _run_of(
  case: CaseUnderTest,
  stage: str,
  run: RunSpec,
  compared: tuple[str, ...],
  losses_of: Collection[str],
  sides: tuple[GraphRun, TracedPort] | None = None,
  known: tuple[RunSpec, TracedPort] | None = None,
) -> ForwardRun:
  reference, again = _reference(case, stage, run)
  is_other = sides is None
  if sides is None:
    sides = case.tf1.inspectable(run), traced_port(case, run, known)
  comparison = TracedComparison(case, reference, rerun_of(functools.cache(again)))
  return ForwardRun(
    reference.run, *sides, comparison, compared, is_other, reference.run not in losses_of
  )


def _reference(case: CaseUnderTest, stage: str, run: RunSpec) -> tuple[Observation, Again]:
  """Returns the reference's run as the stage made it, and what repeats it."""
  if stage == 'seeded_constant':
    seeded = case.tf1.prepare_seeded(randomness.CONSTANT, run.training)
    return seeded(), lambda perturber, _: seeded(perturber, again=True)
  run_tf1 = case.tf1.at(run.inputs).prepare_filled([run])
  (reference,) = run_tf1()
  return reference, repeated(run_tf1, run)


def _others(case: CaseUnderTest, stage: str, failed: RunSpec) -> list[RunSpec]:
  """Returns the other runs that the stage makes."""
  # Looked into as the failed one is.
  here = dataclasses.replace(failed, inputs=case.inputs, size='')
  if stage == 'seeded_constant':
    found = []
    for training in case.declaration.training_modes:
      if training != failed.training:
        mode = randomness.CONSTANT
        reference = case.tf1.prepare_seeded(mode, training)()
        fill = case.tf1.initial_fill(mode, training, reference.initial_values)
        found.append(dataclasses.replace(here, training=training, fill=fill))
    return found
  varied, _ = case_inputs.varied_inputs(case.inputs)
  runs = [
    dataclasses.replace(here, inputs=varied, fill=case_fill(case)),
    dataclasses.replace(here, fill=constant_fill(case)),
  ]
  return [run for run in runs if run.description != failed.description]
