"""Two training runs, laid side by side at one step."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training_samples import at_samples
from tf2verify.numerics.gradient_clips import Clip
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import Slot, TrainingRun, TrainingStep
from tf2verify.reference.perturbation import fraction_bits

_Array = np.ndarray[Any, Any]
# Gives the learning rates of TF1 and of the port at counts of steps.
Rates = Callable[[Sequence[int]], tuple[Sequence[float], Sequence[float]]]
# Gives names of what may count steps, their values, and the learning rates with them at counts.
RatesByCount = Callable[[Sequence[int]], Sequence[tuple[str, int, Sequence[float]]]]
# Gives names of arguments of the port's schedule, its value, and one with which it is that of TF1.
FittingArguments = Callable[[], Sequence[tuple[str, float, float]]]

# A variable is stored with a rounding, and an update is the difference of two of them.
_STORED = 8.0
# Of an update: kernels compute in float32, and 1 - 0.9999 is off by 6e-4 there, whose root
# divides the update of Adam.
_COMPUTED = 3e-4
# Relative to the greatest gradient of a model, what rounding leaves of one that is zero: of a bias
# in front of batch norm. An optimizer that divides by its size makes steps of that.
_ZERO_GRADIENT = 2.0**-20
# A hypothesis has to explain all but this share of what differs, element by element.
_UNEXPLAINED = 0.05


def no_rates(_: Sequence[int]) -> Sequence[tuple[str, int, Sequence[float]]]:
  """Returns none: nothing is known that counts steps."""
  return ()


@dataclasses.dataclass(frozen=True, eq=False)
class VariableStep:
  """What a step does to a variable on one side."""

  start: _Array  # the value before the step, as recorded
  end: _Array  # the value after it
  gradient: _Array | None  # as given to the update; None where it is not known
  slots: Mapping[str, _Array]  # before the step, by role
  slots_after: Mapping[str, _Array] = dataclasses.field(default_factory=dict)  # after it
  # Start and end with all that is known of them, where the others are cut down to some elements;
  # None where they are whole themselves.
  whole: tuple[_Array, _Array] | None = None

  def at(self, where: _Array) -> 'VariableStep':
    """Returns what the step does to some elements, True in `where`."""

    def cut(value: _Array) -> _Array:
      return value[where] if value.shape == where.shape else value

    return VariableStep(
      cut(self.start),
      cut(self.end),
      None if self.gradient is None else cut(self.gradient),
      {role: cut(slot) for role, slot in self.slots.items()},
      {role: cut(slot) for role, slot in self.slots_after.items()},
      self.whole or (self.start, self.end),
    )

  @property
  def before(self) -> _Array:
    """The value before the step, in float64."""
    return self.start.astype(np.float64)

  @property
  def update(self) -> _Array:
    """What is added to the value, in float64."""
    # Made when it is asked for: a large model would not fit into memory twice as wide.
    difference: _Array = self.end.astype(np.float64) - self.before
    return difference

  @property
  def rests(self) -> bool:
    """Whether the step changes nothing of the variable."""
    start, end = self.whole or (self.start, self.end)
    return not np.any(end.astype(np.float64) - start)

  @property
  def allowance(self) -> _Array:
    """How far rounding may put the update from that of a rule."""
    size = np.maximum(np.abs(self.start), np.abs(self.end))
    allowance: _Array = _STORED * np.spacing(size).astype(np.float64)
    return allowance


@dataclasses.dataclass(frozen=True, eq=False)
class StepPair:
  """A variable's step on both sides."""

  name: str  # by TF1
  tf1: VariableStep  # of the reference
  tf2: VariableStep  # of the port

  def of(self, side: str) -> VariableStep:
    """Returns the step of a side, `tf1` or `tf2`."""
    return self.tf1 if side == 'tf1' else self.tf2

  @property
  def differs(self) -> bool:
    """Whether the steps are further apart than storing them explains."""
    return bool(np.any(np.abs(self.tf1.update - self.tf2.update) > self.allowance))

  @property
  def differs_clearly(self) -> bool:
    """Whether they are further apart than storing and computing them in float32 explains.

    The first step of Adam is the same for every beta1, but for rounding.
    """
    one, other = self.tf1.update, self.tf2.update
    return bool(np.any(np.abs(one - other) > self.allowance + _COMPUTED * np.abs(one)))

  @property
  def has_same_gradient(self) -> bool:
    """Whether both sides step by one gradient, but for rounding."""
    one, other = self.tf1.gradient, self.tf2.gradient
    if one is None or other is None:
      return one is other
    return bool(np.allclose(one, other, rtol=1e-3, atol=1e-5 * _size(one)))

  @property
  def allowance(self) -> _Array:
    """How far rounding may put the two updates apart."""
    allowance: _Array = np.maximum(self.tf1.allowance, self.tf2.allowance)
    return allowance

  def explains(self, prediction: _Array, observed: _Array) -> bool:
    """Returns whether a predicted update is the observed one, and not the other side's."""
    if not np.all(np.isfinite(prediction)):
      return False
    apart = np.abs(self.tf1.update - self.tf2.update)
    allowance = self.allowance + _COMPUTED * np.abs(prediction) + _UNEXPLAINED * apart
    return bool(np.all(np.abs(prediction - observed) <= allowance))


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingEvidence:
  """What both sides did up to the first step that differs."""

  tf1: TrainingRun  # the reference's run; arrays of which a recording has samples are those samples
  tf2: TrainingRun  # the port's, with as many steps; of the same variables the same elements
  pairs: tuple[tuple[str, str], ...]  # variable names of tf1 and tf2
  number: int  # of that step, from 1
  # Tries how the port clips larger gradients than those of its steps; None where that is not known.
  clip_beyond: Callable[[], Clip | None]
  sampled: frozenset[str]  # tf1 names of the variables that are cut down to samples
  # Of the trainable variables that both sides have, without those of which nothing can be told.
  moves: tuple[StepPair, ...]
  left_out: frozenset[str]  # tf1 names of these: their gradients are rounding, and differ
  states: tuple[StepPair, ...]  # of the other ones
  # Gives the rates of both sides at counts of steps; None where a side has no schedule to be asked.
  rates: Rates | None = None
  # tf1 names of the variables that each side updates in later steps, whether in this one or not;
  # and `shadow of` those whose moving averages it updates in them.
  moved_later: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()
  # Gives what may count the port's steps, its value after the last one, and the learning rates of
  # the port with it at counts of steps.
  rates_by_count: RatesByCount = no_rates
  # Gives arguments of the port's schedule with which its rates are those of TF1 at all counts.
  fitting_arguments: FittingArguments = tuple

  @property
  def steps(self) -> tuple[TrainingStep, TrainingStep]:
    """The step, on both sides."""
    return self.tf1.steps[self.number - 1], self.tf2.steps[self.number - 1]

  def idle_in_tf1(self) -> set[str]:
    """Returns the variables whose update in TF1 was given no gradient, or one of zero."""
    return {
      record.name
      for record in self.steps[0].applied_gradients
      if record.value is None or not np.any(record.value)
    }

  def given_in_port(self) -> set[str]:
    """Returns the variables, by tf1 name, for which the port's update was given a gradient."""
    given = self.steps[1].applied_gradients
    return self.by_tf1({record.name for record in given if record.value is not None})

  def by_tf1(self, names: Collection[str]) -> set[str]:
    """Returns the tf1 names of the port's variables."""
    return {tf1 for tf1, tf2 in self.pairs if tf2 in names}

  def learning_rates(self) -> tuple[list[float], list[float]] | None:
    """Returns the learning rates of all steps; None where a side does not tell them."""
    ones = [step.learning_rate for step in self.tf1.steps]
    others = [step.learning_rate for step in self.tf2.steps]
    known = [(a, b) for a, b in zip(ones, others, strict=False) if a is not None and b is not None]
    if len(known) < max(len(ones), len(others)):
      return None
    return [a for a, _ in known], [b for _, b in known]


def training_evidence(
  tf1: TrainingRun,
  tf2: TrainingRun,
  pairs: Sequence[tuple[str, str]],
  number: int,
  rounding: Collection[str] = (),
  clip_beyond: Callable[[], Clip | None] = lambda: None,
  rounding_elements: Mapping[str, _Array] | None = None,
  rates: Rates | None = None,
  moved_later: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset()),
  rates_by_count: RatesByCount = no_rates,
  fitting_arguments: FittingArguments = tuple,
) -> TrainingEvidence:
  """Returns two runs laid side by side.

  Args:
    tf1: the reference's.
    tf2: the port's, with as many steps.
    pairs: variable names of tf1 and tf2.
    number: of the first step that differs, from 1.
    rounding: tf1 names of variables whose gradients differ by no more than the noise that
      was measured for them.
    clip_beyond: see `TrainingEvidence`.
    rounding_elements: by tf1 name, True for single elements whose gradient is rounding: no
      update rule is held against these.
    rates: see `TrainingEvidence`.
    moved_later: likewise.
    rates_by_count: likewise.
    fitting_arguments: likewise.
  """
  elements = rounding_elements or {}
  cut_tf1, cut_tf2, sampled = at_samples(tf1, tf2, pairs)
  names = dict(pairs)
  ones = _moves(cut_tf1, tf1, number, sampled)
  others = _moves(cut_tf2, tf2, number, {names[name] for name in sampled})
  for name, where in elements.items():
    for moves, own in ((ones, name), (others, names[name])):
      if own in moves and moves[own].start.shape == where.shape and not where.all():
        moves[own] = moves[own].at(~where)
  one, other = cut_tf1.steps[number - 1], cut_tf2.steps[number - 1]
  by_tf1 = {r.name for r in (*one.gradients, *one.applied_gradients)}
  by_port = {r.name for r in (*other.gradients, *other.applied_gradients)}
  trained: list[StepPair] = []
  states: list[StepPair] = []
  for name, own in pairs:
    if name in ones and own in others and ones[name].start.shape == others[own].start.shape:
      group = trained if name in by_tf1 or own in by_port else states
      group.append(StepPair(name, ones[name], others[own]))
  whole = {name for name, where in elements.items() if where.all()}
  left_out = _rounding(trained, rounding) | whole
  return TrainingEvidence(
    cut_tf1,
    cut_tf2,
    tuple(pairs),
    number,
    clip_beyond,
    sampled,
    tuple(pair for pair in trained if pair.name not in left_out),
    left_out,
    tuple(states),
    rates,
    moved_later,
    rates_by_count,
    fitting_arguments,
  )


def _rounding(pairs: Sequence[StepPair], measured: Collection[str]) -> frozenset[str]:
  """Returns the variables whose gradients differ, and are rounding."""
  sizes = {pair.name: [_size(move.gradient) for move in (pair.tf1, pair.tf2)] for pair in pairs}
  greatest = [max((both[side] for both in sizes.values()), default=0.0) for side in (0, 1)]
  return frozenset(
    pair.name
    for pair in pairs
    if not pair.has_same_gradient
    and (
      pair.name in measured
      or all(
        size <= _ZERO_GRADIENT * most for size, most in zip(sizes[pair.name], greatest, strict=True)
      )
    )
  )


def _size(value: _Array | None) -> float:
  return 0.0 if value is None else float(np.abs(value).max(initial=0.0))


def _around(
  run: TrainingRun, number: int
) -> tuple[tuple[TensorRecord, ...], tuple[TensorRecord, ...]]:
  before = run.steps[number - 2].variables if number > 1 else run.values_before
  return before, run.steps[number - 1].variables


def _slots_before(run: TrainingRun, number: int) -> tuple[Slot, ...]:
  return run.steps[number - 2].slots if number > 1 else run.slots_before


def _by_name(records: Iterable[TensorRecord]) -> dict[str, _Array]:
  return {r.name: r.value for r in records if r.value is not None and _floating(r.value)}


def _by_role(slots: Iterable[Slot]) -> dict[str, dict[str, _Array]]:
  found: dict[str, dict[str, _Array]] = {}
  for slot in slots:
    if _floating(slot.value):
      found.setdefault(slot.variable, {})[slot.role] = slot.value
  return found


def _floating(value: _Array) -> bool:
  return fraction_bits(value.dtype) is not None and value.dtype.kind != 'c'


def _moves(
  run: TrainingRun, whole: TrainingRun, number: int, sampled: Collection[str]
) -> dict[str, VariableStep]:
  """Returns what a step does to each variable; of `sampled` ones, `whole` has all elements."""
  before, after = (_by_name(records) for records in _around(run, number))
  whole_before, whole_after = (_by_name(records) for records in _around(whole, number))
  step = run.steps[number - 1]
  gradients = _by_name(step.gradients) | _by_name(step.applied_gradients)
  slots, slots_after = _by_role(_slots_before(run, number)), _by_role(step.slots)
  return {
    name: VariableStep(
      value,
      after[name],
      gradients.get(name),
      slots.get(name, {}),
      slots_after.get(name, {}),
      (whole_before[name], whole_after[name]) if name in sampled else None,
    )
    for name, value in before.items()
    if name in after
  }
