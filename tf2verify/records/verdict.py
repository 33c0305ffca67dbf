"""What a stage, and a case, found."""

import copy
import dataclasses
from typing import ClassVar

from tf2verify.records import verdict_html, verdict_json, verdict_text
from tf2verify.records.accepted import AcceptedCause
from tf2verify.records.diagnosis import Diagnosis
from tf2verify.records.difference import Deviation, Difference, ErrorSummary
from tf2verify.records.proven import Proven
from tf2verify.records.side_by_side import Curve, RandomOps, VariablePair
from tf2verify.records.status import Status
from tf2verify.records.table import Table
from tf2verify.safe_text import safe, safe_line


@dataclasses.dataclass(frozen=True)
class Compared:
  """How much a stage looked at.

  Attributes:
    tensors: number of tensor pairs (variables, calls or random ops where the
      stage compares those; `noun` says which).
    elements: number of element pairs; 0 where the stage compares no values.
    inconclusive: tensors that differ, but are within the tolerance of zero as a
      whole (it is too wide to tell them from zeros), or are perturbed by rounding alone
      as far as they are large.
    unpaired: tensors that only one side has.
    noun: what `tensors` counts.
    rounding: tensors that differ beyond the tolerance, but by no more than rounding
      alone moves them.
    blind_spots: kinds of things that the numbers cannot show, each with a note: outputs
      or gradients that are zero or constant, variables and inputs without influence.
  """

  tensors: int = 0
  elements: int = 0
  inconclusive: int = 0
  unpaired: int = 0
  noun: str = 'tensors'
  rounding: int = 0
  blind_spots: int = 0


@dataclasses.dataclass(frozen=True)
class Figure:
  """A number that both sides report, equal or not.

  Attributes:
    quantity: what it is: `regularization loss`.
    run: which run: `training, constant`.
    tf1: the tf1 side's.
    tf2: the tf2 side's.
  """

  quantity: str
  run: str
  tf1: float
  tf2: float


@dataclasses.dataclass(frozen=True)
class ErrorRecord:
  """Why a stage could not be run.

  Attributes:
    side: 'tf1', 'tf2' or 'case'.
    summary: one line.
    traceback_text: the user's own traceback; empty for a misuse of the API.
  """

  side: str
  summary: str
  traceback_text: str = ''


class _NoTruthValue:
  def __bool__(self) -> bool:
    raise TypeError(
      f'a {type(self).__name__} has no truth value: it can also be INCONCLUSIVE or BLOCKED; '
      'ask .passed, or compare .status with a tf2verify.Status'
    )


@dataclasses.dataclass(frozen=True)
class StageVerdict(_NoTruthValue):
  """What one stage found.

  Attributes:
    stage: the stage's name.
    number: its rung on the ladder, from 1.
    status: how it ended. Never PASSED when nothing was compared.
    compared: how much was looked at.
    differences: the findings, worst first; empty unless FAILED.
    seconds: wall time, without what earlier stages had computed already.
    reason: why, for NOT_APPLICABLE, BLOCKED and INCONCLUSIVE; for FAILED, why nothing
      could be told even if the differences were none, or ''.
    notes: what a reader of a PASSED line has to know.
    figures: numbers worth showing: total regularization losses.
    error: for ERROR.
    diagnosis: where and why the sides part, for a FAILED stage that compares values.
    deviations: every pair of floating tensors that is not the same bit by bit, so that
      other tolerances can be judged; see `tf2verify.report.rejudging`.
    tables: what reads best as a table.
    inventory: every variable of both sides, for `variable_inventory`.
    random_ops: of the runs in which their order differs.
    curves: numbers of each training step.
    extents: a summary of the differences, one per run, of stages without deviations that
      compare the sides: of `training_steps` a step each.
    blind_spots: those of the notes that tell what the numbers cannot show.
    undecided: which tensors are inconclusive.
    proven: how much of what was compared is proven for all inputs; None where the graphs were not
      related.
    accepted: the causes that the case accepts, with which it was judged.
    blocked_by: for BLOCKED, the name of the stage that did not pass.
  """

  stage: str
  number: int
  status: Status
  compared: Compared = Compared()
  differences: tuple[Difference, ...] = ()
  seconds: float = 0.0
  reason: str = ''
  notes: tuple[str, ...] = ()
  figures: tuple[Figure, ...] = ()
  error: ErrorRecord | None = None
  diagnosis: Diagnosis | None = None
  deviations: tuple[Deviation, ...] = ()
  tables: tuple[Table, ...] = ()
  inventory: tuple[VariablePair, ...] = ()
  random_ops: tuple[RandomOps, ...] = ()
  curves: tuple[Curve, ...] = ()
  extents: tuple[ErrorSummary, ...] = ()
  blind_spots: tuple[str, ...] = ()
  undecided: tuple[str, ...] = ()
  proven: Proven | None = None
  accepted: tuple[AcceptedCause, ...] = ()
  blocked_by: str = ''

  # Of a `first_failure` alone: there it says that there is one, as an Optional does.
  _is_first_failure: ClassVar[bool] = False

  @classmethod
  def blocked(cls, stage: str, number: int, by: str, status: Status) -> 'StageVerdict':
    """Returns the verdict of a stage that is not run, since another one ended with a status."""
    reason = f'blocked: {by} {status.value}'
    return cls(stage, number, Status.BLOCKED, reason=reason, blocked_by=by)

  @classmethod
  def not_applicable(
    cls, stage: str, number: int, reason: str, blind_spot: str = ''
  ) -> 'StageVerdict':
    """Returns the verdict of a stage that has nothing to look at, and what is missed by that."""
    spots = (blind_spot,) if blind_spot else ()
    return cls(stage, number, Status.NOT_APPLICABLE, reason=reason, notes=spots, blind_spots=spots)

  def __bool__(self) -> bool:
    return self._is_first_failure or super().__bool__()

  def __repr__(self) -> str:
    said = verdict_text.outcome_text(self)
    return safe_line(f'<StageVerdict {self.stage}: {self.status.value}, {said}>')

  def _repr_html_(self) -> str:
    return verdict_html.stage_html(self)

  @property
  def passed(self) -> bool:
    """Whether the stage has PASSED; False also where it could not be decided, or did not apply."""
    return self.status is Status.PASSED

  def to_text(self) -> str:
    """Returns the verdict for a terminal: one line, and the findings below it."""
    return safe(verdict_text.stage_text(self), longest=None)


@dataclasses.dataclass(frozen=True)
class CaseVerdict(_NoTruthValue):
  """What the ladder found for one case.

  Attributes:
    case: the class's name.
    module: the file or module that declares it.
    stages: one verdict per stage of the ladder, in order.
    environment: names and versions: TensorFlow, tf-keras, Python, platform.
    run_again: the command that runs the first failing stage again.
  """

  case: str
  module: str
  stages: tuple[StageVerdict, ...]
  environment: tuple[tuple[str, str], ...] = ()
  run_again: str = ''

  def __repr__(self) -> str:
    return safe_line(f'<CaseVerdict {verdict_text.case_line(self)}>')

  def _repr_html_(self) -> str:
    return verdict_html.case_html(self)

  def same_error(self, stage: StageVerdict) -> str | None:
    """Returns the first stage before one that had the same ERROR; None without one."""
    if stage.error is None:
      return None
    own = stage.error.side, stage.error.summary
    earlier = (one for one in self.stages if one.number < stage.number)
    errors = ((one.stage, one.error) for one in earlier if one.error is not None)
    return next((name for name, error in errors if (error.side, error.summary) == own), None)

  @property
  def passed(self) -> bool:
    """Whether the case has PASSED: no stage that applies ended in any other way."""
    return self.status is Status.PASSED

  @property
  def status(self) -> Status:
    """The most severe status of the stages; NOT_APPLICABLE only if nothing was looked at."""
    graver = [stage.status for stage in self.stages if stage.status is not Status.NOT_APPLICABLE]
    order = list(Status)
    return max(graver, key=order.index, default=Status.NOT_APPLICABLE)

  @property
  def failures(self) -> tuple[StageVerdict, ...]:
    """The stages that FAILED, are an ERROR or INCONCLUSIVE: what one causes is BLOCKED."""
    return tuple(stage for stage in self.stages if stage.status.is_failure)

  @property
  def first_failure(self) -> StageVerdict | None:
    """The first stage that FAILED, is an ERROR or is INCONCLUSIVE; None if there is none.

    Unlike any other verdict it is true in a condition: `if verdict.first_failure:`.
    """
    if not self.failures:
      return None
    found = copy.copy(self.failures[0])
    object.__setattr__(found, '_is_first_failure', True)
    return found

  @property
  def seconds(self) -> float:
    """Wall time of all stages."""
    return sum(stage.seconds for stage in self.stages)

  def to_text(self) -> str:
    """Returns the report for a terminal."""
    return safe(verdict_text.case_text(self), longest=None)

  def to_json(self) -> str:
    """Returns the report as JSON; `schema_version` identifies its structure."""
    return verdict_json.case_json(self)
