"""The diagnosis of a failed stage: both sides made ready to be looked into."""

import contextlib
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tf2verify.diagnosis.diagnose import diagnose
from tf2verify.diagnosis.places.bench import Bench
from tf2verify.diagnosis.places.source_records import VariableLines
from tf2verify.diagnosis.versions import with_versions
from tf2verify.environment import diagnose_option
from tf2verify.errors import NotApplicable, Tf2VerifyError
from tf2verify.records.diagnosis import About, Cause, Diagnosis
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.op_graph import OpGraph
from tf2verify.records.verdict import StageVerdict
from tf2verify.reference import nests
from tf2verify.sides.fill import ConstantFill
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import RunSpec
from tf2verify.sides.tf2.traces.tracing import NotTraceable, TracedPort
from tf2verify.stages.failures.exchanged_variables import exchange_cause
from tf2verify.stages.failures.never_read import never_read_cause
from tf2verify.stages.failures.unconfirmed_entries import with_map_note
from tf2verify.stages.failures.untold_training import untold_training_cause
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage, by_name

# Stages whose runs experiments can make again.
_OF_FORWARD_PASS = ('zero_randomness', 'seeded_constant')


class ClosableBench(Bench, Protocol):
  """A bench that holds sessions.

  Attributes:
    proven: edits with which the stage passes, the fewest that were made; none without any.
  """

  @property
  def proven(self) -> Sequence[Repair]: ...

  def passes_with_those_of_others(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether the stage passes with edits that were made for another one's runs."""

  def close(self) -> None:
    """Lets go of them."""


class MakesBench(Protocol):
  """Makes what experiments on a failed stage are made on."""

  def __call__(
    self,
    case: CaseUnderTest,
    stage: str,
    findings: Findings,
    sides: tuple[GraphRun, TracedPort | None],
    seconds: float,
  ) -> ClosableBench | None: ...


@dataclasses.dataclass(frozen=True)
class Experimenting:
  """How far causes are tried out.

  Attributes:
    make: makes what experiments are made on.
    seconds: how long they may take.
    proven: edits with which a stage that failed before passes; those of this one are put there.
    is_blocked: whether that blocks this one: nothing more is tried if it passes with them as well.
  """

  make: MakesBench
  seconds: float
  proven: list[Repair]
  is_blocked: bool = False

  def follows(self, bench: ClosableBench | None) -> bool:
    """Returns whether what a stage shows follows from what was wrong in one before it.

    What is given values of TF1 hides what is wrong before it.
    """
    known = self.proven if self.is_blocked else []
    if bench is None or not known or any(repair.given for repair in known):
      return False
    return bench.passes_with_those_of_others(known)

  def close(self, bench: ClosableBench) -> None:
    """Closes what experiments were made on, and keeps the edits with which its stage passes."""
    self.proven[:] = bench.proven or self.proven
    bench.close()


def _by_values_alone(
  found: tuple[str, str, Sequence[Difference], Sequence[FailedTensor]], why: str
) -> Diagnosis:
  """Returns what the stage's numbers tell where a diagnosis was abandoned, which it says."""
  note = f'the diagnosis was abandoned: {why:.300}'
  try:
    diagnosis = diagnose(*found, None)
  except Exception:  # noqa: BLE001 - the same fault, or another: neither may cost the finding
    _, run, _, _ = found
    return Diagnosis(run, notes=(note,))
  return dataclasses.replace(diagnosis, notes=(*diagnosis.notes, note))


def diagnose_stage(
  case: CaseUnderTest,
  verdict: StageVerdict,
  findings: Findings,
  experimenting: Experimenting,
) -> Diagnosis:
  """Returns where and why the sides of a case part.

  What goes wrong here is said in the diagnosis: the stage's findings stand without it.

  Args:
    case: the case.
    verdict: the failed stage's.
    findings: what the stage found, with the run to repeat.
    experimenting: how far causes are tried out.
  """
  only = _exchange(case, verdict.stage, findings) or _untold(case, verdict.stage, findings)
  diagnosis = _diagnosed(case, verdict, findings, None if only else experimenting)
  return diagnosis if only is None else dataclasses.replace(diagnosis, causes=(only,))


def _untold(case: CaseUnderTest, stage: str, findings: Findings) -> Cause | None:
  try:
    return untold_training_cause(case, stage, findings)
  except (Tf2VerifyError, TypeError, ValueError):  # of the port made anew, or of its signature
    return None


def _exchange(case: CaseUnderTest, stage: str, findings: Findings) -> Cause | None:
  """Returns that variables are exchanged, where that is all; nothing more is tried out then.

  Branches of a sum can be exchanged and nothing differs. So an output has to differ that the names
  pair, at the inputs of the case and values that tell variables apart.
  """
  run = findings.failed_run
  if stage != _OF_FORWARD_PASS[0] or run is None or run.fill is None:
    return None
  outputs = {one.run for one in findings.differences if one.quantity == 'output'}
  is_own = run.description in outputs and _shapes(run.inputs) == _shapes(case.inputs)
  if not is_own or run.fill.description == ConstantFill.description:
    return None
  try:
    return exchange_cause(case)
  except Exception:  # noqa: BLE001 - a fault in here must not cost the finding
    return None


def _diagnosed(
  case: CaseUnderTest,
  verdict: StageVerdict,
  findings: Findings,
  experimenting: Experimenting | None,
) -> Diagnosis:
  run, inspection, recorded = findings.failed_run, findings.inspection, case.tf1.recorded()
  if run is not None and not run.gradients:
    run = dataclasses.replace(run, unrolls=True)
    findings = dataclasses.replace(findings, failed_run=run)
  description, traced = '' if run is None else run.description, 'the port'
  further: tuple[str, ...] = ()
  if inspection is not None:
    description, traced, further = inspection.run, inspection.traced, inspection.further
  found = verdict.stage, description, _computed(findings), findings.failed_tensors
  sides: tuple[GraphRun, GraphRun] | None = None
  not_traceable = not_run = ''
  bench: ClosableBench | None = None
  port: TracedPort | None = None
  try:
    try:
      if inspection is not None:
        sides = inspection.sides() if found[2] else None
      elif run is not None:
        run, sides, port = _both_sides(case, run)
        findings = dataclasses.replace(findings, failed_run=run)
      if sides is not None and experimenting is not None:
        known = verdict.stage, findings, (sides[0], port)
        bench = experimenting.make(case, *known, experimenting.seconds)
        if experimenting.follows(bench):
          return Diagnosis(description, experimented=True)
    except NotTraceable as error:
      not_traceable = str(error)
    except NotApplicable as error:  # a recorded graph that is not run here
      not_run = f'no operation is named: {error}'
    lines, first = _variable_lines(case, findings), diagnose_option.ends_with_the_first()
    facts = _tf1_in_training(case, run, sides), case.tf2.is_of_keras3(), further
    made = diagnose(*found, sides, not_traceable, lines, traced, bench, first, *facts)
    diagnosis = _with_variables(case, verdict.stage, sides, made)
    not_tried = 'the port cannot be traced' if not_traceable else ''
    not_tried = 'the recorded graph is not run here' if not_run else not_tried
    if diagnosis.causes and verdict.stage in _OF_FORWARD_PASS and not_tried:
      diagnosis = dataclasses.replace(diagnosis, without_experiments=not_tried)
    if not_run:
      return dataclasses.replace(diagnosis, notes=(*diagnosis.notes, not_run))
    here = None if run is None or recorded is None else recorded.on_current_tf(run)
    if here is None:
      return diagnosis
    return with_versions(diagnosis, findings.failed_tensors, here, sides[0] if sides else None)
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost the finding
    return _by_values_alone(found, f'{type(error).__name__}: {error}')
  finally:
    if bench is not None and experimenting is not None:
      experimenting.close(bench)
    for side in sides or ():
      side.close()


def _computed(findings: Findings) -> tuple[Difference, ...]:
  """Returns what differs, but for averages that nothing updates: no operation computes these."""
  at_rest = [c.text for c in findings.causes if c.numbers and c.explains == (About.SHADOWS,)]
  return tuple(one for one in findings.differences if one.hint not in at_rest)


def _both_sides(
  case: CaseUnderTest, run: RunSpec
) -> tuple[RunSpec, tuple[GraphRun, GraphRun], TracedPort]:
  """Returns a run as it is to be looked into, both sides of it, and the port."""
  tf1, port = case.tf1.inspectable(run), traced_port(case, run)
  sides = tf1, port.run()
  splits = any(op.op_type == 'Split' for one in sides for op in one.op_graph.ops)
  if run.parts or not run.unrolls or not splits or not port.joins_variables:
    return run, sides, port
  # The gates of a cell lie in another order then, with a bias that TF1 adds later.
  for one in sides:
    one.close()
  return _both_sides(case, dataclasses.replace(run, parts=True))


def _with_variables(
  case: CaseUnderTest, stage: str, sides: tuple[GraphRun, GraphRun] | None, diagnosis: Diagnosis
) -> Diagnosis:
  """Returns a diagnosis with a layer that is not called; or a variable, if nothing is proven.

  And with a note if the map of the variables may be wrong.
  """
  if sides is None or stage != _OF_FORWARD_PASS[0]:
    return diagnosis
  diagnosis = with_map_note(case.pairing.derived, sides[0].op_graph, diagnosis)
  found = never_read_cause(case, sides[0].op_graph, sides[1].op_graph)
  proven = any(cause.is_proven or cause.numbers for cause in diagnosis.causes)
  if found is None or (proven and not found.is_layer):
    return diagnosis
  return dataclasses.replace(diagnosis, causes=(found.cause, *diagnosis.causes))


def _tf1_in_training(
  case: CaseUnderTest, run: RunSpec | None, sides: tuple[GraphRun, GraphRun] | None
) -> OpGraph | None:
  """Returns the tf1 side's graph in training mode, where the port alone draws in inference."""
  if run is None or sides is None:
    return None
  drawn = [sum('Random' in op.op_type for op in one.op_graph.ops) for one in sides]
  modes = case.declaration.training_modes
  if run.training or True not in modes or drawn[1] <= drawn[0]:
    return None
  try:
    side = case.tf1.inspectable(dataclasses.replace(run, training=True, unrolls=False))
  except NotApplicable:  # a recorded graph that is not run here
    return None
  with contextlib.closing(side):
    return side.op_graph


def with_diagnosis(verdict: StageVerdict, diagnosis: Diagnosis, stage: type[Stage]) -> StageVerdict:
  """Returns the verdict of a stage with what was found out of its failure."""
  # That an input is never read follows from a cause that says what it is for.
  read = {path for cause in diagnosis.causes for path in cause.inputs}
  differences = tuple(
    dataclasses.replace(one, hint='')
    if one.aspect is Aspect.UNREAD and one.tf1_subject in read
    else one
    for one in verdict.differences
  )
  if not stage.diagnosed:
    # What such a stage took for the cause by its numbers is among those proven, or refuted.
    said = {cause.text for cause in diagnosis.causes}
    differences = tuple(
      dataclasses.replace(known, hint='') if diagnosis.is_settled or known.hint in said else known
      for known in differences
    )
  return dataclasses.replace(verdict, diagnosis=diagnosis, differences=differences)


def _shapes(inputs: Any) -> list[tuple[str, tuple[int, ...]]]:
  """Returns path and shape of every array of a nest."""
  found: list[tuple[str, tuple[int, ...]]] = []
  nests.map_leaves(lambda path, leaf: found.append((path, np.shape(leaf))), inputs)
  return found


# What belongs to a variable, not to an operation.
_OF_VARIABLES = ('initial value', 'regularization loss', 'state after the call')


def _variable_lines(case: CaseUnderTest, findings: Findings) -> dict[str, VariableLines]:
  """Returns where each side makes its variables, if something differs that belongs to them."""
  if all(difference.quantity not in _OF_VARIABLES for difference in findings.differences):
    return {}
  ones, others = by_name(case.tf1.inventory()), by_name(case.tf2.inventory())
  return {
    tf1: (ones[tf1].source, others[tf2].source)
    for tf1, tf2 in case.alignment().pairs
    if tf1 in ones and tf2 in others
  }


def traced_port(
  case: CaseUnderTest, run: RunSpec, known: tuple[RunSpec, TracedPort] | None = None
) -> TracedPort:
  """Returns the port of a run that goes by tf1 names, traced; a variable's value is made once.

  Args:
    case: both sides.
    run: the run.
    known: another run, and its port: traced anew only where that may make another graph.
  """
  names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
  named = dataclasses.replace(run, tf1_names=names)
  again = None if known is None or _trace_key(known[0]) != _trace_key(run) else known[1].again
  port = case.tf2.traced(named) if again is None else again(named)
  port = dataclasses.replace(port, values=functools.cache(port.values))
  port = port.unrolled(run.parts) if run.unrolls else port
  return port if known is None else port.on_graph_of(known[1])


def _trace_key(run: RunSpec) -> tuple[object, ...]:
  """Returns what a traced graph depends on."""
  return run.training, run.gradients, _shapes(run.inputs)
