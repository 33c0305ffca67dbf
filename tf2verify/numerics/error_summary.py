"""How far the two sides are apart in a run, out of what was found tensor by tensor."""

import itertools
import math
from collections.abc import Iterable, Sequence

from tf2verify.numerics import frontier
from tf2verify.records.difference import (
  ArrayDifference,
  Aspect,
  Deviation,
  Difference,
  ErrorSummary,
  Judgement,
)

# A pair of tensors that rounding explains may be beyond the tolerance for good.
EXCUSED = (Judgement.ROUNDING, Judgement.DEGENERATE)
# What differs in one of these has no number that says by how much.
_NO_NUMBER = (Aspect.PRESENCE, Aspect.STRUCTURE, Aspect.SHAPE, Aspect.DTYPE)
_ALL_EQUAL = ErrorSummary('', 0, 0.0, 0.0, 0.0, 0.0, 0.0)


def extents(
  deviations: Sequence[Deviation], differences: Sequence[Difference]
) -> tuple[ErrorSummary, ...]:
  """Returns the extent of each run that deviates, in their order.

  Args:
    deviations: of a stage.
    differences: its findings; those of pairs in `deviations` count once.

  Returns:
    One at least: all zero, with run '', where nothing deviates.
  """
  runs = dict.fromkeys([known.run for known in deviations])
  runs |= dict.fromkeys([known.run for known in differences])
  return tuple(extent(run, deviations, differences) for run in runs) or (_ALL_EQUAL,)


def extent(
  run: str, deviations: Iterable[Deviation], differences: Iterable[Difference]
) -> ErrorSummary:
  """Returns the extent of one run; all zero where nothing of it deviates."""
  pairs = [known for known in deviations if known.run == run]
  found = [known for known in differences if known.run == run]
  paired = {(known.quantity, known.subject) for known in pairs}
  alone = [known for known in found if (known.quantity, known.subject) not in paired]
  whole = [_of_pair(known) for known in pairs]
  whole += [_of_array(known.array) for known in alone if known.array is not None]
  if any(known.array is None and known.aspect in _NO_NUMBER for known in alone):
    whole.append(ErrorSummary('', 0, math.nan, math.nan, math.inf, math.inf, math.inf))
  return merged(run, whole, len(found))


def merged(run: str, parts: Sequence[ErrorSummary], differing: int | None = None) -> ErrorSummary:
  """Returns several extents as one.

  Args:
    run: of the whole.
    parts: of tensors or runs; none for what is equal.
    differing: how many findings the whole has; None to add up those of the parts.
  """
  noises = [part.noise for part in parts if part.noise is not None]
  counts = itertools.zip_longest(*(part.ulps for part in parts), fillvalue=0)
  return ErrorSummary(
    run,
    sum(part.differing for part in parts) if differing is None else differing,
    _greatest([part.absolute for part in parts]),
    _greatest([part.relative for part in parts]),
    _greatest([part.share for part in parts]),
    _greatest([part.required_atol for part in parts]),
    _greatest([part.required_rtol for part in parts]),
    max(noises, default=None),
    tuple(map(sum, counts)),
  )


def _greatest(values: Sequence[float]) -> float:
  """Returns NaN where one is NaN, which `max` would lose or not, by its place."""
  return math.nan if any(map(math.isnan, values)) else max(values, default=0.0)


def _of_pair(known: Deviation) -> ErrorSummary:
  points = known.frontier
  counts = known.judgement not in EXCUSED
  return ErrorSummary(
    known.run,
    0,
    frontier.greatest_absolute(points),
    frontier.greatest_relative(points),
    frontier.greatest_share(points, known.rtol, known.atol) if counts else 0.0,
    frontier.required_atol(points, known.rtol) if counts else 0.0,
    frontier.required_rtol(points, known.atol) if counts else 0.0,
    known.noise,
    known.ulps,
  )


def _of_array(array: ArrayDifference) -> ErrorSummary:
  """Returns what the worst element tells, of a pair without a deviation: integers, NaN."""
  absolute = array.greatest_absolute
  share = math.inf
  if not math.isnan(absolute) and isinstance(array.tf1, (int, float, complex)):
    allowed = array.atol + array.rtol * abs(array.tf1)
    share = absolute / allowed if allowed else math.inf
  atol, rtol = map(_required, (array.required_atol, array.required_rtol))
  return ErrorSummary('', 0, absolute, array.greatest_relative, share, atol, rtol, array.noise)


def _required(figure: float | None) -> float:
  return math.inf if figure is None or math.isnan(figure) else figure
