"""What a training step has computed, quantity by quantity, in the order of cause and effect."""

import copy
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.numerics.tolerance import Tolerance, ToleranceTable
from tf2verify.records.diagnosis import About
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import OptimizerRecord, Slot, TrainingRun, TrainingStep
from tf2verify.reference.perturbation import fraction_bits
from tf2verify.reference.slot_roles import LINEAR
from tf2verify.relation.slots import DeclaredSlots, PairedSlots, SlotPair, pair_slots
from tf2verify.stages.training.steps import told_losses
from tf2verify.stages.training.steps.loss_scales import loss_scale
from tf2verify.stages.training.steps.told_losses import Told

_Array = np.ndarray[Any, Any]

LEARNING_RATE = 'learning rate'
LOSS = 'loss'
GRADIENT = 'gradient'
APPLIED = 'applied gradient'
SLOT = 'slot'
UPDATE = 'update'
STATE = 'state'
SHADOW = 'shadow'
GLOBAL_STEP = 'global step'
# What a difference in one of them makes differ comes later.
CAUSAL_ORDER = (
  LEARNING_RATE,
  LOSS,
  GRADIENT,
  APPLIED,
  SLOT,
  UPDATE,
  STATE,
  SHADOW,
  GLOBAL_STEP,
)
# What a cause of a difference in one of them is about.
ABOUT = {
  LEARNING_RATE: About.LEARNING_RATE,
  LOSS: About.LOSS,
  GRADIENT: About.GRADIENTS,
  APPLIED: About.GRADIENTS,
  SLOT: About.UPDATE,
  UPDATE: About.UPDATE,
  STATE: About.UPDATE,
  SHADOW: About.SHADOWS,
  GLOBAL_STEP: About.COUNT,
}
_SHADOW_ROLE = 'shadow'
RATES = ('learning_rate', 'lr')
# Storing a variable rounds it once a step on either side, by half a unit in the last
# place; as much again for the order of a rule's operations.
_STORED_UNITS = 2.0
# The settings of all optimizers are float32, and 1 - 0.999 is another number where TF1
# forms it, in float32, than where Keras does, in Python: 1.3e-5 apart. Every step adds
# to that, and what is computed from the variables drifts with it.
_SETTING_UNIT = 2.0**-24
# After an update that rounds, a gradient far below the others (of a softmax that has
# saturated, besides those of weight decay) is rounding throughout. What it does to its
# variable is compared anyway.
_GRADIENT_UNIT = 2.0**-23


@dataclasses.dataclass(frozen=True, eq=False)
class QuantityPair:
  """A quantity on both sides."""

  quantity: str  # one of `CAUSAL_ORDER`
  subject: str  # whose: a variable's tf1 name, or what it is
  variable: str  # the variable's tf1 name; '' where it is of none
  tf1: _Array | None  # None where the side has none
  tf2: _Array | None  # in the unit of tf1's
  extra_atol: float = 0.0  # what storing the variables may add to the difference
  extra_rtol: float = 0.0  # what the rounding of an optimizer's constants may add, of tf1's

  @property
  def key(self) -> TensorKey:
    """Which tensor it is, of a step that is known."""
    return TensorKey(self.quantity, self.subject)

  def without(self, elements: Mapping[str, _Array]) -> 'QuantityPair':
    """Returns the pair with elements of the variable as in tf1.

    Args:
      elements: where, by tf1 variable names.
    """
    where, one, other = elements.get(self.variable), self.tf1, self.tf2
    if where is None or one is None or other is None or not where.shape == one.shape == other.shape:
      return self
    return dataclasses.replace(self, tf2=np.where(where, one, other))


def step_name(number: int) -> str:
  """Returns what findings call a step."""
  return f'step {number}'


def tolerance_for(pair: QuantityPair, table: ToleranceTable) -> ToleranceTable:
  """Returns the allowance of a pair: atol is a fraction of the greatest element of tf1's."""
  if pair.tf1 is None:
    return table
  allowed = table.for_dtype(pair.tf1.dtype)
  size, rtol = greatest(pair.tf1), allowed.rtol + pair.extra_rtol
  return ToleranceTable(
    ((pair.tf1.dtype.name, Tolerance(rtol, allowed.atol * size + pair.extra_atol)),)
  )


def greatest(value: _Array) -> float:
  """Returns the greatest |element| of those that are finite; 0 where nothing is floating."""
  if fraction_bits(value.dtype) is None or not value.size:
    return 0.0
  if value.dtype.itemsize < 4:
    value = value.astype(np.float32)
  if value.dtype.kind == 'f':  # without a copy, where all are finite
    size = max(abs(float(value.max())), abs(float(value.min())))
    if math.isfinite(size):
      return size
  sizes = np.abs(value)
  return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))


def _unit(value: _Array) -> float:
  """Returns the unit in the last place of the greatest element."""
  bits, size = fraction_bits(value.dtype), greatest(value)
  return 0.0 if bits is None or not size else 2.0 ** (math.floor(math.log2(size)) - bits)


def change(after: _Array, before: _Array | None) -> _Array:
  """Returns what was added to a floating value; any other value as it is."""
  if before is None or fraction_bits(after.dtype) is None or before.shape != after.shape:
    return after
  difference: _Array = after - before
  return difference


class Steps:
  """Two runs, laid side by side.

  Attributes:
    tf1: the reference's.
    tf2: the port's.
    names: pairs of tf1 and tf2 variable names.
    doubtful_shadows: by the tf1 name of a variable, what of the port may be its average.
    told: which loss the port's step returns; the reference's is that one.
    loss_scale: how many times as large as the port tf1 computes the gradients of the step
      looked at last, both to apply the same.
  """

  loss_scale = 1.0

  def __init__(
    self,
    tf1: TrainingRun,
    tf2: TrainingRun,
    names: Sequence[tuple[str, str]],
    trainable: frozenset[str],
    slot_names: DeclaredSlots = None,
    doubtful_shadows: Mapping[str, str] | None = None,
    told: Told | None = None,
  ) -> None:
    """Takes two runs of as many steps.

    Args:
      tf1: the reference's.
      tf2: the port's.
      names: pairs of tf1 and tf2 variable names.
      trainable: tf1 names.
      slot_names: as the case declares them.
      doubtful_shadows: by the tf1 name of a variable, what of the port may be its average.
      told: which loss the port's step returns; None for the one that the first step shows.
    """
    self.told = told_losses.told(tf1, tf2, names) if told is None else told
    self.tf1, self.tf2 = told_losses.as_told(tf1, self.told), tf2
    self.doubtful_shadows = dict(doubtful_shadows or {})
    self._slot_names = slot_names
    present = {record.name for record in tf1.values_before}
    self.names = tuple(pair for pair in names if pair[0] in present)
    self._trainable = trainable
    self._before = _by_name(tf1.values_before), _by_name(tf2.values_before)
    self._constants = _constants_share((*tf1.optimizers, *tf2.optimizers))
    self._further_rates = _rates_of_several(tf1.optimizers, tf2.optimizers)

  def without_arrays(self) -> 'Steps':
    """Returns the same with what takes no memory of every step."""
    found = copy.copy(self)
    found.tf1, found.tf2 = self.tf1.without_arrays(), self.tf2.without_arrays()
    return found

  def slots(self, number: int) -> PairedSlots:
    """Pairs the optimizers' slots after a step."""
    rates = [step.learning_rate for run in (self.tf1, self.tf2) for step in run.steps[:number]]
    one, other = self.tf1.steps[number - 1], self.tf2.steps[number - 1]
    names = {tf2: tf1 for tf1, tf2 in self.names}
    optimizers = _optimizers(one), _optimizers(other)
    before = tuple(_optimizers(run.steps[number - 2]) for run in (self.tf1, self.tf2))
    known = (before[0], before[1]) if number > 1 else ((), ())
    return pair_slots(*optimizers, names, rates, self._slot_names, self._further_rates, known)

  def undecided_slots(self) -> list[tuple[Slot, Slot]]:
    """Returns what may be pairs after the last step, where no number says so."""
    names = {tf2: tf1 for tf1, tf2 in self.names}
    return self.slots(len(self.tf1.steps)).undecided(names)

  def pairs(self, number: int) -> Iterator[QuantityPair]:
    """Yields what both sides tell of a step, in the order of cause and effect."""
    one, other = self.tf1.steps[number - 1], self.tf2.steps[number - 1]
    if one.learning_rate is not None and other.learning_rate is not None:
      rates = [np.asarray(step.learning_rate, np.float32) for step in (one, other)]
      yield QuantityPair(LEARNING_RATE, '(of the step)', '', rates[0], rates[1])
    if one.loss is not None and other.loss is not None:
      yield QuantityPair(LOSS, self.told.value, '', one.loss, other.loss, 0.0, self._drift(number))
    yield from self._gradients(number, one, other)
    yield from self._slots(number, one)
    yield from self._changes(number, one, other)
    yield from self._shadows(number, one, other)
    counted = self.port_count(number)
    if one.global_step is not None and counted is not None and self.counts:
      counts = [np.asarray(count, np.int64) for count in (one.global_step, counted)]
      yield QuantityPair(GLOBAL_STEP, '(count)', '', counts[0], counts[1])

  @property
  def counts(self) -> bool:
    """Whether the reference's train op moves its global step."""
    return any(step.global_step for step in self.tf1.steps)

  def port_count(self, number: int) -> int | None:
    """Returns the port's count of steps: one of its counters that has counted as tf1, if any has.

    An optimizer counts what it applies, which is less where gradients are accumulated.
    """
    steps = list(zip(self.tf1.steps[:number], self.tf2.steps[:number], strict=True))
    alike = [
      name
      for name, _ in steps[0][1].further_counts
      if all(dict(other.further_counts).get(name) == one.global_step for one, other in steps)
    ]
    last = steps[-1][1]
    return dict(last.further_counts)[alike[0]] if alike else last.global_step

  def _drift(self, number: int) -> float:
    """Returns what earlier steps may have added, relative to what is computed from variables."""
    return self._constants * (number - 1)

  def _gradients(
    self, number: int, one: TrainingStep, other: TrainingStep
  ) -> Iterator[QuantityPair]:
    raw = _by_name(one.gradients), _by_name(other.gradients)
    applied = _by_name(one.applied_gradients), _by_name(other.applied_gradients)
    scale = loss_scale((raw[0], applied[0]), (raw[1], applied[1]), self.names)
    self.loss_scale = scale
    for quantity, (ones, others) in ((GRADIENT, raw), (APPLIED, applied)):
      # Relative to the gradients of the other variables these are rounding.
      known = [value for tf1, _ in self.names if (value := ones.get(tf1)) is not None]
      lost = _GRADIENT_UNIT * max(map(greatest, known), default=0.0) if number > 1 else 0.0
      for tf1, tf2 in self.names:
        if tf1 not in ones or tf2 not in others:
          continue
        if quantity == APPLIED and _same(applied, raw, tf1, tf2):
          continue
        gradient, extra_rtol = ones[tf1], self._drift(number)
        extra_atol = 0.0 if gradient is None else extra_rtol * greatest(gradient) + lost
        port = others[tf2]
        if quantity == GRADIENT and scale != 1.0 and port is not None:
          port = (port * scale).astype(port.dtype)
        yield QuantityPair(quantity, tf1, tf1, gradient, port, extra_atol, extra_rtol)

  def _slots(self, number: int, one: TrainingStep) -> Iterator[QuantityPair]:
    pairs = [slot for slot in self.slots(number).pairs if slot.role != 'step count']
    for slot in pairs:
      subject = f'{slot.role} of {slot.variable}' if slot.variable else slot.role
      extra_atol = self._drift(number) * greatest(slot.tf1)
      if slot.role == LINEAR:
        extra_atol += _linear_extra_atol(slot.variable, pairs, one)
      extra_rtol = self._constants * number
      yield QuantityPair(SLOT, subject, slot.variable, slot.tf1, slot.tf2, extra_atol, extra_rtol)

  def _changes(self, number: int, one: TrainingStep, other: TrainingStep) -> Iterator[QuantityPair]:
    ones, others = _by_name(one.variables), _by_name(other.variables)
    for trained in (True, False):
      for tf1, tf2 in self.names:
        if (tf1 in self._trainable) is not trained or tf1 not in ones or tf2 not in others:
          continue
        one_after, other_after = ones[tf1], others[tf2]
        if one_after is None or other_after is None:
          continue
        moved = change(one_after, self._before[0].get(tf1))
        other_moved = change(other_after, self._before[1].get(tf2))
        extra_atol = _STORED_UNITS * number * _unit(one_after) + self._drift(number) * greatest(
          moved
        )
        extra_rtol = self._constants * number
        yield QuantityPair(
          UPDATE if trained else STATE, tf1, tf1, moved, other_moved, extra_atol, extra_rtol
        )

  def _shadows(self, number: int, one: TrainingStep, other: TrainingStep) -> Iterator[QuantityPair]:
    """Yields moving averages of weights, as their distance to where the weights started."""
    ones = {slot.variable: slot for slot in one.slots if slot.role == _SHADOW_ROLE}
    others = {slot.variable: slot for slot in other.slots if slot.role == _SHADOW_ROLE}
    for tf1, tf2 in self.names:
      shadow, port = ones.get(tf1), others.get(tf2)
      if (shadow is None and port is None) or (port is None and tf1 in self.doubtful_shadows):
        continue
      yield QuantityPair(
        SHADOW,
        tf1,
        tf1,
        None if shadow is None else change(shadow.value, self._before[0].get(tf1)),
        None if port is None else change(port.value, self._before[1].get(tf2)),
        0.0 if shadow is None else _STORED_UNITS * number * _unit(shadow.value),
        self._constants,
      )


def _constants_share(optimizers: Sequence[OptimizerRecord]) -> float:
  """Returns how far 1 minus a decay may be off by rounding, relative to it."""
  decays = [value for record in optimizers for _, value in record.settings if 0.5 < value < 1.0]
  return max((_SETTING_UNIT / (1.0 - decay) for decay in decays), default=0.0)


def _rates_of_several(*sides: Sequence[OptimizerRecord]) -> tuple[float, ...]:
  """Returns the learning rates of all optimizers, where a side has several."""
  if max(map(len, sides)) < 2:
    return ()
  records = [record for optimizers in sides for record in optimizers]
  found = (record.setting(name) for record in records for name in RATES)
  return tuple(dict.fromkeys(rate for rate in found if rate))


def _linear_extra_atol(variable: str, slots: Sequence[SlotPair], step: TrainingStep) -> float:
  """Returns the rounding of Ftrl's `linear`, a sum of (sqrt(n') - sqrt(n)) / rate * w."""
  squares = [s.tf1 for s in slots if s.role == 'squared gradient' and s.variable == variable]
  values = [r.value for r in step.variables if r.name == variable and r.value is not None]
  if not squares or not values or not step.learning_rate:
    return 0.0
  root = math.sqrt(greatest(squares[0]))
  return 4.0 * _SETTING_UNIT * root / step.learning_rate * max(greatest(values[0]), 1.0)


def of_reference(run: TrainingRun, number: int) -> dict[TensorKey, _Array]:
  """Returns what a reference's run has computed in a step."""
  step, before = run.steps[number - 1], _by_name(run.values_before)
  found: dict[tuple[str, str], _Array] = {}
  losses = {Told.TOTAL: step.loss, Told.MINIMIZED: step.minimized}
  if number == 1:
    losses[Told.UNREGULARIZED] = told_losses.unregularized(run)
  found.update({(LOSS, of.value): loss for of, loss in losses.items() if loss is not None})
  for quantity, records in ((GRADIENT, step.gradients), (APPLIED, step.applied_gradients)):
    found.update({(quantity, r.name): r.value for r in records if r.value is not None})
  for record in step.variables:
    if record.value is not None:
      moved = change(record.value, before.get(record.name))
      found[UPDATE, record.name] = found[STATE, record.name] = moved
  for slot in step.slots:
    if slot.role == _SHADOW_ROLE:
      found[SHADOW, slot.variable] = change(slot.value, before.get(slot.variable))
    else:
      found[SLOT, f'{slot.role} of {slot.variable}' if slot.variable else slot.role] = slot.value
  return {TensorKey(*key): value for key, value in found.items()}


def _optimizers(step: TrainingStep) -> tuple[Slot, ...]:
  return tuple(slot for slot in step.slots if slot.role != _SHADOW_ROLE)


def _by_name(records: Any) -> Mapping[str, _Array | None]:
  return {record.name: record.value for record in records}


def _same(applied: Any, raw: Any, tf1: str, tf2: str) -> bool:
  """Returns whether on neither side the gradient was changed before it was applied."""
  for changed, known, name in zip(applied, raw, (tf1, tf2), strict=True):
    before = known.get(name)
    if before is None or changed[name] is None or not np.may_share_memory(before, changed[name]):
      return False
  return True
