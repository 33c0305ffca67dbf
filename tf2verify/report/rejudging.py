"""A stored report, judged by other tolerances, without running a model."""

import dataclasses

from tf2verify.numerics.frontier import passes, required_atol, required_rtol
from tf2verify.numerics.telling import within_allowance_of_zero
from tf2verify.numerics.tolerance import Tolerance
from tf2verify.records.difference import Aspect, Deviation, Difference, Judgement
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, StageVerdict
from tf2verify.records.verdict_text import rounded_up

_UNCLEAR = (Judgement.NEAR_ZERO, Judgement.DEGENERATE)
_EXCUSED = (Judgement.ROUNDING, Judgement.DEGENERATE)
_TELLING = ('output', 'regularization loss')


@dataclasses.dataclass(frozen=True)
class Rejudged:
  """A verdict by other tolerances."""

  case: CaseVerdict  # the verdict
  # One line per stage whose status is another now, and the new notes of stages that did not fail,
  # which a run does not show.
  changes: tuple[str, ...]


def rejudged(case: CaseVerdict, rtol: float | None, atol: float | None) -> Rejudged:
  """Judges every compared pair of floating tensors by another tolerance.

  Only values are judged again. What is missing, has another shape, dtype or
  non-finite pattern, or comes in another order stays as it is, and so do stages that
  did not run.

  Args:
    case: the verdict to start from.
    rtol: in place of every rtol; None to keep them.
    atol: in place of every atol; None to keep them.

  Raises:
    CaseDefinitionError: a figure is not finite or negative.
  """
  if rtol is None and atol is None:
    return Rejudged(case, ())
  Tolerance(rtol or 0.0, atol or 0.0)
  stages = tuple(_stage(stage, rtol, atol) for stage in case.stages)
  stages = tuple(_no_longer_blocked(stage, stages) for stage in stages)
  given = (('rtol', rtol), ('atol', atol))
  by = ', '.join(f'{name} {figure:g}' for name, figure in given if figure is not None)
  changes = tuple(
    f'{after.stage}: {before.status.value} -> {after.status.value} at {by}'
    for before, after in zip(case.stages, stages, strict=True)
    if before.status is not after.status
  )
  remarks = tuple(
    f'{after.stage}: {note}'
    for before, after in zip(case.stages, stages, strict=True)
    for note in after.notes[len(before.notes) :]
    if after.status is not Status.FAILED
  )
  return Rejudged(dataclasses.replace(case, stages=stages), changes + remarks)


def _stage(stage: StageVerdict, rtol: float | None, atol: float | None) -> StageVerdict:
  if not stage.deviations:
    return stage
  deviations = tuple(_deviation(known, rtol, atol) for known in stage.deviations)
  known = {_key(difference): difference for difference in stage.differences}
  differences = _other_differences(stage) + _failures(deviations, known, stage.deviations)
  compared = _compared(stage.compared, stage.deviations, deviations)
  reason = _reason(stage, deviations, compared)
  status = Status.FAILED if differences else Status.INCONCLUSIVE if reason else Status.PASSED
  of_values = (Aspect.VALUES, Aspect.NON_FINITE)
  differ_in_values = any(found.aspect in of_values for found in differences)
  return dataclasses.replace(
    stage,
    status=status,
    compared=compared,
    differences=differences,
    deviations=deviations,
    reason=reason,
    notes=(*stage.notes, *_notes(stage.deviations, deviations)),
    diagnosis=stage.diagnosis if differ_in_values else None,
  )


def _key(found: Difference | Deviation) -> tuple[str, str, str]:
  return found.quantity, found.subject, found.run


def _deviation(known: Deviation, rtol: float | None, atol: float | None) -> Deviation:
  new = dataclasses.replace(
    known,
    rtol=known.rtol if rtol is None else rtol,
    atol=known.atol if atol is None else atol,
  )
  return dataclasses.replace(new, judgement=_judgement(known, new))


def _judgement(known: Deviation, new: Deviation) -> Judgement:
  if (new.rtol, new.atol) == (known.rtol, known.atol):
    return known.judgement
  passed = known.judgement in (Judgement.PASSED, Judgement.NEAR_ZERO)
  if passed and new.rtol >= known.rtol and new.atol >= known.atol:
    fits = True
  elif not passed and new.rtol <= known.rtol and new.atol <= known.atol:
    fits = False
  else:
    fits = passes(new.frontier, new.rtol, new.atol)
  if not fits:
    return known.judgement if known.judgement in _EXCUSED else Judgement.FAILED
  smaller = new.atol <= known.atol and new.rtol <= known.rtol
  if known.judgement is Judgement.PASSED and smaller:
    return Judgement.PASSED
  near_zero = within_allowance_of_zero(new.magnitude, new.rtol, new.atol)
  return Judgement.NEAR_ZERO if near_zero else Judgement.PASSED


def _other_differences(stage: StageVerdict) -> tuple[Difference, ...]:
  judged = {_key(deviation) for deviation in stage.deviations}
  return tuple(
    difference
    for difference in stage.differences
    if difference.aspect is not Aspect.VALUES or _key(difference) not in judged
  )


def _failures(
  deviations: tuple[Deviation, ...],
  known: dict[tuple[str, str, str], Difference],
  before: tuple[Deviation, ...],
) -> tuple[Difference, ...]:
  found = []
  for old, new in zip(before, deviations, strict=True):
    if new.judgement is not Judgement.FAILED:
      continue
    stored = known.get(_key(new))
    same = (old.rtol, old.atol) == (new.rtol, new.atol)
    difference = stored if stored is not None and same else _failure(new, stored)
    found.append((max(y / (new.atol + new.rtol * x + 1e-300) for x, y in new.frontier), difference))
  found.sort(key=lambda pair: -pair[0])
  return tuple(difference for _, difference in found)


def _failure(deviation: Deviation, stored: Difference | None) -> Difference:
  """Returns a finding as the stored points tell it; how many elements differ, they do not."""
  rtol, atol = deviation.rtol, deviation.atol
  x, y = max(deviation.frontier, key=lambda point: point[1] - atol - rtol * point[0])
  ways = (
    ('atol', required_atol(deviation.frontier, rtol)),
    ('rtol', required_rtol(deviation.frontier, atol)),
  )
  required = ' or '.join(f'{name} {rounded_up(way)}' for name, way in ways if way < float('inf'))
  return Difference(
    deviation.quantity,
    deviation.subject,
    Aspect.VALUES,
    f'|tf1| is {x:.3g} at the worst element ({deviation.dtype})',
    f'|tf2 - tf1| is {y:.3g} there (allowed {atol:.3g} + {rtol:.3g}·|tf1|)'
    + (f'; would pass with {required}' if required else ''),
    deviation.run,
    hint=stored.hint if stored is not None else '',
  )


def _compared(
  compared: Compared, before: tuple[Deviation, ...], after: tuple[Deviation, ...]
) -> Compared:
  def more(judgements: tuple[Judgement, ...]) -> int:
    counts = [sum(known.judgement in judgements for known in side) for side in (before, after)]
    return counts[1] - counts[0]

  return dataclasses.replace(
    compared,
    inconclusive=compared.inconclusive + more(_UNCLEAR),
    rounding=compared.rounding + more((Judgement.ROUNDING,)),
  )


def _reason(stage: StageVerdict, deviations: tuple[Deviation, ...], compared: Compared) -> str:
  """Returns why the stage can tell nothing now, were there no differences; '' if it can."""
  if compared.tensors and compared.inconclusive == compared.tensors:
    return stage.reason or (
      'every tensor is within these tolerances of zero, so zeros would also pass'
    )
  before = stage.compared
  all_unclear = before.tensors and before.inconclusive == before.tensors
  degenerate = _has_degenerate_output(stage.deviations)
  if (all_unclear or degenerate) and not _has_degenerate_output(deviations):
    return ''
  return stage.reason


def _has_degenerate_output(deviations: tuple[Deviation, ...]) -> bool:
  return any(
    known.judgement is Judgement.DEGENERATE and known.quantity in _TELLING for known in deviations
  )


def _notes(before: tuple[Deviation, ...], after: tuple[Deviation, ...]) -> list[str]:
  pairs = list(zip(before, after, strict=True))
  changed = [(old, new) for old, new in pairs if (old.rtol, old.atol) != (new.rtol, new.atol)]
  excused = sum(new.judgement in _EXCUSED for _, new in changed)
  failing = sum(
    old.judgement is not Judgement.FAILED and new.judgement is Judgement.FAILED
    for old, new in changed
  )
  notes = []
  if excused:
    notes.append(
      f're-judged: {_tensors(excused)} excused by rounding noise, which was measured for the '
      'stored tolerances'
    )
  if failing:
    notes.append(
      f're-judged: {_tensors(failing)} beyond the tolerance now; whether rounding '
      'explains it was not measured: declare the tolerance in the case and run it'
    )
  return notes


def _tensors(count: int) -> str:
  return '1 tensor is' if count == 1 else f'{count} tensors are'


def _no_longer_blocked(stage: StageVerdict, stages: tuple[StageVerdict, ...]) -> StageVerdict:
  if stage.status is not Status.BLOCKED:
    return stage
  culprits = [other for other in stages if other.stage == stage.blocked_by]
  if not culprits or culprits[0].status in (Status.FAILED, Status.ERROR):
    return stage
  status = culprits[0].status.value
  reason = f'not run: {culprits[0].stage} is {status} now; declare the tolerance and run the case'
  return dataclasses.replace(stage, reason=reason)
