"""Learning rates at counts of steps far beyond those that are taken."""

import itertools
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.evidence.training import Rates
from tf2verify.diagnosis.rules.updates.rate_bounds import later_bound
from tf2verify.records.wording import number_text

_LAST = 10**7


# A smaller share of itself says little to a reader.
_READABLE = 0.05


def _fibonacci() -> Iterator[int]:
  one, other = 1, 2
  while one <= _LAST:
    yield one
    one, other = other, one + other


# Every count at first, then some of each power of ten; and others, since these are where a cycle of
# a schedule ends.
COUNTS = tuple(
  sorted(
    {*range(10), *(n * 10**k for k in range(1, 7) for n in (1, 2, 3, 5, 7)), _LAST}
    | {*_fibonacci()}
  )
)
# A schedule in float32 rounds; beside its greatest rate, what is left at its end cancels.
RTOL, ATOL = 1e-5, 2e-6
# What is that much smaller than the greatest rate is a power of many steps, whose rounding grows;
# a floor under the rates is another number altogether.
_LEAST, _RTOL_OF_LEAST = 1e-3, 1e-2
# A pace is known by rounding to whole counts.
_PACE = 1e-2


def are_same(tf1: Sequence[float], tf2: Sequence[float]) -> list[bool]:
  """Returns where the rates of both sides at some counts are the same, but for rounding."""
  ones, others = np.asarray(tf1, np.float64), np.asarray(tf2, np.float64)
  greatest = max(float(np.max(np.abs(ones), initial=0.0)), np.finfo(np.float64).tiny)
  close = np.isclose(others, ones, rtol=RTOL, atol=ATOL * greatest)
  small = np.maximum(np.abs(ones), np.abs(others)) < _LEAST * greatest
  near = np.isclose(others, ones, rtol=_RTOL_OF_LEAST, atol=ATOL * greatest)
  return [bool(one) for one in close | (small & near)]


def told(tf1: Sequence[float], tf2: Sequence[float]) -> tuple[list[float], list[float]]:
  """Returns the rates at counts where they are large enough to be compared, or differ."""
  greatest = max(map(abs, tf1), default=0.0)
  pairs = [
    (one, other)
    for one, other, same in zip(tf1, tf2, are_same(tf1, tf2), strict=True)
    if not same or max(abs(one), abs(other)) >= _LEAST * greatest
  ]
  return [one for one, _ in pairs], [other for _, other in pairs]


# Where a rate changes by more than that, relative to itself, others lie between.
_LEAST_CHANGE = 1e-3
# Per round: a schedule of a few stairs is followed to each of its boundaries, one without is seen
# at some more counts.
_INTERVALS = 8
_MOST_BETWEEN = 160


def counts_that_tell(rates: Rates) -> tuple[int, ...]:
  """Returns counts at which schedules differ that differ, in order: of stairs, at each boundary.

  Args:
    rates: of both sides.
  """
  tf1, tf2 = rates(COUNTS)
  known = dict(zip(COUNTS, zip(tf1, tf2, strict=True), strict=True))
  first = len(known)
  while all(are_same(*zip(*known.values(), strict=True))) and len(known) - first < _MOST_BETWEEN:
    counts = sorted(known)
    changes = {
      (low + high) // 2: max(map(_change, known[low], known[high]))
      for low, high in itertools.pairwise(counts)
      if high - low > 1
    }
    large = [count for count, change in changes.items() if change > _LEAST_CHANGE]
    between = sorted(large, key=lambda count: -changes[count])[:_INTERVALS]
    if not between:
      break
    known.update(zip(between, zip(*rates(between), strict=True), strict=True))
  return tuple(sorted(known))


def _change(one: float, other: float) -> float:
  """Returns how far two rates are apart, relative to the greater one."""
  return abs(one - other) / max(abs(one), abs(other), sys.float_info.min)


def later_rates(rates: Rates) -> str:
  """Returns in what two schedules differ; '' where they do not, or no more can be told."""
  counts = counts_that_tell(rates)
  tf1, tf2 = rates(counts)
  if all(are_same(tf1, tf2)):
    return ''
  sides = _Side(rates, 0), _Side(rates, 1)
  return (
    _one_in_steps(sides[0], sides[1], _STAIRS_OF_TF1)
    or _one_in_steps(sides[1], sides[0], _STAIRS_OF_PORT)
    or _both_in_steps(*sides)
    or _boundaries(*sides)
    or _pace(*sides)
    or _bound(rates, counts)
    or _ends(counts, tf1, tf2)
  )


def first_apart(rates: Rates) -> str:
  """Returns from which count on two schedules differ that differ somewhere."""
  low, high = _apart_between(rates, counts_that_tell(rates))
  (one,), (other,) = rates([high])
  before = (
    f'are the same up to step count {low:,} and differ from there on'
    if low >= 0
    else ('differ from the first step on')
  )
  return (
    f'the learning rates {before}: {number_text(one)} in TF1 and {number_text(other)} in the port '
    f'at step count {high:,}: compare the formulas and settings of the schedules'
  )


def _apart_between(rates: Rates, counts: Sequence[int]) -> tuple[int, int]:
  """Returns the last count at which two schedules are the same, -1 for none, and the next one."""
  tf1, tf2 = rates(counts)
  number = are_same(tf1, tf2).index(False)
  low, high = (counts[number - 1] if number else -1), counts[number]
  while high - low > 1:
    middle = (low + high) // 2
    ones, others = rates([middle])
    # The greatest rate tells what is small.
    same = are_same([*tf1, *ones], [*tf2, *others])[-1]
    low, high = (middle, high) if same else (low, middle)
  return low, high


def _bound(rates: Rates, counts: Sequence[int]) -> str:
  """One of them stays at a bound beyond which the other one goes on."""
  _, start = _apart_between(rates, counts)
  counts = sorted({*counts, start})
  tf1, tf2 = rates(counts)
  return later_bound(tf1, tf2, counts.index(start), start)


_MOST_SAMPLED = 24
# A schedule with more changes has a formula.
_MOST_BOUNDARIES = 12
# Of the rate before: rounding changes float32 by 6e-8.
_LEAST_STEP = 1e-6


class _Side:
  """The schedule of one side."""

  def __init__(self, rates: Rates, number: int) -> None:
    self._rates = rates
    self._number = number

  def at(self, *counts: int) -> list[float]:
    """Returns the rates at counts of steps."""
    return [float(rate) for rate in self._rates(counts)[self._number]]

  def stairs(self) -> tuple[int, int] | None:
    """Returns the first two counts at which a rate changes that stays as it is between them."""
    nearby = self.at(*(n + k for n in COUNTS for k in (0, 1)))
    flat = [n for n, a, b in zip(COUNTS, nearby[::2], nearby[1::2], strict=True) if a == b]
    for start in flat:
      first = self._change(start)
      second = None if first is None else self._change(first)
      if first is not None and second is not None and second - first > 1:
        before, after = self.at(first - 1, first)
        # Of a smooth schedule, rounding makes stairs at great counts.
        if abs(after - before) > _LEAST_STEP * abs(before):
          return first, second
    return None

  def changes_always(self, start: int, length: int) -> bool:
    """Returns whether the rate is another at each count around one, or has come to its end."""
    first = max(start - length, 0)
    known = self.at(*range(first, first + min(2 * length, _MOST_SAMPLED) + 1))
    return all(a != b for a, b in itertools.pairwise(known))

  def boundaries(self) -> list[tuple[int, float]] | None:
    """Returns the counts at which the rate becomes another one, with it; None for many."""
    found: list[tuple[int, float]] = []
    count = self._change(0)
    while count is not None:
      if len(found) == _MOST_BOUNDARIES:
        return None
      found.append((count, self.at(count)[0]))
      count = self._change(count)
    return found

  def _change(self, start: int) -> int | None:
    """Returns the first count after one at which the rate is another."""
    (known,) = self.at(start)
    after = [n for n in COUNTS if n > start]
    later = zip(after, self.at(*after), strict=True)
    low, high = start, next((n for n, rate in later if rate != known), 0)
    if not high:
      return None
    while high - low > 1:
      middle = (low + high) // 2
      low, high = (middle, high) if self.at(middle)[0] == known else (low, middle)
    return high


def _one_in_steps(stairs: _Side, smooth: _Side, words: str) -> str:
  """One changes at multiples of a count, where it is the other, which changes at every count."""
  found = stairs.stairs()
  if found is None or smooth.stairs() is not None:
    return ''
  length = found[1] - found[0]
  if not smooth.changes_always(found[0], length):
    return ''
  agree = are_same(stairs.at(*found), smooth.at(*found))
  if found[0] % length or not all(agree):
    return ''
  middle = found[0] + length // 2
  (one,), (other,) = stairs.at(middle), smooth.at(middle)
  return words.format(f'{length:,}', f'{middle:,}', number_text(one), number_text(other))


_STAIRS_OF_TF1 = (
  'the learning rate of TF1 changes every {0} steps and stays constant in between '
  '(staircase=True), that of the port changes at every step: they agree at multiples of {0}, and '
  'at step count {1} TF1 has {2} and the port {3}: pass staircase=True to the schedule of the port'
)
_STAIRS_OF_PORT = (
  'the learning rate of the port changes every {0} steps and stays constant in between '
  '(staircase=True), that of TF1 changes at every step: they agree at multiples of {0}, and at '
  'step count {1} the port has {2} and TF1 {3}: pass staircase=False to the schedule of the port'
)


def _both_in_steps(tf1: _Side, tf2: _Side) -> str:
  one, other = tf1.stairs(), tf2.stairs()
  if one is None or other is None:
    return ''
  factors = [
    [b / a if a else np.inf for a, b in itertools.pairwise(side.at(n[0] - 1, n[0], n[1]))]
    for side, n in ((tf1, one), (tf2, other))
  ]
  if one != other and one[1] - one[0] == other[1] - other[0]:
    length = f'{one[1] - one[0]:,}'
    later = _later_start(tf1, tf2, one, other)
    if not later:
      return (
        f'the learning rate changes every {length} steps on both sides, but at different step '
        f'counts: at {one[0]:,} and {one[1]:,} in TF1, and at {other[0]:,} and {other[1]:,} in the '
        'port: compare what their schedules count, and from where'
      )
    sides = ("the port's", 'TF1') if later > 0 else ("TF1's", 'the port')
    steps = f'{abs(later):,} step{"s" if abs(later) > 1 else ""}'
    return (
      f'{sides[0]} learning rate changes {steps} later than that of {sides[1]}, every {length} '
      'steps on both sides: its boundaries are later, or what its decay counts starts later (at '
      'the end of a warm-up, say): pass the boundaries of TF1, or count the steps as TF1 does'
    )
  if one != other:
    return (
      f'the learning rate first changes at step counts {one[0]:,} and {one[1]:,} in TF1, and '
      f'at {other[0]:,} and {other[1]:,} in the port: pass the decay_steps (or boundaries) of TF1'
    )
  alike = np.isclose(factors[0], factors[1], rtol=RTOL)
  if alike.all():
    return ''
  number = int(np.argmin(alike))
  differs = 'decay_rate (or the values between the boundaries) differs: pass that of TF1'
  if number:  # as both fall alike before, no rate of decay is another
    ends = (number_text(side.at(one[number])[0]) for side in (tf1, tf2))
    differs = (
      f'to {" and ".join(ends)}, and alike before: one side has a bound (tf.maximum, an end '
      'value), or the values between the boundaries differ: pass those of TF1'
    )
  return (
    f'the learning rate changes at step count {one[number]:,} by a factor of '
    f'{number_text(factors[0][number])} in TF1 and {number_text(factors[1][number])} in the port'
    f'{", " if number else ": "}{differs}'
  )


def _boundaries(tf1: _Side, tf2: _Side) -> str:
  """Both take a few values, each from another count on."""
  ones, others = tf1.boundaries(), tf2.boundaries()
  if not ones or not others or not all(are_same(tf1.at(0), tf2.at(0))):
    return ''
  values = [[rate for _, rate in known] for known in (ones, others)]
  if len(ones) != len(others) or not all(are_same(*values)):
    return ''
  counts = [', '.join(f'{count:,}' for count, _ in known) for known in (ones, others)]
  return (
    'the learning rate takes the same values in the same order on both sides, from different step '
    f'counts on: from {counts[0]} in TF1, and from {counts[1]} in the port: pass the boundaries of '
    'TF1'
  )


def _later_start(
  tf1: _Side, tf2: _Side, one: tuple[int, int], other: tuple[int, int]
) -> int | None:
  """Returns by how many steps the port falls later to each value of TF1; None where it does not.

  Args:
    tf1: the schedule of TF1.
    tf2: that of the port.
    one: the first two counts at which that of TF1 falls.
    other: the same of the port.
  """
  value, high = tf2.at(other[1])[0], COUNTS[-1]
  # Before it falls a schedule may rise.
  start = next((n for n in range(one[0]) if tf1.at(n)[0] > value), None)
  if start is None or tf1.at(high)[0] > value:
    return None
  low = start
  while high - low > 1:
    middle = (low + high) // 2
    low, high = (low, middle) if tf1.at(middle)[0] <= value * (1 + RTOL) else (middle, high)
  later, length = other[1] - high, one[1] - one[0]
  begin = max(one[0], other[0], one[0] + later)
  counts = [begin + n * length + k for n in range(4) for k in (-1, 0, length // 2)]
  return later if all(are_same(tf1.at(*(n - later for n in counts)), tf2.at(*counts))) else None


def _pace(tf1: _Side, tf2: _Side) -> str:
  """The port's schedule is TF1's, of a count that goes faster or slower."""
  for count in (1000, 100, 10000, 10):
    (start,), (goal,) = tf1.at(0), tf2.at(count)
    far = tf1.at(*COUNTS)
    falls = [b <= a for a, b in itertools.pairwise(far)]
    if not (all(falls) or not any(falls)) or start == goal or not min(far) < goal < max(far):
      continue
    low, high = 0, COUNTS[-1]
    while high - low > 1:
      middle = (low + high) // 2
      is_before = (tf1.at(middle)[0] > goal) if all(falls) else (tf1.at(middle)[0] < goal)
      low, high = (middle, high) if is_before else (low, middle)
    pace = high / count
    others = [n for n in (count // 2, count * 2, count * 3) if n]
    known = tf1.at(*(round(pace * n) for n in others))
    if abs(pace - 1) > _PACE and np.allclose(known, tf2.at(*others), rtol=_PACE):
      return _of_exponentials(tf1, tf2, pace) or (
        "the port's learning rate at step count n is TF1's at "
        f'{number_text(round(pace, 3))}·n: decay_steps (or the unit that is counted in) differs by '
        'that factor: pass that of TF1; a step is a call of the train op on either side, not an '
        'epoch'
      )
  return ''


def _of_exponentials(tf1: _Side, tf2: _Side, pace: float) -> str:
  """Returns in what two exponential decays differ: a rate and its unit are one number of them."""
  for count in (1000, 100, 10, 1):
    ones, others = (side.at(0, count, 2 * count) for side in (tf1, tf2))
    factors = [known[1] / known[0] for known in (ones, others) if known[0]]
    if len(factors) < 2 or min(factors) < _READABLE:
      continue
    is_geometric = [
      np.isclose(known[0] * known[2], known[1] ** 2, rtol=_PACE) for known in (ones, others)
    ]
    if not all(is_geometric) or factors[0] == factors[1]:
      return ''
    return (
      f'in {count:,} {"step" if count == 1 else "steps"} the learning rate falls to '
      f'{number_text(round(factors[0], 4))} of itself in TF1 and to '
      f'{number_text(round(factors[1], 4))} in the port: decay_rate differs, or decay_steps (or '
      f'the unit that is counted in) by a factor of {number_text(round(pace, 3))}: pass those of '
      'TF1; a step is a call of the train op on either side, not an epoch'
    )
  return ''


def _ends(counts: Sequence[int], tf1: Sequence[float], tf2: Sequence[float]) -> str:
  """Both are the same until one of them stays where it is."""
  apart = are_same(tf1, tf2).index(False)
  ends = [len({*known[-3:]}) == 1 for known in (tf1, tf2)]
  if apart < len(counts) // 4 or not any(ends) or tf1[-1] == tf2[-1]:
    return ''
  return (
    f'the learning rates are the same at least up to step count {counts[apart - 1]:,}, and end at '
    f'different values: {number_text(tf1[-1])} in TF1 and {number_text(tf2[-1])} in the port at '
    f'step count {counts[-1]:,}: a bound, an end value, or the steps until it is reached differ'
  )
