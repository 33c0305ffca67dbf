"""The pipeline: climbs the ladder in order and blocks what depends on a failure."""

import contextlib
import dataclasses
import gc
import importlib.metadata
import platform
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from tf2verify import beyond
from tf2verify.acceptance import Acceptance, Attempt, declared_causes
from tf2verify.environment import diagnose_option, interruption, time_limit
from tf2verify.environment.time_limit import TimeLimitReached
from tf2verify.errors import (
  CaseDefinitionError,
  NotApplicable,
  RecordingError,
  Tf2VerifyError,
  UserCodeError,
)
from tf2verify.numerics import tolerance as tolerances
from tf2verify.records.accepted import Change
from tf2verify.records.diagnosis import Cause
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, ErrorRecord, StageVerdict
from tf2verify.safe_text import safe_line, safe_values
from tf2verify.selection import StageSelection, check_training_modes
from tf2verify.sides import side
from tf2verify.sides.hooks import slips as hook_slips
from tf2verify.sides.process import freed_memory, loop_draws, randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.recorded import references
from tf2verify.sides.tf1.graphs.changed_reference import ChangedReference
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.sides.tf2.training import Tf2Training
from tf2verify.stages import STAGES, Stage, interchanges
from tf2verify.stages.judging import if_proven, judged, with_blind_spots
from tf2verify.stages.passes.neutral_variables import lacks_only_neutral
from tf2verify.stages.raised import defect_record, error_record
from tf2verify.stages.stage import CaseUnderTest, Findings
from tf2verify.time_for_diagnosis import TimeForDiagnosis

# Experiments may take as long as the ladder so far; this long in any case.
_BLOCKING = (Status.FAILED, Status.ERROR, Status.BLOCKED)


class LadderCase(references.DeclaredReference, Protocol):
  """What the ladder needs of a case besides what the sides need."""

  tolerance: Any
  gradient_tolerance: Any
  regularization_tolerance: Any
  training_tolerance: Any
  variable_names: Any
  stages: Any
  accepted_causes: Any


@dataclasses.dataclass(frozen=True)
class CaseName:
  """How reports name a case.

  Attributes:
    case: the class's name.
    module: its file or module.
    run_again: the command that runs one stage's test, given the test's name.
  """

  case: str
  module: str
  run_again: Callable[[str], str]


def test_name(stage: type[Stage]) -> str:
  """Returns the name of the test method of a stage; names sort into ladder order."""
  return f'test_{STAGES.index(stage) + 1:02}_{stage.name}'


def environment() -> tuple[tuple[str, str], ...]:
  """Returns names and versions that a reader of a report needs."""
  found = [('python', platform.python_version()), ('platform', platform.platform())]
  for package in ('tensorflow', 'tf-keras', 'tf-slim', 'numpy', 'tf2verify'):
    try:
      found.append((package, importlib.metadata.version(package)))
    except importlib.metadata.PackageNotFoundError:
      continue
  return tuple(found)


class Ladder:
  """The stages of one case, each run at most once.

  A stage runs when it is asked for, after those that it needs.
  """

  def __init__(
    self,
    case: LadderCase,
    name: CaseName,
    progress: side.Progress = lambda _: None,
    source: references.ReferenceSource | None = None,
  ) -> None:
    self._case = case
    self._source = source or references.OwnReference()
    self._name = name
    self._progress = progress
    self._verdicts: dict[str, StageVerdict] = {}
    self._under_test: CaseUnderTest | None = None
    self._thaw: Callable[[], object] | None = None
    self._named_keras = False
    # The stage that found the recording, or `stages`, of no use, or reached the time limit.
    self._ended_by = ''
    self._under_way: type[Stage] | None = None
    self._acceptance: Acceptance | None = None
    self._changed: ChangedReference | None = None
    self._time = TimeForDiagnosis()
    # Edits of the port with which a failed stage passes.
    self._proven: list[Any] = []
    self._is_beyond = False
    # Whether that makes sense where variables have no counterpart; None before it is asked.
    self._is_comparable: bool | None = None

  def stage(self, stage: type[Stage]) -> StageVerdict:
    """Returns the verdict of a stage, running it and what it needs if that is not done."""
    if stage.name not in self._verdicts:
      self._under_way = stage
      try:
        verdict = self._climb(stage)
      except TimeLimitReached as reached:
        verdict = self._out_of_time(self._under_way, str(reached), reached.stack())
      interruption.raise_swallowed()
      self._verdicts[verdict.stage] = safe_values(verdict)
      if verdict.stage != stage.name:
        return self.stage(stage)
    return self._verdicts[stage.name]

  def verdict(self) -> CaseVerdict:
    """Returns the verdicts of the stages run so far."""
    done = tuple(self._verdicts[s.name] for s in STAGES if s.name in self._verdicts)
    failing = {one.stage for one in done if one.status.is_failure}
    tests = (test_name(stage) for stage in STAGES if stage.name in failing)
    again = next((self._name.run_again(test) for test in tests), '')
    versions = (*environment(), *references.made_by(self._case, self._source))
    case, module = safe_line(self._name.case), safe_line(self._name.module)
    return CaseVerdict(case, module, done, versions, again)

  def close(self) -> None:
    """Lets go of graphs and layers; the verdicts stay."""
    if self._under_test is not None:
      self._source.close()
      self._under_test.tf2.close()
      self._under_test = None
    if self._thaw is not None:
      # What the stages left behind goes now: thawed, it would count as old and stay.
      gc.collect()
      self._thaw()
    randomness.forget_kernels()
    freed_memory.give_back()

  def given_up(self, seconds: float) -> CaseVerdict:
    """Returns the verdict where the stage that runs does not come back, for another thread."""
    stage = self._under_way
    left = [one for one in STAGES if one.name not in self._verdicts and one is not stage]
    stages = [*self._verdicts.values()]
    if stage is not None and stage.name not in self._verdicts:
      said = f'{time_limit.said(seconds)}, {time_limit.STUCK}'
      stages.append(self._out_of_time(stage, said, ''))
    stages += [self._blocked(one, STAGES.index(one) + 1) for one in left]
    known = self.verdict()
    return dataclasses.replace(known, stages=tuple(sorted(stages, key=lambda one: one.number)))

  def _out_of_time(self, stage: type[Stage] | None, said: str, stack: str) -> StageVerdict:
    stage = stage or STAGES[0]
    self._ended_by = stage.name
    error = ErrorRecord('case', f'{said}, in stage {stage.name}', stack)
    return StageVerdict(stage.name, STAGES.index(stage) + 1, Status.ERROR, error=error)

  def _climb(self, stage: type[Stage]) -> StageVerdict:
    number = STAGES.index(stage) + 1
    try:
      reason = StageSelection.of(self._case.stages).reason_without(stage.name)
    except CaseDefinitionError as error:
      if self._ended_by:
        return self._blocked(stage, number)
      self._ended_by = stage.name
      return StageVerdict(stage.name, number, Status.ERROR, error=ErrorRecord('case', str(error)))
    if reason:
      return StageVerdict.not_applicable(stage.name, number, f'left out by the case: {reason}')
    if self._ended_by:
      return self._blocked(stage, number)
    for needed in STAGES:
      if needed.name in stage.needs and self.stage(needed).status in _BLOCKING:
        return self._beyond(stage, number, self._culprit(needed))
    for earlier in (*stage.repeats_errors_of, *stage.follows):
      blocking = _BLOCKING if earlier in stage.follows else (Status.ERROR,)
      if (known := self._verdicts.get(earlier)) is not None and known.status in blocking:
        return StageVerdict.blocked(stage.name, number, earlier, known.status)
    self._under_way = stage
    return self._run(stage, number)

  def _blocked(self, stage: type[Stage], number: int) -> StageVerdict:
    return StageVerdict.blocked(stage.name, number, self._ended_by, Status.ERROR)

  def _culprit(self, stage: type[Stage]) -> StageVerdict:
    """Returns the failed verdict at the root of a blocked one."""
    for needed in STAGES:
      blocked = self.stage(stage).status is Status.BLOCKED
      if blocked and needed.name in stage.needs and self.stage(needed).status in _BLOCKING:
        return self._culprit(needed)
    return self.stage(stage)

  def _run(self, stage: type[Stage], number: int) -> StageVerdict:
    start = time.perf_counter()
    verdict = self._accepting(stage, number, self._attempt(stage, number))
    return dataclasses.replace(verdict, seconds=time.perf_counter() - start)

  def _beyond(self, stage: type[Stage], number: int, culprit: StageVerdict) -> StageVerdict:
    """Returns that a stage is blocked, or what it shows that follows from no earlier failure."""
    start = time.perf_counter()
    blocked = StageVerdict.blocked(stage.name, number, culprit.stage, culprit.status)
    has_time = self._time.is_left_beyond() or stage.stands_alone
    if not (stage.tried_when_blocked and diagnose_option.goes_beyond_failures() and has_time):
      return blocked
    if not beyond.can_be_passed(culprit, stage.stands_alone, self._lacks_only_neutral):
      return blocked
    self._under_way, self._is_beyond = stage, True
    try:
      attempt = self._attempt(stage, number)
      verdict = self._accepting(stage, number, attempt)
    finally:
      self._is_beyond = False
    earlier = [one for one in self._verdicts.values() if one.number < number]
    is_sure = self.prepared().pairing.derived is None
    sure = is_sure, is_sure or stage.tells_sure_starts
    own = beyond.own_failure(verdict, attempt.causes, earlier, stage.stands_alone, *sure)
    found = beyond.with_reason(blocked, verdict, stage.stands_alone) if own is None else own
    return dataclasses.replace(found, seconds=time.perf_counter() - start)

  def _lacks_only_neutral(self) -> bool:
    """Returns whether the sides can be compared without the variables that one side lacks."""
    if self._is_comparable is None:
      with self.conditions():
        self._is_comparable = lacks_only_neutral(self.prepared())
    return self._is_comparable

  def _accepting(self, stage: type[Stage], number: int, attempt: Attempt) -> StageVerdict:
    """Judges a stage by what the case accepts."""
    if not self._case.accepted_causes or self._under_test is None:
      return attempt.verdict
    if self._acceptance is None:
      self._acceptance = Acceptance(declared_causes(self._case.accepted_causes, False))
    known = self._under_test, self._changed

    def again(changes: Sequence[Change]) -> Attempt:
      self._change_reference(changes)
      return self._attempt(stage, number)

    def restore() -> None:
      self._under_test, self._changed = known

    return self._acceptance.settled(attempt, again, restore)

  def _change_reference(self, changes: Sequence[Change]) -> None:
    """Has the reference built anew with changes; the port, and what is known of it, stay."""
    known = self.prepared()
    before = references.Reference(known.tf1, known.tf1_training, known.inputs, known.labels)
    made, self._changed = references.changed(
      before, self._case, changes, self._progress, self._port_is_of_keras3
    )
    self._under_test = known.with_reference(made.graph, made.training)

  def _attempt(self, stage: type[Stage], number: int) -> Attempt:
    causes: tuple[Cause, ...] = ()
    try:
      with self.conditions():
        case = self._prepared_for(stage)
        findings = interchanges.checked(stage(), case, self._is_beyond, self._passed())
        findings = with_blind_spots(findings, self.prepared().tf1.pending_notes())
        findings = self._with_served_keras(findings)
    except NotApplicable as reason:
      verdict = StageVerdict.not_applicable(stage.name, number, str(reason), reason.blind_spot)
    except Tf2VerifyError as error:
      record = self._with_slip(error_record(error), error)
      verdict = StageVerdict(stage.name, number, Status.ERROR, error=record)
    except Exception as error:  # noqa: BLE001 - neither this stage's verdict nor other cases are lost
      verdict = StageVerdict(stage.name, number, Status.ERROR, error=defect_record(error))
    else:
      verdict = self._diagnosed(stage, judged(stage, number, findings), findings)
      verdict = if_proven(verdict, findings)
      causes = (*findings.causes, *(verdict.diagnosis.causes if verdict.diagnosis else ()))
    return Attempt(verdict, causes, {} if self._changed is None else self._changed.changed)

  def _passed(self) -> list[Stage]:
    passed = {name for name, known in self._verdicts.items() if known.status is Status.PASSED}
    return [one() for one in STAGES if one.name in passed and one.compares_sides]

  def _with_served_keras(self, findings: Findings) -> Findings:
    """Says with the first stage that calls the port which Keras is verified here."""
    note = None if self._named_keras else self.prepared().tf2.served_keras_note()
    if note is None:
      return findings
    self._named_keras = True
    text, is_blind_spot = note
    if is_blind_spot:
      return with_blind_spots(findings, (text,))
    return dataclasses.replace(findings, notes=(*findings.notes, text))

  def _with_slip(self, record: ErrorRecord, error: Tf2VerifyError) -> ErrorRecord:
    """Adds what inputs and labels tell of a hook that raised."""
    if self._under_test is None or not isinstance(error, UserCodeError):
      return record
    slip = hook_slips.likely_slip(error, self._under_test.inputs, self._under_test.labels)
    return dataclasses.replace(record, summary=f'{record.summary}; {slip}') if slip else record

  @contextlib.contextmanager
  def conditions(self) -> Iterator[None]:
    """Holds what has to hold while the sides run, and puts process globals back."""
    draws = loop_draws.of(self._under_test.tf1.fixed_draws if self._under_test else ())
    with process_state.preserved(), references.conditions(self._case), loop_draws.known(draws):
      yield

  def _diagnosed(
    self, stage: type[Stage], verdict: StageVerdict, findings: Findings
  ) -> StageVerdict:
    """Adds where and why the sides part to a verdict that failed by what was computed."""
    if verdict.status is not Status.FAILED or findings.compared.noun != 'tensors':
      return verdict
    if findings.failed_run is None and findings.inspection is None and not stage.diagnosed:
      return verdict
    # For failures only: 50 ms.
    from tf2verify.stages.experiments.stage_bench import bench_for
    from tf2verify.stages.failures.failed_stage import Experimenting, diagnose_stage, with_diagnosis

    self._progress(f'looking for the first divergence, {verdict.stage}')
    with self.conditions():
      start = time.perf_counter()
      seconds = self._time.seconds(self._is_beyond, stage.stands_alone)
      experimenting = Experimenting(bench_for, seconds, self._proven, self._is_beyond)
      with self._time.diagnosing():
        diagnosis = diagnose_stage(self.prepared(), verdict, findings, experimenting)
      seconds = time.perf_counter() - start
    return with_diagnosis(verdict, dataclasses.replace(diagnosis, seconds=seconds), stage)

  def _prepared_for(self, stage: type[Stage]) -> CaseUnderTest:
    try:
      return self.prepared()
    except RecordingError:
      self._ended_by = stage.name
      raise

  def _port_is_of_keras3(self) -> bool:
    return self.prepared().tf2.is_of_keras3()

  def prepared(self) -> CaseUnderTest:
    """Returns both sides, made at the first stage that runs."""
    if self._under_test is None:
      case = self._case
      check_training_modes(case.training_modes)
      declared_causes(case.accepted_causes, references.is_recorded(case))
      reference = self._source.reference(case, self._progress, self._port_is_of_keras3)
      inputs, labels = reference.inputs, reference.labels
      process_state.require_eager()
      # Stages collect the layers that they are done with. To go through all of
      # TensorFlow's modules as well would take longer than a small stage.
      if gc.get_freeze_count() == 0:
        gc.freeze()
        self._thaw = weakref.finalize(self, gc.unfreeze)
      tf2 = Tf2Layer(case, inputs, self._progress)
      self._under_test = CaseUnderTest(
        declaration=case,
        tf1=reference.graph,
        tf2=tf2,
        inputs=inputs,
        variable_names=case.variable_names,
        tolerance=tolerances.as_table(case.tolerance, tolerances.VALUE_TOLERANCES),
        gradient_tolerance=tolerances.as_table(
          case.gradient_tolerance, tolerances.GRADIENT_TOLERANCES, 'gradient_tolerance'
        ),
        regularization_tolerance=tolerances.as_table(
          case.regularization_tolerance,
          tolerances.REGULARIZATION_TOLERANCES,
          'regularization_tolerance',
        ),
        training_tolerance=tolerances.as_table(
          case.training_tolerance, tolerances.TRAINING_TOLERANCES, 'training_tolerance'
        ),
        labels=labels,
        tf1_training=reference.training,
        tf2_training=Tf2Training(case, tf2, labels, self._progress),
        left_out=frozenset(dict(StageSelection.of(case.stages).left_out)),
      )
    return self._under_test
