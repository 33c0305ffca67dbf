"""What a stage shows although an earlier one has failed: mistakes that follow from none before.

A first port has several mistakes, and most stages need those before them. So a stage that is
blocked is run all the same. It fails by itself if an experiment proves a mistake at lines of the
port that no earlier stage has named, or if what it compares depends on no earlier stage.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from tf2verify.records.diagnosis import OF_STARTS, Cause, Diagnosis, Source
from tf2verify.records.difference import Aspect
from tf2verify.records.experiment import Edit
from tf2verify.records.observation import SourceLine
from tf2verify.records.status import Status
from tf2verify.records.verdict import StageVerdict

_START = 'initial value'
_PAIRED = (Aspect.TRAINABLE, Aspect.VALUES, Aspect.DISTRIBUTION, Aspect.ORDER, Aspect.NON_FINITE)


def can_be_passed(
  failed: StageVerdict, by_what_stands_alone: bool, lacks_only_neutral: Callable[[], bool]
) -> bool:
  """Returns whether a stage can be run although an earlier one has failed.

  Args:
    failed: the verdict of that.
    by_what_stands_alone: whether it compares what does not depend on that. All else needs a
      counterpart for every variable that does not leave all as it is.
    lacks_only_neutral: returns whether no other variable is without a counterpart.
  """
  if failed.status is not Status.FAILED or failed.compared.noun == 'calls':
    return False
  is_inventory = failed.compared.noun == 'variables'
  if not is_inventory or by_what_stands_alone:
    return True
  aspects = {one.aspect for one in failed.differences}
  return aspects <= set(_PAIRED) or (
    aspects <= {*_PAIRED, Aspect.PRESENCE} and lacks_only_neutral()
  )


def own_failure(
  verdict: StageVerdict,
  causes: Sequence[Cause],
  earlier: Sequence[StageVerdict],
  stands_alone: bool,
  pairs_are_sure: bool = True,
  starts_are_sure: bool = True,
) -> StageVerdict | None:
  """Returns the verdict of a stage with what follows from no earlier failure; None for nothing.

  Args:
    verdict: of the stage, run although it is blocked.
    causes: what it and its diagnosis have found.
    earlier: the verdicts of the stages before it.
    stands_alone: whether what it compares does not depend on those.
    pairs_are_sure: whether it is known which variables belong together, whatever both sides
      compute.
    starts_are_sure: likewise of the variables whose initial values differ.
  """
  if verdict.status is not Status.FAILED:
    return None
  if stands_alone:
    if not causes:
      return verdict
    known = verdict.diagnosis or Diagnosis()
    rules = {cause.rule for cause in known.causes}
    others = tuple(cause for cause in causes if cause.rule not in rules)
    return dataclasses.replace(
      verdict, diagnosis=dataclasses.replace(known, causes=(*known.causes, *others))
    )
  names = ', '.join(one.stage for one in earlier if one.status is Status.FAILED)
  diagnosis = verdict.diagnosis or Diagnosis()
  told = [one.diagnosis for one in earlier if one.diagnosis is not None]
  texts = {cause.text for known in told for cause in known.causes}
  texts |= {d.hint for one in earlier for d in one.differences}
  known_sources = [source for known in told for source in known.sources]
  sources = [one for one in diagnosis.sources if _is_new(one, known_sources, starts_are_sure)]
  tried = [one.experiment for one in sources if one.experiment is not None]
  numbers = {experiment.number for experiment in tried}
  new = [cause for cause in causes if cause.text not in texts]
  own = [
    cause
    for cause in new
    if _is_own(cause, numbers, starts_are_sure if cause.rule == OF_STARTS else pairs_are_sure)
  ]
  said = {cause.text for cause in own}
  if starts_are_sure:
    starts = (d for d in verdict.differences if d.quantity == _START and d.hint not in texts)
    said |= {known.hint for known in starts if known.hint}
  if not said and not sources:
    return None
  note = f'these numbers also show what {names} shows; the causes here are further ones'
  return dataclasses.replace(
    verdict,
    differences=tuple(
      dataclasses.replace(one, hint=one.hint if one.hint in said else '')
      for one in verdict.differences
    ),
    diagnosis=dataclasses.replace(
      diagnosis,
      causes=tuple(cause for cause in diagnosis.causes if cause.text in said),
      sources=tuple(sources),
      gradient_differences=(),
      updates=(),
      growth=(),
      without_experiments='',
    ),
    notes=(*verdict.notes, note),
  )


def with_reason(blocked: StageVerdict, tried: StageVerdict, stands_alone: bool) -> StageVerdict:
  """Returns the verdict of a stage that shows nothing of its own, with why it does not.

  Args:
    blocked: that verdict.
    tried: that of the stage, run although it is blocked.
    stands_alone: whether what it compares does not depend on the stages before it.
  """
  if not stands_alone or tried.status is not Status.NOT_APPLICABLE or not tried.reason:
    return blocked
  return dataclasses.replace(blocked, notes=(*blocked.notes, f'looked into: {tried.reason}'))


def _is_own(cause: Cause, numbers: set[int], pairs_are_sure: bool) -> bool:
  if cause.experiment is not None:
    return cause.experiment.number in numbers
  return bool(cause.numbers) or (pairs_are_sure and cause.by_itself)


def _is_new(source: Source, known: Sequence[Source], starts_are_sure: bool) -> bool:
  """Returns whether a source follows from none that earlier stages have shown.

  One line may compute several things: a setting of its own is one of another operation.
  """
  if source.is_initial_value:
    # What a variable starts with follows from nothing that is computed.
    return starts_are_sure and all(source.tf1_op != other.tf1_op for other in known)
  if source.experiment is None:
    return False
  # One mistake can be corrected by several edits, of which another stage may find another one.
  if _places(source) & {place for other in known for place in _lines(other.began_at)}:
    return False
  operations = {name for other in known for name in _operations(other)}
  if source.experiment.edit is Edit.SETTING and not _operations(source) & operations:
    settings = {setting for other in known for setting in _settings(other)}
    return not _settings(source) <= settings
  return not _places(source) & {place for other in known for place in _places(other)}


def _places(source: Source) -> set[tuple[str, int]]:
  """Returns the port's lines at a source, and its operations."""
  lines = _lines((source.tf2_source, *source.tf2_lines))
  return lines | {(name, 0) for name in _operations(source)}


def _lines(known: Iterable[SourceLine | None]) -> set[tuple[str, int]]:
  return {line.at for line in known if line is not None}


def _operations(source: Source) -> set[str]:
  return {f'tf1 {source.tf1_op}', f'tf2 {source.tf2_op}'}


def _settings(source: Source) -> set[tuple[str, str, str]]:
  """Returns what differs there, whatever operation it is at."""
  return {(known.what, known.tf1, known.tf2) for known in source.differences}
