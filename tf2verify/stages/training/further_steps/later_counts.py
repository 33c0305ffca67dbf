"""Losses, gradients and updates at later counts of steps, where the count has a part in them.

The weight of a loss, a temperature or a rate of dropout may be annealed for thousands of steps, and
its end is reached by none that is taken. A step of both sides is computed again from the same
values, had more steps been taken before it.
"""

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.rules.updates.later_rates import COUNTS
from tf2verify.errors import NotApplicable
from tf2verify.numerics.noise import FACTOR
from tf2verify.numerics.tolerance import Tolerance, ToleranceTable
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.wording import number_text
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.graphs.counted_steps import (
  CountedStep,
  CountedValue,
  has_branches,
  reads_numbers,
)
from tf2verify.sides.graphs.rewriting.without_state import WrittenOtherwise
from tf2verify.sides.graphs.step_run import LOSS_TARGET, gradient_target, update_target
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proof.proving import why_not_related
from tf2verify.stages.training.graphs.step_proof import RelatedStep
from tf2verify.stages.training.steps.notes import has_rates
from tf2verify.stages.training.steps.quantities import GRADIENT, LOSS, UPDATE, Steps

_UPDATES = update_target('')

# Of the greatest element: gradients of a step that was not taken, whose rounding is measured only
# where they differ by more.
_APART = 1e-3
# Rounding of the greatest gradient, beside which smaller ones are not told.
_BESIDE = 1e-6
# In units in the last place of a variable, the rounding of what a step adds to it.
_ULPS = 8.0
# A phase that grows with the count is rounded with it: of the cosine of a cycle, say.
_PHASE = 2.0**-27
# How often the difference at the count of the step itself is allowed at a later one.
_GROWTH = 10.0
# Counts are asked for until that many seconds have passed, these ones always.
_SECONDS = 3.0
_FIRST = (10**3, 10**5, 10**7, 10**2, 10**4, 10**6, 10)
_ORDER = (*_FIRST, *(count for count in COUNTS if count not in _FIRST))
# Weights of fewer values, which change no more often, are stairs, whose boundaries are sought.
_STAIRS, _HALVINGS = 24, 24
# Rounding is measured in as many runs.
_PERTURBED = (1, 2)
_Values = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class _Apart:
  """What differs at a later count."""

  count: int
  tf1: _Values
  tf2: _Values
  names: tuple[str, ...]


def compare_later_counts(
  step: RelatedStep, comparison: Comparison, steps: Steps
) -> tuple[tuple[str, str], ...]:
  """Compares losses and gradients at later counts of steps.

  Args:
    step: a step that agrees.
    comparison: takes the findings.
    steps: those that were taken: if they tell no rates, all updates are compared.

  Returns:
    By the run of a difference, its cause.
  """
  try:
    is_large = bool(why_not_related(step.graphs.case))
    if not reads_numbers(step.tf1) and (is_large or not reads_numbers(step.tf2)):
      return ()
    with contextlib.ExitStack() as opened:
      tf1 = opened.enter_context(contextlib.closing(CountedStep(step.tf1, step.number - 1)))
      if is_large and not tf1.dependent():
        return ()  # the port is not traced for this alone
      found = _compared(step, tf1, comparison, opened)
      found = found or _in_own_branches(step, comparison)
      if found or has_rates(steps):
        return found
      # An optimizer of somebody's own tells no rate, but what it adds to what it trains follows it.
      return _updates_compared(step, comparison, trained=True)
  except (NotApplicable, NotTraceable, WrittenOtherwise):
    return ()
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost the stage
    comparison.blind_spots.append(f'{_NOT_COMPARED}: {type(error).__name__}: {error}'[:_LONGEST])
    return ()


def _in_own_branches(step: RelatedStep, comparison: Comparison) -> tuple[tuple[str, str], ...]:
  """Compares updates in the branches that the step itself takes, as a piecewise rate has them.

  In other branches, what is trained follows the count too, and with it all updates. The rate is
  compared by itself.
  """
  if not (has_branches(step.tf1) or has_branches(step.tf2)):
    return ()
  return _updates_compared(step, comparison, branches=False)


def _updates_compared(
  step: RelatedStep, comparison: Comparison, branches: bool = True, trained: bool = False
) -> tuple[tuple[str, str], ...]:
  """Compares what a step adds to variables at later counts; see `CountedStep` for the arguments."""
  with contextlib.ExitStack() as opened:
    tf1, tf2 = (
      opened.enter_context(
        contextlib.closing(CountedStep(side, step.number - 1, branches=branches, trained=trained))
      )
      for side in (step.tf1, step.tf2)
    )
    shared = tf1.tensors().keys() & tf2.tensors().keys()
    names = sorted(filter(_is_update, (tf1.dependent() | tf2.dependent()) & shared))
    pair = _Pair(step, tf1, tf2, names)
    apart = pair.first_apart()
    return () if apart is None else pair.told(apart, comparison)


def _compared(
  step: RelatedStep, tf1: CountedStep, comparison: Comparison, opened: contextlib.ExitStack
) -> tuple[tuple[str, str], ...]:
  counts = tf1.dependent()
  try:
    tf2 = opened.enter_context(contextlib.closing(CountedStep(step.tf2, step.number - 1)))
  except (NotTraceable, WrittenOtherwise) as reason:
    if counts:
      comparison.blind_spots.append(f'{_reads(counts)}, and {_NOT_COMPARED}: {reason}')
    return ()
  shared = tf1.tensors().keys() & tf2.tensors().keys()
  names = sorted((counts | tf2.dependent()) & shared)
  if not names:
    return ()
  pair = _Pair(step, tf1, tf2, names)
  if counts and not pair.is_alike:
    comparison.blind_spots.append(
      f'{_reads(counts)}, and {_NOT_COMPARED}: traced as a graph, the step of the port computes '
      'other values than in the run'
    )
  apart = pair.first_apart()
  if apart is None:
    return ()
  if not tf2.dependent():  # Python may count in the port, which a trace does not show
    comparison.blind_spots.append(
      f'{_reads(counts)}, which changes it at step count {apart.count:,}, where nothing in the '
      f'traced port does; {_NOT_COMPARED}'
    )
    return ()
  return pair.told(apart, comparison)


_NOT_COMPARED = (
  'what it is at counts beyond the steps that were taken was not compared '
  '(training_steps_to_take takes more steps)'
)


def _reads(names: Collection[str]) -> str:
  what = 'the loss' if LOSS_TARGET in names else 'a gradient'
  if all(map(_is_update, names)):
    what = f'the {min(names)}'
  return f'{what} of TF1 is computed from the step count'


def _is_update(name: str) -> bool:
  return name.startswith(_UPDATES)


class _Pair:
  """A step of both sides at any count."""

  def __init__(
    self, step: RelatedStep, tf1: CountedStep, tf2: CountedStep, names: Sequence[str]
  ) -> None:
    self._tf1, self._tf2, self._layouts = tf1, tf2, step.tf2.layouts
    self._at_step = step.number - 1
    (known,) = self._both([self._at_step], names)
    one, other = known or ({}, {})
    # A gradient that is scaled on one side, or in which rounding is all, tells nothing here.
    self._before = {name: _relative(value, other[name]) for name, value in one.items()}
    self._names = [name for name, off in self._before.items() if off <= _APART]

  @property
  def is_alike(self) -> bool:
    """Whether anything is the same on both sides at the count of the step itself."""
    return bool(self._names)

  def first_apart(self) -> _Apart | None:
    """Returns the first count, in the order in which they are asked, at which something differs."""
    start, counts = time.perf_counter(), self._telling()
    asked = zip(counts, self._both(counts, self._names), strict=True)
    for number, (count, both) in enumerate(asked):
      if both is not None:
        apart = self._apart(count, *both)
        if apart.names and self._is_more_than_rounding(apart):
          return apart
      if number + 1 >= len(_FIRST) and time.perf_counter() - start > _SECONDS:
        break
    return None

  def told(self, apart: _Apart, comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """Adds what differs to a comparison; returns the cause by the run of the differences."""
    run = f'had {apart.count:,} steps been taken before'
    for name in apart.names:
      one, other = apart.tf1[name], apart.tf2[name]
      quantity, subject = GRADIENT, name.removeprefix('gradient ')
      if name == LOSS_TARGET:
        quantity, subject = LOSS, '(total)'
      elif _is_update(name):
        quantity, subject = UPDATE, name.removeprefix(_UPDATES)
      size = float(np.max(np.abs(one), initial=0.0))
      allowed = ToleranceTable(((one.dtype.name, Tolerance(_APART, _APART * size)),))
      comparison.tensors(TensorKey(quantity, subject, run), one, other, allowed)
    return ((run, self._cause(apart)),)

  def _telling(self) -> list[int]:
    """Returns the counts to ask for: of those at which all weights are the same, one."""
    if not self._names:
      return []
    known = self._weights(_ORDER)
    for _ in range(_HALVINGS):  # both sides' boundaries may lie between two counts
      pairs = itertools.pairwise(sorted(known))
      changing = [(a, b) for a, b in pairs if b - a > 1 and known[a] != known[b]]
      # What changes all the time, in a cycle say, would be asked for at ever more counts.
      if not changing or max(len(changing), len(set(known.values()))) > _STAIRS:
        break
      known |= self._weights([(low + high) // 2 for low, high in changing])
    found: dict[bytes, int] = {}
    for count, weights in known.items():
      found.setdefault(weights, count)
    return list(found.values()) or list(_ORDER)

  def _weights(self, counts: Sequence[int]) -> dict[int, bytes]:
    """Returns, by count, what both sides compute of it alone; nothing where that is not known."""
    sides = [side.from_count_alone(counts, self._names) for side in (self._tf1, self._tf2)]
    if not all(sides):
      return {}
    values = [known.values for side in sides for known in side]
    return {
      count: b'|'.join(one[number].tobytes() for one in values)
      for number, count in enumerate(counts)
    }

  def _both(
    self, counts: Sequence[int], names: Collection[str]
  ) -> Iterator[tuple[_Values, _Values] | None]:
    layouts = {
      target(name): layout
      for name, layout in self._layouts.items()
      for target in (gradient_target, update_target)
    }
    for one, other in zip(self._tf1.at(counts, names), self._tf2.at(counts, names), strict=True):
      if one is None or other is None:
        yield None
      else:
        added = _added(self._tf2, other)
        yield (
          _added(self._tf1, one),
          {n: layouts[n].to_tf1(v) if n in layouts else v for n, v in added.items()},
        )

  def _apart(self, count: int, tf1: _Values, tf2: _Values) -> _Apart:
    finite = {name: value for name, value in tf1.items() if np.all(np.isfinite(value))}
    sizes = {name: float(np.max(np.abs(value), initial=0.0)) for name, value in finite.items()}
    gradients = [s for name, s in sizes.items() if name != LOSS_TARGET and not _is_update(name)]
    beside = _BESIDE * max(gradients, default=0.0)
    least = max(_APART, _PHASE * count)
    names = tuple(
      name
      for name, one in finite.items()
      if not _difference(one, tf2[name])
      <= max(least, _GROWTH * self._before[name]) * sizes[name]
      + (self._rounding(name) if _is_update(name) else beside)
    )
    return _Apart(count, tf1, tf2, names)

  def _rounding(self, name: str) -> float:
    """Returns how far the rounding of a variable may move what a step adds to it."""
    before = self._tf1.before(name)
    if before is None or before.dtype.kind != 'f':
      return 0.0
    return _ULPS * float(np.finfo(before.dtype).eps * np.max(np.abs(before), initial=0.0))

  def _is_more_than_rounding(self, apart: _Apart) -> bool:
    """Returns whether something differs by more than values moved by one unit make it differ."""
    names = [name for name in apart.names if not _is_update(name)]
    if len(names) < len(apart.names):  # its rounding was allowed for
      return True
    noise = dict.fromkeys(names, 0.0)
    for number in _PERTURBED:
      for moved in filter(None, self._tf1.at([apart.count], names, Perturber(number))):
        found = {name: _difference(apart.tf1[name], moved[name]) for name in names}
        noise = {name: max(known, found[name]) for name, known in noise.items()}
    return any(
      not _difference(apart.tf1[name], apart.tf2[name]) <= FACTOR * noise[name] for name in names
    )

  def _cause(self, apart: _Apart) -> str:
    """Returns what of one side, computed from the count alone, the other has not got."""
    counts = sorted({self._at_step, apart.count, *_FIRST})
    ones, others = (side.from_count_alone(counts, apart.names) for side in (self._tf1, self._tf2))
    place = counts.index(apart.count)
    alone = [
      *((_TF1, one) for one in _first_alone(ones, others)),
      *((_TF2, one) for one in _first_alone(others, ones)),
    ]
    if not alone:
      return ''
    texts = dict.fromkeys(f'{side} {_text(one, place)}' for side, one in alone)
    told = '; '.join(itertools.islice(texts, _SHOWN))
    return (
      f'the steps that were taken agree, but at step count {apart.count:,} they would not, since a '
      f'value that is computed from the step count differs there: {told}: compare the bounds and '
      'the lengths of what is annealed'
    )


_LONGEST = 400
_TF1, _TF2 = 'TF1 has', 'the port has'
_SHOWN = 4


def _text(known: CountedValue, place: int) -> str:
  at = '' if known.source is None else f', {known.source}'
  return f'{number_text(float(known.values[place]))} ({known.op_type}{at})'


def _first_alone(
  values: Sequence[CountedValue], others: Sequence[CountedValue]
) -> list[CountedValue]:
  """Returns the numbers that one side alone has, of what both have."""
  numbers = [one for one in values if one.values[0].shape == () and one.values[0].dtype.kind != 'b']
  alone = {one.tensor: one for one in numbers if not _known(one, others)}
  return [one for one in alone.values() if not any(read in alone for read in one.read)]


def _known(value: CountedValue, others: Iterable[CountedValue]) -> bool:
  return any(
    all(
      one.shape == same.shape and np.allclose(one, same, rtol=1e-4, equal_nan=True)
      for one, same in zip(value.values, other.values, strict=True)
    )
    for other in others
  )


def _added(side: CountedStep, values: _Values) -> _Values:
  """Returns values, of an update what it adds to its variable."""
  found = dict(values)
  for name, value in values.items():
    before = side.before(name)
    if before is not None:
      found[name] = value - before
  return found


def _difference(one: np.ndarray, other: np.ndarray) -> float:
  """Returns the greatest difference of two arrays; infinity where they cannot be compared."""
  if one.shape != other.shape:
    return float('inf')
  found = np.abs(one.astype(np.float64) - other)
  return float(np.max(found, initial=0.0)) if np.all(np.isfinite(found)) else float('inf')


def _relative(one: np.ndarray, other: np.ndarray) -> float:
  size = float(np.max(np.abs(one), initial=0.0))
  return _difference(one, other) / size if size else float(np.any(other))
