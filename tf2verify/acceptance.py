"""Causes that a case accepts: the port is judged by TF1 with that one thing changed."""

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tf2verify.diagnosis.rules import RULES
from tf2verify.errors import CaseDefinitionError
from tf2verify.records.accepted import WHERE_ONE_IS, AcceptedCause, Change, Changed
from tf2verify.records.diagnosis import Cause
from tf2verify.records.status import Status
from tf2verify.records.verdict import StageVerdict
from tf2verify.sides.tf1.graphs.changed_reference import Places, described

# So many changes are tried in a stage: places of one epsilon, say.
_MOST = 24
# Stages that compare no numbers of TF1.
_OF_PORT_ALONE = (
  'no_new_variables',
  'variable_inventory',
  'execution_modes',
  'determinism',
)
# Changes of numbers that every place of the model may have alike.
_EVERYWHERE = (Changed.EPSILON, Changed.SLOPE)
_VARIANCE = 'biased_variance'
# What a moving average is called among the differences of a training step.
_STATE = 'state'
# Compares no step after the first one that differs.
_ENDS_EARLY = 'training_steps'
_LAST_STAGE = {rule.name: rule.predicted_by for rule in RULES if rule.predicted_by}


@dataclasses.dataclass(frozen=True, eq=False)
class Attempt:
  """A stage, run with a reference that has changes."""

  verdict: StageVerdict
  causes: tuple[Cause, ...]  # what is known of why it failed
  changed: Mapping[Change, Places]  # what the changes have changed


# Runs a stage again, with a reference that has these changes.
Again = Callable[[tuple[Change, ...]], Attempt]


def declared_causes(declared: Any, is_recorded: bool) -> dict[str, str]:
  """Returns the causes that a case accepts, with its reasons.

  Args:
    declared: `accepted_causes` of the case.
    is_recorded: whether its reference is a recording.

  Raises:
    CaseDefinitionError: it is not a mapping from causes that can be predicted to reasons.
  """
  if not isinstance(declared, Mapping):
    raise CaseDefinitionError(
      f'accepted_causes is {declared!r:.80}; it must be a mapping from the name of a cause to the '
      "reason why it is accepted: {'biased_variance': 'Keras 3 computes it so'}"
    )
  for name, reason in declared.items():
    if name not in _LAST_STAGE:
      raise CaseDefinitionError(_refused(name))
    if not isinstance(reason, str) or not reason.strip():
      raise CaseDefinitionError(
        f'accepted_causes[{name!r}] is {reason!r:.80}, which is not a reason; the report has to '
        'say '
        'why the difference is accepted'
      )
  if declared and is_recorded:
    raise CaseDefinitionError(
      'accepted_causes needs a reference that is built here: the prediction of a cause is '
      'computed by running TF1 with that one setting changed, and tf1_recording holds only the '
      'numbers of the unchanged TF1; leave one of them out'
    )
  return dict(declared)


def _refused(name: Any) -> str:
  able = ', '.join(sorted(_LAST_STAGE))
  if any(rule.name == name for rule in RULES):
    return (
      f'accepted_causes names {name}, a cause that does not predict the numbers of the port from '
      f'those of TF1, so a second fault would go unnoticed; causes that can be accepted: {able}'
    )
  known = [rule.name for rule in RULES]
  close = difflib.get_close_matches(str(name), known, 1, 0.6)
  guess = f' (did you mean {close[0]!r}?)' if close else ''
  return (
    f'accepted_causes names {name!r}, which is not a cause{guess}; causes that can be accepted: '
    f'{able}'
  )


class Acceptance:
  """What a case accepts, and what of it has occurred.

  A cause is accepted where TF1, run with the one thing changed that the cause names, computes what
  the port computes. From then on the port is judged by that.
  """

  def __init__(self, reasons: Mapping[str, str]) -> None:
    self._reasons = reasons
    self._changes: dict[str, tuple[Change, ...]] = {}
    self._changed: dict[str, str] = {}

  def settled(self, attempt: Attempt, again: Again, restore: Callable[[], object]) -> StageVerdict:
    """Returns the verdict on a stage: PASSED where accepted causes explain all that differs.

    Args:
      attempt: the stage, run with what has been accepted so far.
      again: runs it again.
      restore: takes back the last changes.
    """
    if attempt.verdict.stage in _OF_PORT_ALONE:
      return attempt.verdict
    if attempt.verdict.status is Status.NOT_APPLICABLE:
      return self._without_occurrence(attempt.verdict)
    if attempt.verdict.status is Status.ERROR:
      return attempt.verdict
    before = tuple(self._with(name, attempt, 0, 0.0) for name in self._changes)
    if attempt.verdict.status is not Status.FAILED:
      verdict = dataclasses.replace(attempt.verdict, accepted=before)
      return self._without_occurrence(verdict)
    trial = _Trial(self._reasons, self._changes, attempt)
    tried = trial.run(again)
    trial.notes += self._not_seen(attempt.verdict.stage, trial)
    if tried is None:
      restore()
      notes = (*attempt.verdict.notes, *trial.notes)
      return dataclasses.replace(attempt.verdict, accepted=before, notes=notes)
    found: list[AcceptedCause] = []
    self._changes = trial.changes
    for name in self._changes:
      many, greatest = trial.explained.get(name, (0, 0.0))
      found.append(self._with(name, tried, many, greatest))
    notes = (*tried.verdict.notes, *trial.notes)
    return dataclasses.replace(tried.verdict, accepted=tuple(found), notes=notes)

  def _with(self, name: str, attempt: Attempt, many: int, greatest: float) -> AcceptedCause:
    made: dict[Changed, tuple[Change, Places]] = {}
    for change in self._changes[name]:
      places = attempt.changed.get(change, {})
      first, known = made.get(change.what, (change, {}))
      # What one change has set and another set back was never changed.
      known = {**known, **{p: (known.get(p, v)[0], v[1]) for p, v in places.items()}}
      made[change.what] = first, known
    texts = [described(change, places) for change, places in made.values() if places]
    if texts:
      self._changed[name] = ' and '.join(texts)
    changed = self._changed.get(name, '')
    return AcceptedCause(name, self._reasons[name], changed, many, greatest)

  def _not_seen(self, stage: str, trial: '_Trial') -> list[str]:
    """Says of causes which a failed stage is the last to show that nothing points to them."""
    return [
      f'accepted cause {name} was not tried: nothing that differs here shows it'
      for name in self._reasons
      if _LAST_STAGE[name] == stage and name not in trial.changes and name not in trial.tried
    ]

  def _without_occurrence(self, verdict: StageVerdict) -> StageVerdict:
    """Says of causes that would have occurred by now that they do not."""
    # A stage that does not apply, since nothing is trained, will not show a cause either.
    if verdict.status not in (Status.PASSED, Status.NOT_APPLICABLE):
      return verdict
    notes = [
      f'accepted cause {name} no longer occurs: the port agrees with TF1 without it; leave it out '
      'of accepted_causes'
      for name in self._reasons
      if _LAST_STAGE[name] == verdict.stage and name not in self._changes
    ]
    return dataclasses.replace(verdict, notes=(*verdict.notes, *notes)) if notes else verdict


class _Trial:
  """Changes the reference until a stage passes, or nothing that is accepted is left to change.

  Attributes:
    changes: by cause.
    explained: by cause, how many findings it has explained, and the greatest difference of them.
    notes: what was tried and is no explanation.
    tried: the causes of which a change was tried.
  """

  def __init__(
    self, reasons: Mapping[str, str], known: Mapping[str, tuple[Change, ...]], first: Attempt
  ) -> None:
    self._reasons = reasons
    self._first = first
    self.changes = dict(known)
    self.explained: dict[str, tuple[int, float]] = {}
    self.notes: list[str] = []
    self.tried: set[str] = set()

  def run(self, again: Again) -> Attempt | None:
    """Returns the last attempt; None where no change is of any use."""
    last, tried, current = self._first, set[tuple[str, Change]](), True
    for _ in range(_MOST):
      found = self._next(last.causes, tried) or self._further(last.verdict, tried)
      if found is None:
        break
      tried.add(found)
      name, change = found
      self.tried.add(name)
      changes = {**self.changes, name: (*self.changes.get(name, ()), change)}
      attempt = again(tuple(one for several in changes.values() for one in several))
      if attempt.verdict.status is Status.ERROR:
        error = attempt.verdict.error
        said = '' if error is None else error.summary
        self.notes.append(f'accepted cause {name} cannot be predicted here: {said}')
        current = False
        continue
      self._count(name, last.verdict, attempt.verdict)
      self.changes, last, current = changes, attempt, True
      if attempt.verdict.status is not Status.FAILED:
        return attempt
    if last is self._first:
      return None
    if not current:
      last = again(tuple(one for several in self.changes.values() for one in several))
    return self._judged(last)

  def _judged(self, last: Attempt) -> Attempt | None:
    """Returns the last attempt where what is left over is less than what there was."""
    names = ', '.join(sorted(self.explained))
    if not _is_less(last.verdict, self._first.verdict):
      self.notes.append(f'accepted, but not the cause of these differences: {names}')
      return None
    self.notes.append(f'these differences remain with the accepted causes: {names}')
    return last

  def _next(
    self, causes: Sequence[Cause], tried: set[tuple[str, Change]]
  ) -> tuple[str, Change] | None:
    for cause in causes:
      if cause.rule not in self._reasons or cause.change is None:
        continue
      change = cause.change
      everywhere = dataclasses.replace(change, places=())
      if change.what in _EVERYWHERE and cause.rule not in self.changes:
        change = everywhere
      if (cause.rule, change) not in tried:
        return cause.rule, change
    return None

  def _further(
    self, verdict: StageVerdict, tried: set[tuple[str, Change]]
  ) -> tuple[str, Change] | None:
    """Returns the biased variance at moving averages that show it in this stage.

    With a decay near 1 it is within the tolerance of a single call, and not of a training step.
    """
    if _VARIANCE not in self._reasons:
      return None
    known = {place for one in self.changes.get(_VARIANCE, ()) for place in one.places}
    names = {one.tf1_subject for one in verdict.differences if one.quantity == _STATE} - known
    change = Change(Changed.VARIANCE, places=tuple(sorted(names)), words=(WHERE_ONE_IS,))
    return (_VARIANCE, change) if names and (_VARIANCE, change) not in tried else None

  def _count(self, name: str, before: StageVerdict, after: StageVerdict) -> None:
    left = {known.key for known in after.differences}
    gone = [known for known in before.differences if known.key not in left]
    sizes = [known.array.greatest_absolute for known in gone if known.array is not None]
    many, greatest = self.explained.get(name, (0, 0.0))
    finite = [size for size in sizes if math.isfinite(size)]
    self.explained[name] = many + len(gone), max([greatest, *finite])


def _is_less(last: StageVerdict, first: StageVerdict) -> bool:
  """Returns whether less differs than in the first attempt."""
  before, after = ({known.key.run for known in one.differences} for one in (first, last))
  if last.stage == _ENDS_EARLY and after.isdisjoint(before):
    return True  # only a later step differs, with more tensors perhaps
  return _extent(last) < _extent(first)


def _extent(verdict: StageVerdict) -> tuple[int, float]:
  """Returns how much differs: how many findings, and by how much together."""
  sizes = [
    known.array.greatest_absolute for known in verdict.differences if known.array is not None
  ]
  return len(verdict.differences), sum(size for size in sizes if math.isfinite(size))
