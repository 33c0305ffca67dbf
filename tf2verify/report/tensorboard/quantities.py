"""The numbers of a stage, and their distributions."""

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence

from tf2verify.numerics import frontier
from tf2verify.numerics.error_summary import extents, merged
from tf2verify.records.difference import Deviation, ErrorSummary, Judgement
from tf2verify.records.events import Bucket, Histogram, Scalar, Text
from tf2verify.records.status import Status
from tf2verify.records.verdict import StageVerdict
from tf2verify.report.html.words import KEEPS_ALL_PAIRS
from tf2verify.report.tensorboard.names import tag

# Histograms of single tensors that a stage gets at most, the worst.
MOST_TENSORS = 50
_COMPARED = (Status.PASSED, Status.FAILED, Status.INCONCLUSIVE)
_EACH_STEP = 'each_step'
_STEP = re.compile(r'step (\d+)')
_DESCRIPTIONS = {
  'greatest_absolute': 'max |tf2 - tf1| of all tensors; NaN where a difference is not a number '
  '(shape, NaN on one side)',
  'greatest_relative': 'max |tf2 - tf1| / |tf1| of all tensors; infinite where tf1 is 0',
  'share_of_tolerance': 'max |tf2 - tf1| / (atol + rtol·|tf1|), without tensors that rounding '
  'explains; beyond 1 the stage fails',
  'required_atol': (
    'the smallest atol with which all tensors pass, given their rtol, without those that rounding '
    'explains'
  ),
  'required_rtol': (
    'the smallest rtol with which all tensors pass, given their atol, without those that rounding '
    'explains'
  ),
  'rounding_noise': 'largest rounding noise; measured for tensors beyond the tolerance only',
  'tensors_that_differ': (
    'how many tensors differ beyond the tolerance; for the first two stages, variables'
  ),
}
_ULPS = (
  'elements by their distance in units in the last place: at 0 the equal ones, at n those from '
  '2^(n-1) to 2^n - 1 apart; a sample of the elements of tensors that are not the same bit by bit'
)
_SHARES = (
  'tensors by log10 of |tf2 - tf1| / (atol + rtol·|tf1|): beyond 0 they fail, or rounding explains '
  'them; without tensors that are the same bit by bit'
)


@dataclasses.dataclass(frozen=True)
class StageNumbers:
  """What is drawn of a stage.

  Attributes:
    of_run: numbers and distributions of this run; their step is that of the run.
    of_last: those of the last run alone, with steps of their own.
    remarks: what could not be drawn.
  """

  of_run: tuple[Scalar | Histogram | Text, ...]
  of_last: tuple[Scalar | Histogram | Text, ...]
  remarks: tuple[str, ...]


def numbers_of(stage: StageVerdict, step: int) -> StageNumbers:
  """Returns what is drawn of a stage; nothing of one that has compared nothing.

  Args:
    stage: the verdict.
    step: number of the run.
  """
  if stage.status not in _COMPARED:
    return StageNumbers((), (), ())
  name = stage.stage
  of_run: list[Scalar | Histogram] = []
  remarks = []
  found = _extent(stage)
  if found is None:
    of_run.append(_scalar((name, 'tensors_that_differ'), step, len(stage.differences)))
  else:
    of_run += _scalars((name,), step, found)
    of_run += _ulps(tag(name, 'ulps'), step, found.ulps)
    drawn, left_out = _share_buckets(stage.deviations)
    if drawn:
      of_run.append(Histogram(tag(name, 'tensors_by_share'), step, drawn, _SHARES))
    if left_out:
      remarks.append(
        f'{name}: {left_out} of {len(stage.deviations)} tensors have no finite share of the '
        'tolerance above 0, and are not in tensors_by_share'
      )
    remarks += _not_finite(name, found)
  tensors, more = _failed_tensors(stage, step)
  if more:
    remarks.append(
      f'{name}: the {MOST_TENSORS} worst failed tensors are drawn, {more} more are not'
    )
  steps = [
    scalar
    for number, part in _steps(stage)
    for scalar in _scalars((name, _EACH_STEP), number, part)
  ]
  return StageNumbers(tuple(of_run), (*tensors, *steps), tuple(remarks))


def _extent(stage: StageVerdict) -> ErrorSummary | None:
  """Returns how far the sides are apart; None for a stage that does not tell it."""
  if not stage.compared.tensors and not stage.differences:
    return None
  parts: Sequence[ErrorSummary] = stage.extents
  if _steps(stage):
    # What comes after the first step that differs are consequences.
    first = next((place for place, part in enumerate(parts, 1) if part.differing), len(parts))
    parts = parts[:first]
  if stage.stage in KEEPS_ALL_PAIRS or stage.deviations:
    parts = extents(stage.deviations, stage.differences)
  return merged('', parts, len(stage.differences)) if parts else None


def _scalars(place: tuple[str, ...], step: int, found: ErrorSummary) -> Iterator[Scalar]:
  numbers = {
    'greatest_absolute': found.absolute,
    'greatest_relative': found.relative,
    'share_of_tolerance': found.share,
    'required_atol': found.required_atol,
    'required_rtol': found.required_rtol,
    'rounding_noise': found.noise,
    'tensors_that_differ': found.differing,
  }
  for quantity, number in numbers.items():
    if number is not None:
      yield _scalar((*place, quantity), step, number)


def _scalar(place: tuple[str, ...], step: int, number: float) -> Scalar:
  return Scalar(tag(*place), step, float(number), _DESCRIPTIONS[place[-1]])


def _not_finite(name: str, found: ErrorSummary) -> Iterator[str]:
  numbers = (
    ('max absolute difference', found.absolute),
    ('max relative difference', found.relative),
    ('fraction of the tolerance', found.share),
  )
  told = [f'{what} {number}' for what, number in numbers if not math.isfinite(number)]
  if told:
    yield f'{name}: {", ".join(told)}'


def _ulps(name: str, step: int, counts: Sequence[int]) -> list[Histogram]:
  if not counts:
    return []
  buckets = tuple((n - 0.5, n + 0.5, float(count)) for n, count in enumerate(counts))
  return [Histogram(name, step, buckets, _ULPS)]


def _share_of(known: Deviation) -> float:
  return frontier.greatest_share(known.frontier, known.rtol, known.atol)


def _share_buckets(deviations: Sequence[Deviation]) -> tuple[tuple[Bucket, ...], int]:
  """Returns tensors by their share of the tolerance, in half decades, and how many have none."""
  shares = [share for share in map(_share_of, deviations) if 0 < share < math.inf]
  places = [math.floor(2 * math.log10(share)) for share in shares]
  if not places:
    return (), len(deviations)
  buckets = tuple(
    (place / 2, (place + 1) / 2, float(places.count(place)))
    for place in range(min(places), max(places) + 1)
  )
  return buckets, len(deviations) - len(shares)


def _failed_tensors(stage: StageVerdict, step: int) -> tuple[list[Histogram], int]:
  """Returns the distribution of each failed tensor, the worst first, and how many are left out."""
  failed = [
    known for known in stage.deviations if known.judgement is Judgement.FAILED and known.ulps
  ]
  failed.sort(key=_share_of, reverse=True)
  drawn: list[Histogram] = []
  for known in failed[:MOST_TENSORS]:
    run = f' [{known.run}]' if known.run else ''
    name = tag(stage.stage, 'failed_tensors', f'{known.quantity} {known.subject}{run}')
    drawn += _ulps(name, step, known.ulps)
  return drawn, max(0, len(failed) - MOST_TENSORS)


def _steps(stage: StageVerdict) -> list[tuple[int, ErrorSummary]]:
  """Returns the training steps of a stage, by their numbers; none of another stage."""
  found = [(_STEP.fullmatch(part.run), part) for part in stage.extents]
  return [(int(step[1]), part) for step, part in found if step is not None]
