"""Two training runs that go on step by step."""

import dataclasses
import gc
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.evidence.training import Rates
from tf2verify.diagnosis.rules.updates.later_rates import COUNTS, are_same
from tf2verify.errors import NotApplicable, UserCodeError
from tf2verify.numerics.gradient_clips import Clip
from tf2verify.numerics.set_aside import release_pages
from tf2verify.records.training import Slot, TrainingRun, TrainingStep
from tf2verify.relation.listed_slots import owners_by_values, with_owners
from tf2verify.relation.shadows import renamed
from tf2verify.relation.slots import DeclaredSlots
from tf2verify.sides.set_aside_steps import steps_set_aside
from tf2verify.sides.side import Change
from tf2verify.sides.tf1.reference_steps import ReferenceSteps
from tf2verify.sides.tf2.optimization.given_gradients import GivenGradients
from tf2verify.sides.tf2.optimization.schedules import Schedule
from tf2verify.sides.tf2.steps import Tf2Steps
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.side_by_side import side_by_side
from tf2verify.stages.training.steps.clipping_trials import (
  ClippingWatch,
  Factors,
  clip_beyond,
  factors_of,
  have_same_zeros,
  without_some,
)
from tf2verify.stages.training.steps.paces import Paces
from tf2verify.stages.training.steps.port_shadows import PortShadows, port_shadows
from tf2verify.stages.training.steps.quantities import RATES, Steps
from tf2verify.stages.training.steps.resets import Held, all_elements, reset_elements, with_held
from tf2verify.stages.training.steps.schedules import AskedSchedule, may_be_of_another, told_rate
from tf2verify.stages.training.steps.shared_arrays import with_shared
from tf2verify.stages.training.steps.told_losses import Told
from tf2verify.stages.training.steps.updates_apart import agree_at_large

# A model of more than this is worth the time that it takes to find garbage.
_LARGE_BYTES = 64 * 2**20


class BothSides:
  """Two runs that go on step by step.

  Of a large model all steps together would not fit into memory: the arrays of the last
  two are kept, which is what a step is explained with.
  """

  def __init__(
    self,
    reference: ReferenceSteps,
    port: Tf2Steps,
    pairs: Sequence[tuple[str, str]],
    trainable: frozenset[str],
    slot_names: DeclaredSlots = None,
  ) -> None:
    """Takes both sides before their first step.

    Args:
      reference: opened.
      port: begun.
      pairs: variable names of tf1 and tf2.
      trainable: tf1 names.
      slot_names: as the case declares them.
    """
    self._slot_names = slot_names
    self._under_way: tuple[ReferenceSteps, Tf2Steps] | None = (reference, port)
    self._pairs = pairs
    self._trainable = trainable
    self._taken: list[tuple[TrainingStep, TrainingStep]] = []
    # The last step that was forgotten: the next one goes on from there.
    self._beyond: tuple[TrainingStep, TrainingStep] | None = None
    self._shadows: PortShadows | None = None
    self._told: Told | None = None
    self._owners: Mapping[str, str] | None = None  # of state in lists of an order of their own
    self._given: GivenGradients | None = None
    # By the number of the step after which they were given to the port.
    self.held: dict[int, Held] = {}
    # By counts of steps: a diagnosis asks again once the sides are closed.
    self._rates: dict[int, tuple[float, float]] = {}
    self._nearest: int | None = None
    self._asked: AskedSchedule | None = None
    self._ahead: int | None = None
    self.paces = Paces()  # of the steps taken
    reference.run()  # reads the values before the first step

  def take_next(self) -> Steps:
    """Takes a step; returns all so far, of those before the last one what each starts from."""
    if len(self._taken) > 1:
      one, other = self._taken[-2]
      self._taken[-2] = one.without_arrays(), other.without_arrays()
    if self._taken:
      one, other = (step.as_start_of_next() for step in self._taken[-1])
      one, other = steps_set_aside(one, with_shared(one, other, self._pairs))
      self._taken[-1] = one, other
      release_pages()
    self._taken.append(self._both_take())
    schedules = self._sides[1].schedules()
    port = schedules[0].count if len(schedules) == 1 else self._taken[-1][1].global_step
    self.paces.see(self._taken[-1][0].global_step, port)
    return self.so_far()

  def give_gradients(self, applied: bool) -> GivenGradients:
    """Has the port take its steps with gradients of the reference, see `GivenGradients`."""
    self._given = self._sides[1].give_gradients(dict(self._pairs), applied)
    return self._given

  @property
  def _sides(self) -> tuple[ReferenceSteps, Tf2Steps]:
    assert self._under_way is not None
    return self._under_way

  def let_go(self) -> None:
    """Lets go of both sides and of the arrays of their steps: none is taken any more."""
    reference, _ = self._sides
    values = [record.value for record in reference.run().values_before if record.value is not None]
    self._under_way, self._taken = None, []
    reference.__exit__(None, None, None)
    if sum(value.nbytes for value in values) > _LARGE_BYTES:
      gc.collect()  # a layer and an optimizer refer to each other

  def hold(self, elements: Mapping[str, np.ndarray]) -> None:
    """Gives elements of the port's variables the values of tf1 before the next step.

    Args:
      elements: where, by tf1 variable names.
    """
    one, other = self._taken[-1]
    held = self.held_after(one, elements)
    if held:
      self.held[other.number] = held
      self._taken[-1] = one, with_held(other, held)
      self._sides[1].hold(held)

  def held_after(self, tf1: TrainingStep, elements: Mapping[str, np.ndarray]) -> Held:
    """Returns what elements of the port's variables are given after a step of the reference."""
    return reset_elements(elements, tf1, self._pairs)

  def take_beyond(self) -> tuple[Steps, Steps]:
    """Takes a step on both sides, and keeps all that is there of those before it.

    Returns:
      The steps so far; and the same, of the last one losses and learning rates alone.
    """
    one, other = self._both_take()
    self._taken.append((one, other))
    whole = self.so_far()
    self._taken[-1] = one.without_arrays(), other.without_arrays()
    return whole, self.so_far()

  def take_with(self, change: Change) -> Steps:
    """Takes a step on another batch, which is forgotten; returns the steps with it.

    Args:
      change: returns what each array of inputs and labels is in it.

    Raises:
      NotApplicable: the steps of the reference were recorded.
    """
    reference, port = self._sides
    one, other = reference.take_with(change), port.take_with(change)
    return self._forgotten(one, other)

  def take_scaled(self, factor: float | Factors, change: Change | None = None) -> Steps:
    """Takes a step at gradients times a factor, which is forgotten; returns the steps with it.

    Args:
      factor: of all gradients, or those of both sides.
      change: of the batch, as `take_with`; None for none.

    Raises:
      NotApplicable: a side cannot take it.
    """
    reference, port = self._sides
    tf1, tf2 = (factor, factor) if isinstance(factor, float) else factor
    one, other = reference.take_scaled(tf1, change), port.take_scaled(tf2, change)
    return self._forgotten(one, other)

  def _forgotten(self, one: TrainingStep, other: TrainingStep) -> Steps:
    """Returns the steps with another one, which is forgotten."""
    self._beyond = one, self._as_paired(one, other)
    return self.now()

  def now(self) -> Steps:
    """Returns the steps so far, with the last one that was forgotten, if any was."""
    return self._shown([*self._taken, *([] if self._beyond is None else [self._beyond])])

  def beside(self, tf1: TrainingRun, tf2: TrainingRun) -> Steps:
    """Returns other runs of the two sides, laid side by side as their own are."""
    doubtful = self._shadows.doubtful if self._shadows else {}
    if self._owners is None and tf1.steps:
      slots = tf1.steps[0].slots, tf2.steps[0].slots
      self._owners = owners_by_values(*slots, {port: name for name, port in self._pairs})
    tf2 = with_owners(tf2, self._owners or {})
    names = self._pairs, self._trainable, self._slot_names
    found = Steps(tf1, tf2, *names, doubtful, self._told)
    self._told = found.told  # later on, the first step has no arrays
    return found

  def rates(self, counts: Sequence[int]) -> tuple[Sequence[float], Sequence[float]]:
    """Returns the learning rates of both sides at counts of steps, by that of tf1.

    Raises:
      NotApplicable: one of them has no schedule that can be asked.
    """
    wanted = [count for count in dict.fromkeys(counts) if count not in self._rates]
    if wanted:
      reference, _ = self._sides
      schedule = self._schedule_like_tf1()
      if self._ahead is None:  # further steps, which are forgotten, count in the port alone
        one, _ = self._taken[-1]
        counted = None if self.paces.resting is not None else one.global_step
        self._ahead = 0 if counted is None else schedule.count - self.paces.of_port(counted)
      self._asked = AskedSchedule(schedule, self.paces.of_port, self._ahead)
      others = self._asked.rates(wanted)
      both = zip(reference.rates(list(map(self.paces.of_tf1, wanted))), others, strict=True)
      self._rates.update(zip(wanted, both, strict=True))
    found = [self._rates[count] for count in counts]
    return [one for one, _ in found], [other for _, other in found]

  def fitting_arguments(self) -> Sequence[tuple[str, float, float]]:
    """Returns arguments of the port's schedule with which it is TF1's, see `AskedSchedule`."""
    return () if self._asked is None else self._asked.fitting(self._rates)

  def _schedule_like_tf1(self) -> Schedule:
    """Returns the port's schedule; of several the one that is nearest to that of tf1.

    TF1 tells the rate of one optimizer, and which one of the port's that is, no name says.

    Raises:
      NotApplicable: there is none that can be asked.
    """
    reference, port = self._sides
    schedules = port.schedules()
    if (port.optimizers == 1 and not self._tells_fewer) or not schedules:
      return port.schedule()
    if self._nearest is None:
      wanted = reference.rates(COUNTS)
      found = [s.rates(COUNTS) for s in schedules]
      nearest = max(range(len(found)), key=lambda n: sum(are_same(wanted, found[n])))
      others = reference.further_rates(COUNTS) if self._tells_fewer else ()
      hides = len(schedules) < port.optimizers or may_be_of_another(found[nearest], others)
      if hides and not all(are_same(wanted, found[nearest])):
        raise NotApplicable('an optimizer of the port does not tell its rate')
      self._nearest = nearest
    return schedules[self._nearest]

  def rates_of_port(self) -> list[list[float]]:
    """Returns the rates of schedules of the port at `COUNTS`, and before those the last one.

    Those are left out that have a counterpart in tf1, the one that `rates` compares among them.
    """
    schedules = self._sides[1].schedules()
    nearest = 0 if len(schedules) == 1 and self._rates else self._nearest
    others = [s for n, s in enumerate(schedules) if n != nearest]
    found = [s.rates([max(s.count - 1, 0), *COUNTS]) for s in others]
    known = [rates for rates in self._sides[0].further_rates(COUNTS) if rates is not None]
    # What one of tf1's other optimizers has as well is compared by that.
    return [one for one in found if not any(all(are_same(own, one[1:])) for own in known)]

  @property
  def has_constant_rates(self) -> bool:
    """Whether every optimizer of the reference is a known one, with a number as learning rate."""
    reference, _ = self._sides
    records = reference.run().optimizers
    rates = [next(filter(None, map(record.setting, RATES)), None) for record in records]
    known = all(record.rule for record in records)
    return bool(rates) and known and all(rate is not None for rate in rates)

  @property
  def tells_all_rates(self) -> bool:
    """Whether the rates of all optimizers of the reference are known at any count."""
    return all(rates is not None for rates in self._sides[0].further_rates(COUNTS[:1]))

  def rates_if_known(self) -> Rates | None:
    """Returns what gives the rates of both sides; None where one cannot be asked."""
    try:
      self.rates([0])
    except (NotApplicable, UserCodeError):
      return None
    return self.rates

  def rates_by_count(self, counts: Sequence[int]) -> list[tuple[str, int, list[float]]]:
    """Returns what may count the port's steps, and its learning rates with that at counts."""
    return self._sides[1].rates_by_count(counts)

  def rates_of_tf1(self, counts: Sequence[int]) -> Sequence[float]:
    """Returns the learning rates of the reference at counts of steps; raises as `rates`."""
    return self._sides[0].rates(counts)

  def take_at_rate(self, factor: float) -> Steps:
    """Takes a step at the learning rate times a factor, which is forgotten.

    Returns:
      The steps with it.

    Raises:
      NotApplicable: a side cannot take it.
    """
    reference, port = self._sides
    port.schedule()
    one, other = reference.take_at_rate(factor), port.take_at_rate(factor)
    return self._forgotten(one, other)

  def try_clipping(
    self,
    watch: ClippingWatch,
    comparison: Comparison,
    left_out: Collection[str],
    change: Change | None = None,
  ) -> list[str]:
    """Compares what both sides make of larger gradients, after the last step.

    Args:
      watch: has seen the steps.
      comparison: gets what differs.
      left_out: tf1 names of variables whose gradients the sides change at different places.
      change: makes a batch of which more shows, as of rows that are looked up several times; not
        used where gradients are zero then.

    Returns:
      Notes on what was tried.
    """
    reference, port = self._sides
    found = factors_of(self.so_far(), port.evened)
    if change is not None:
      # Each of these steps may lead the sides apart, and the gradients of the next are to agree.
      self._align()
      others = factors_of(self.take_with(change), port.evened)
      self._align()
      found, change = (others, change) if have_same_zeros(others, found) else (found, None)
    tf1, tf2 = found or (None, None)
    ports = {other for one, other in self._pairs if one in left_out}
    return watch.judge(
      comparison,
      lambda: without_some(reference.try_clipping(tf1, change), left_out),
      lambda: without_some(port.try_clipping(tf2, change), ports),
      self._pairs if found else None,
      lambda: (
        found is not None and agree_at_large(self.now(), lambda: self.take_scaled(found, change))
      ),
    )

  def _align(self) -> None:
    """Gives the port the values of the reference after the last step, as far as they are known."""
    last, _ = self._beyond or self._taken[-1]
    self._sides[1].hold(all_elements(last, self._pairs))

  def clip_beyond(self) -> Clip | None:
    """Returns how the port clips larger gradients, tried after the last step."""
    return clip_beyond(self._sides[1].try_clipping)

  def _both_take(self) -> tuple[TrainingStep, TrainingStep]:
    reference, port = self._sides
    self._beyond = None
    if self._given is None:
      one, other = side_by_side(reference.take, port.take)
    else:
      one = reference.take()
      self._given.begin(one)
      other = port.take()
    if self._shadows is None:
      self._shadows = port_shadows(
        one, other, port.run(), self._pairs, self._slot_names, port.laid_out
      )
    return one, self._as_paired(one, other)

  def _as_paired(self, one: TrainingStep, other: TrainingStep) -> TrainingStep:
    """Returns a step of the port with the averages, and the learning rate, that tf1 tells of."""
    further = self._sides[0].further_rates if self._tells_fewer else None
    rate = told_rate(one, other, further)
    return dataclasses.replace(other, slots=self._with_shadows(other.slots), learning_rate=rate)

  @property
  def _tells_fewer(self) -> bool:
    return len(self._sides[0].run().optimizers) > len(self._sides[1].run().optimizers)

  def _with_shadows(self, slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
    found = self._shadows
    return (
      slots if found is None else renamed(slots, found.slots, found.owners, self._sides[1].laid_out)
    )

  def so_far(self) -> Steps:
    """Returns the steps taken."""
    return self._shown(self._taken)

  def _shown(self, taken: Sequence[tuple[TrainingStep, TrainingStep]]) -> Steps:
    ones, others = (tuple(side) for side in zip(*taken, strict=True))
    tf1 = dataclasses.replace(self._sides[0].run(), steps=ones)
    port: TrainingRun = self._sides[1].run()
    before = self._with_shadows(port.slots_before)
    tf2 = dataclasses.replace(port, steps=others, slots_before=before)
    return self.beside(tf1, tf2)
