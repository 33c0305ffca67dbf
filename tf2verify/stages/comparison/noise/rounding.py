"""Differences beyond the tolerance, sorted by the noise that rounding makes."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.noise import FACTOR, MOST_RUNS, RUNS, SHARE, Kind, NoiseVerdict, Spread
from tf2verify.numerics.sampling import Views
from tf2verify.numerics.tolerance import Tolerance
from tf2verify.records.difference import Aspect, Deviation, Difference, Judgement
from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.reference.perturbation import Perturber, fraction_bits
from tf2verify.stages.comparison.noise.reruns import Rerun

# An initial value is drawn, not computed: nothing rounds on the way.
_MEASURABLE = (
  'output',
  'regularization loss',
  'gradient',
  'gradient of the total loss',
  'state after the call',
  'loss',
  'total loss',
  'loss gradient',
  'model loss',
  'applied gradient',
  'slot',
  'update',
  'state',
  'shadow',
)
_JUDGEMENTS = {Kind.ROUNDING: Judgement.ROUNDING, Kind.DEGENERATE: Judgement.DEGENERATE}
_NARROW = (
  'the reference computes with {} significant bits in places, and the difference is explained by '
  'the '
  'rounding of that format'
)
# A draw without a seed repeats itself within a tenth of its noise one time in six.
_REPEATED_RUNS = 6
_ADVICE = (
  'the inputs cannot decide it: use different ones (not constant, a larger batch, a different '
  'seed), a '
  'smaller '
  'model, or float64'
)


@dataclasses.dataclass(frozen=True, eq=False)
class Suspect:
  """A difference in values that rounding may explain."""

  difference: Difference  # what the comparison found
  tf1: np.ndarray  # the reference's tensor
  tf2: np.ndarray  # the port's
  tolerance: Tolerance  # the allowance
  # Of a tensor that a recording holds in part: what `tf1` and `tf2` are of it.
  views: Views | None = None

  @property
  def key(self) -> TensorKey:
    """Which tensor it is."""
    return self.difference.key

  def among(self, run: Run) -> np.ndarray | None:
    """Returns its tensor in another run, to be set beside `tf1`; None if there is none."""
    value = run.get(self.key)
    return value if value is None or self.views is None else self.views.of(value)

  def placed(self, verdict: NoiseVerdict) -> NoiseVerdict:
    """Returns a verdict on `tf1` with its index as one of the whole tensor."""
    if self.views is None or verdict.index < 0:
      return verdict
    return dataclasses.replace(verdict, index=self.views.element(verdict.index)[0])


def may_be_rounding(difference: Difference, tf1: np.ndarray) -> bool:
  """Returns whether a difference is one of computed floating values."""
  return (
    difference.aspect is Aspect.VALUES
    and difference.quantity in _MEASURABLE
    and fraction_bits(tf1.dtype) is not None
  )


@dataclasses.dataclass(frozen=True)
class Sorted:
  """The differences of a run, beside their noise."""

  # Pairs of a difference and its verdict, in the order of the suspects.
  judged: tuple[tuple[Difference, NoiseVerdict], ...] = ()
  notes: tuple[str, ...] = ()  # for a report

  @property
  def rounding(self) -> tuple[Difference, ...]:
    """What is not a difference."""
    return tuple(found for found, noise in self.judged if noise.kind is Kind.ROUNDING)

  @property
  def degenerate(self) -> tuple[Difference, ...]:
    """What cannot be told."""
    return tuple(found for found, noise in self.judged if noise.kind is Kind.DEGENERATE)

  @property
  def replacements(self) -> tuple[tuple[Difference, Difference | None], ...]:
    """Each difference, and itself with its noise; None where it is none."""
    return tuple(
      (found, _with_noise(found, noise) if noise.kind is Kind.DIFFERENT else None)
      for found, noise in self.judged
    )

  def told(self, deviations: Sequence[Deviation]) -> list[Deviation]:
    """Returns deviations with the noise measured for them, and what that makes of them."""
    noises = {(found.quantity, found.subject, found.run): noise for found, noise in self.judged}
    return [
      _told(known, noises.get((known.quantity, known.subject, known.run))) for known in deviations
    ]


# Returns another judgement of suspects, given the one so far.
Judge = Callable[[Sequence[Suspect], Sorted], Sorted]


def _told(known: Deviation, noise: NoiseVerdict | None) -> Deviation:
  if noise is None:
    return known
  judgement = _JUDGEMENTS.get(noise.kind, known.judgement)
  finite = noise.noise if math.isfinite(noise.noise) else None
  return dataclasses.replace(known, judgement=judgement, noise=finite)


def sort_out(suspects: Sequence[Suspect], rerun: Rerun, narrow_bits: int = 0) -> Sorted:
  """Runs the reference again with moved values, and judges the suspects by what that gives.

  `RUNS` times (`MOST_RUNS` where a few elements are in doubt), and then as it
  was: what does not repeat itself is not excused. As soon as one difference is far
  beyond its noise the stage fails, whatever the others are: no run is made for
  them any more, and none is excused.
  An error of these runs leaves the suspects as they are.

  Args:
    suspects: differences of one run.
    rerun: repeats the reference.
    narrow_bits: the fraction bits of the narrowest format that the reference computes in,
      where that is below float32: what units of float32 do not explain, its units may.
  """
  found = sort_out_together([suspects], rerun)[0]
  if not narrow_bits or all(noise.kind is not Kind.DIFFERENT for _, noise in found.judged):
    return found
  coarse = sort_out_together([suspects], rerun, narrow_bits)[0]
  if any(noise.kind is Kind.DIFFERENT for _, noise in coarse.judged) or not coarse.judged:
    return found
  return dataclasses.replace(coarse, notes=(*coarse.notes, _NARROW.format(narrow_bits + 1)))


def sort_out_together(
  groups: Sequence[Sequence[Suspect]], rerun: Rerun, unit_bits: int = 0
) -> tuple[Sorted, ...]:
  """Judges groups of suspects of one run, each as `sort_out` does, by the same moved runs.

  `unit_bits` is as in `Perturber`.
  """
  sortings = [_Sorting(suspects) for suspects in groups]
  for bits in sorted({sorting.finest for sorting in sortings if sorting.pairs}):
    alike = [sorting for sorting in sortings if sorting.pairs and sorting.finest == bits]
    try:
      _examine_perturbed_runs(alike, rerun, Perturber(0, unit_bits or bits, unit_bits))
      _check_repeatable([sorting for sorting in alike if not sorting.settled], rerun)
    except Tf2VerifyError as error:
      for sorting in (sorting for sorting in alike if not sorting.settled):
        sorting.error = f'the rounding noise could not be measured: {error}'
  return tuple(sorting.found() for sorting in sortings)


def finest(suspects: Sequence[Suspect]) -> int:
  """Returns the most bits that the fraction of a suspect has."""
  return max((fraction_bits(suspect.tf1.dtype) or 0 for suspect in suspects), default=0)


def keys_of(suspects: Iterable[Suspect]) -> frozenset[TensorKey]:
  """Returns what to ask another run for."""
  return frozenset(suspect.key for suspect in suspects)


class _Sorting:
  """The suspects of one group, beside their moved runs.

  Attributes:
    pairs: each suspect, and its runs.
    finest: the most bits that the fraction of a suspect has.
    settled: whether one is far beyond its noise, so that none is excused.
    changing: how many tensors are others in a run that moves nothing.
    error: why nothing could be measured; '' where it could.
  """

  def __init__(self, suspects: Sequence[Suspect]) -> None:
    self.pairs = [(s, Spread(s.tf1, s.tf2, s.tolerance)) for s in suspects]
    self.finest = finest(suspects)
    self.settled = False
    self.changing: set[int] = set()
    self.error = ''

  def left(self, number: int) -> list[tuple[Suspect, Spread]]:
    """Returns what a moved run is still to be made for."""
    if self.settled or number < RUNS:
      return [] if self.settled else self.pairs
    return [pair for pair in self.pairs if pair[1].judged().doubtful]

  def add(self, left: Sequence[tuple[Suspect, Spread]], values: Run) -> None:
    """Adds a moved run."""
    for suspect, spread in left:
      spread.look(suspect.among(values))
    self.settled = any(spread.settled for _, spread in self.pairs)
    for suspect, spread in left if not self.settled else ():
      spread.keep(suspect.among(values))

  def excuses(self) -> bool:
    """Returns whether anything is rounding so far."""
    return any(spread.judged().kind is not Kind.DIFFERENT for _, spread in self.pairs)

  def repeats(self, values: Run) -> bool:
    """Adds a run that moved nothing; returns whether it gave the same bits."""
    found = [suspect.among(values) for suspect, _ in self.pairs]
    for number, ((_, spread), value) in enumerate(zip(self.pairs, found, strict=True)):
      if number not in self.changing and not spread.repeats(value):
        spread.add(None)
        self.changing.add(number)
    return all(
      value is not None and np.array_equal(value, suspect.tf1, equal_nan=True)
      for (suspect, _), value in zip(self.pairs, found, strict=True)
    )

  def found(self) -> Sorted:
    """Returns the verdicts."""
    if self.error:
      return Sorted(notes=(self.error,))
    if self.settled:
      return Sorted(
        tuple((suspect.difference, spread.different()) for suspect, spread in self.pairs)
      )
    judged = tuple(
      (suspect.difference, suspect.placed(spread.judged())) for suspect, spread in self.pairs
    )
    notes = _notes(judged)
    if self.changing:
      notes.append(
        f'{len(self.changing)} tensors of the TF1 graph differ each time it runs from the same '
        'values (a random op without a seed, or one in Python), so their rounding noise cannot be '
        'measured'
      )
    return Sorted(judged, tuple(notes))


def _examine_perturbed_runs(
  sortings: Sequence[_Sorting], rerun: Rerun, perturber: Perturber
) -> None:
  for number in range(MOST_RUNS):
    left = [(sorting, sorting.left(number)) for sorting in sortings]
    wanted = [suspect for _, pairs in left for suspect, _ in pairs]
    if not wanted:
      break
    values = rerun(perturber._replace(number=number), keys_of(wanted))
    for sorting, pairs in left:
      if pairs:
        sorting.add(pairs, values)


def _check_repeatable(sortings: Sequence[_Sorting], rerun: Rerun) -> None:
  """Runs the reference as it was, to see which tensors come out differently.

  One run is enough where it gives the same bits. Where it does not, draws that no seed
  reaches may have come out close to the first ones by luck: it is run again.
  """
  left = [sorting for sorting in sortings if sorting.excuses()]
  for _ in range(_REPEATED_RUNS):
    if not left:
      break
    wanted = [suspect for sorting in left for suspect, _ in sorting.pairs]
    values = rerun(None, keys_of(wanted))
    left = [sorting for sorting in left if not sorting.repeats(values)]


def _with_noise(difference: Difference, verdict: NoiseVerdict) -> Difference:
  array = difference.array
  if array is None or not math.isfinite(verdict.noise):
    return difference
  within = verdict.index < 0 and verdict.difference <= FACTOR * verdict.noise
  noted = dataclasses.replace(array, noise=verdict.noise, within_noise=within)
  return dataclasses.replace(difference, array=noted)


def _notes(judged: Sequence[tuple[Difference, NoiseVerdict]]) -> list[str]:
  by_kind = {kind: [pair for pair in judged if pair[1].kind is kind] for kind in Kind}
  notes = []
  if by_kind[Kind.ROUNDING]:
    found = by_kind[Kind.ROUNDING]
    difference, verdict = max(found, key=lambda pair: pair[1].ratio)
    notes.append(
      f'{_tensors(found)} by no more than {FACTOR:.1f} x rounding noise (worst: '
      f'{difference.quantity} {difference.subject} [{difference.run}], difference '
      f'{verdict.difference:.2g}, noise {verdict.noise:.2g})'
    )
  if by_kind[Kind.DEGENERATE]:
    found = by_kind[Kind.DEGENERATE]
    difference, verdict = max(found, key=lambda pair: pair[1].noise / (pair[1].size or 1e-300))
    notes.append(
      f'{_tensors(found)}, but rounding alone changes them by {100 * SHARE:.0f} % of their largest '
      f'element or more (worst: {difference.quantity} {difference.subject} [{difference.run}], '
      'largest '
      f'element {verdict.size:.2g}, noise {verdict.noise:.2g}): {_ADVICE}'
    )
  for difference, verdict in by_kind[Kind.DIFFERENT]:
    if verdict.index >= 0 and difference.array is not None:
      index = tuple(int(axis) for axis in np.unravel_index(verdict.index, difference.array.shape))
      notes.append(
        f'{difference.quantity} {difference.subject} is within its noise as a whole, but not at '
        f'{index}, where the noise is {verdict.index_noise:.2g}'
      )
  return notes


def _tensors(found: Sequence[object]) -> str:
  return f'{len(found)} tensors differ' if len(found) != 1 else '1 tensor differs'
