"""The state of two sides' optimizers, paired by meaning."""

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.records.sampled import SampledArray
from tf2verify.records.training import Slot
from tf2verify.reference.slot_roles import OWN_MOMENTUM

_Array = np.ndarray[Any, Any]
# From what a slot is called in tf1 to what the port calls it, and by what this is multiplied.
_Called = dict[str, tuple[str, float]]
# By what a slot of the port is multiplied to be that of tf1; None where it is another one.
_Fits = Callable[[Slot, Slot], float | None]

# A sum of gradients, and what it becomes in the step, as multiples of it where the
# learning rate has always been the same: TF1 keeps the sum and multiplies it in each
# step (w -= rate·m), Keras keeps what it adds to the variable (w += v), RMSProp of both
# what it subtracts.
_MOMENTUM = 'momentum'
_IN_MOMENTUM = {_MOMENTUM: 0, 'velocity': -1, 'scaled momentum': 1}
MOMENTUM_ROLES = tuple(_IN_MOMENTUM)
# What optimizers know of the number of steps, each in its own way.
COUNTS = ('step count', 'beta1 power', 'beta2 power')
# From a slot of tf1 to that of tf2, by name, role or word; a method is given the name.
DeclaredSlots = Mapping[str, str | None] | Callable[[str], str | None] | None
# By the words of optimizers of unknown rule, what others call it. Not by `momentum` and
# `velocity`, of which each optimizer means something else.
_MEANINGS = {
  **dict.fromkeys(('m', 'adam m', 'lamb m', 'm t', 'mt', 'moment1', 'exp avg'), 'first moment'),
  **dict.fromkeys(('v', 'adam v', 'lamb v', 'v t', 'vt', 'moment2'), 'second moment'),
  **dict.fromkeys(('first moments', 'moments1'), 'first moment'),
  **dict.fromkeys(('second moments', 'moments2', 'exp avg sq'), 'second moment'),
  **dict.fromkeys(('vhat', 'v hat', 'max v', 'velocity hats'), 'greatest second moment'),
  **dict.fromkeys(('accumulator', 'accumulators', 'accum', 'acc'), 'squared gradient'),
  **dict.fromkeys(('rms', 'mean square', 'square avg'), 'squared gradient'),
  **dict.fromkeys(('mg', 'average gradients', 'grad avg'), 'mean gradient'),
}
# Of optimizers of unknown rule; `sides.optimizers.state` says so too.
_COUNTER = re.compile(r'[ _]\d+$')
# Of the greatest element: values that are closer are those of one quantity.
_SAME = 1e-4
# What each of these means is known, and never the same.
_KNOWN = frozenset(
  {*_MEANINGS.values(), *_IN_MOMENTUM, 'infinity norm', 'squared update', 'linear', 'shadow'}
)


@dataclasses.dataclass(frozen=True, eq=False)
class SlotPair:
  """What both sides keep for a variable."""

  role: str  # by the tf1 side
  variable: str  # its tf1 name; '' for the optimizer as a whole
  tf1: _Array  # the value
  tf2: _Array  # the value, in the unit of tf1's
  name: str  # what the port calls it


@dataclasses.dataclass(frozen=True, eq=False)
class PairedSlots:
  """All pairs, and what only one side has."""

  pairs: tuple[SlotPair, ...]  # in the order of tf1
  tf1_only: tuple[Slot, ...]  # slots
  tf2_only: tuple[Slot, ...]  # slots

  def undecided(self, names: Mapping[str, str]) -> list[tuple[Slot, Slot]]:
    """Returns what may be pairs by variable and shape, where no number says so.

    Args:
      names: from the port's variable names to those of tf1.
    """
    left = _Left([], list(self.tf2_only), names)
    return [
      (one, other)
      for one in self.tf1_only
      for other in self.tf2_only
      if left.may_be_pair(one, other) and not _are_known_to_differ(one, other)
    ]


def pair_slots(
  tf1: Sequence[Slot],
  tf2: Sequence[Slot],
  tf1_names: Mapping[str, str],
  rates: Iterable[float | None],
  declared: DeclaredSlots = None,
  further_rates: Sequence[float] = (),
  before: tuple[Sequence[Slot], Sequence[Slot]] = ((), ()),
) -> PairedSlots:
  """Pairs slots: as declared, by role and variable, by numbers that tell, by words for a role.

  A momentum of TF1 and a velocity of Keras are a pair as long as one learning rate has
  served all steps: velocity = -rate · momentum. A word that code of one's own has for its state is
  a guess, against which its numbers count. What nothing else pairs is a pair where
  variable and shape are the same and the values agree. So does what is called the same as such a
  pair, of another variable or after the step before, whether or not its own values agree. Anything
  else that differs may mean something else, and is left alone.

  Args:
    tf1: the reference's slots after a step.
    tf2: the port's.
    tf1_names: from the port's variable names to those of tf1.
    rates: the learning rates of both sides, of all steps so far.
    declared: from a slot of tf1 to that of tf2, see `OptionalHooks.slot_names`.
    further_rates: those of all optimizers, where there are several and `rates` are of one of them.
      Which one serves a variable, its values tell; what it does to the variable is compared anyway.
    before: both sides' slots after the step before.
  """
  rate = _common(rates)
  left = _Left(list(tf1), list(tf2), tf1_names)

  def as_declared(one: Slot, other: Slot) -> float | None:
    return 1.0 if other.is_called(declared_name(one, declared) or '') else None

  def by_role(one: Slot, other: Slot) -> float | None:
    for own in further_rates:
      scale = scale_between(one.role, other.role, own)
      if scale is not None and are_same(one, other, scale):
        return scale
    return scale_between(one.role, other.role, rate)

  said = [one for one in tf1 if declared_name(one, declared) is not None]
  others = [one for one in tf1 if declared_name(one, declared) is None]
  pairs = left.take(said, as_declared)
  for fits in (by_role, _by_meaning_and_numbers, _by_numbers, _by_meaning):
    pairs += left.take(others, fits)
  pairs += left.take(others, lambda one, other: _by_momentum(one, other, rate))
  pairs += left.take(others, _by_value, anywhere=True)
  for known in (left.called, lambda: _called_before(before, tf1_names, rate, declared)):
    # Of several optimizers each may have its own unit.
    if left.tf1 and left.tf2 and not further_rates:
      pairs += left.take(others, functools.partial(_as_called, known()))
  alone = [one for one in left.tf1 if declared_name(one, declared) != '']
  order = {id(slot.value): number for number, slot in enumerate(tf1)}
  pairs.sort(key=lambda pair: order[id(pair.tf1)])
  return PairedSlots(tuple(pairs), tuple(alone), tuple(left.tf2))


def _called_before(
  before: tuple[Sequence[Slot], Sequence[Slot]],
  tf1_names: Mapping[str, str],
  rate: float | None,
  declared: DeclaredSlots,
) -> _Called:
  """Returns what the pairs of the step before are called."""
  left = _Left(list(before[0]), list(before[1]), tf1_names)
  others = [one for one in before[0] if declared_name(one, declared) is None]
  by_momentum = functools.partial(_by_momentum, rate=rate)
  for fits in (_by_meaning_and_numbers, _by_numbers, _by_meaning, by_momentum, _by_value):
    left.take(others, fits)
  return left.called()


def _as_called(known: _Called, one: Slot, other: Slot) -> float | None:
  called, scale = known.get(meaning(one), ('', None))
  return scale if called == meaning(other) else None


def declared_name(slot: Slot, declared: DeclaredSlots) -> str | None:
  """Returns what a case calls the port's slot; '' where it has none, None where it says nothing."""
  if declared is None:
    return None
  if callable(declared):
    return declared(slot.name)
  for name, its in declared.items():
    if slot.is_called(name):
      return its or ''
  return None


def has_known_meaning(slot: Slot) -> bool:
  """Returns whether it is known what a slot is, and not guessed from a word of its own."""
  return is_known_role(slot.role)


def is_known_role(role: str) -> bool:
  """Returns whether a role is one of known optimizers, or a momentum."""
  return role in _KNOWN or role == OWN_MOMENTUM


class _Left:
  """The slots of both sides that are no pair yet."""

  def __init__(self, tf1: list[Slot], tf2: list[Slot], tf1_names: Mapping[str, str]) -> None:
    self.tf1, self.tf2 = tf1, tf2
    self._tf1_names = tf1_names
    self._made: list[tuple[Slot, Slot, float]] = []

  def take(self, ones: Iterable[Slot], fits: _Fits, anywhere: bool = False) -> list[SlotPair]:
    """Makes pairs of slots of tf1 and the first of tf2 of the same variable that fits.

    Args:
      ones: of tf1; those that are in a pair already are passed over.
      fits: returns by what the port's is multiplied; None where it does not fit.
      anywhere: whether a slot of which no variable is known may be the other one.
    """
    pairs = []
    for one in ones:
      if not any(one is known for known in self.tf1):
        continue
      for other in self.tf2:
        scale = fits(one, other) if self.may_be_pair(one, other, anywhere) else None
        if scale is None:
          continue
        value = other.value if scale == 1.0 else (other.value * scale).astype(other.value.dtype)
        self.tf1 = [known for known in self.tf1 if known is not one]
        self.tf2 = [known for known in self.tf2 if known is not other]
        pairs.append(SlotPair(one.role, one.variable, one.value, value, other.name))
        self._made.append((one, other, scale))
        break
    return pairs

  def called(self) -> _Called:
    """Returns what the port calls what tf1 calls so, as the values of the pairs show."""
    return {
      meaning(one): (meaning(other), scale)
      for one, other, scale in self._made
      if tells(one.value) and are_same(one, other, scale)
    }

  def may_be_pair(self, one: Slot, other: Slot, anywhere: bool = False) -> bool:
    """Returns whether two slots belong to one variable and have one shape."""
    owner = self._tf1_names.get(other.variable, other.variable)
    same = owner == one.variable or (anywhere and not (owner and one.variable))
    return same and shape(one.value) == shape(other.value)


def _by_meaning_and_numbers(one: Slot, other: Slot) -> float | None:
  return _by_numbers(one, other) if _by_meaning(one, other) else None


def _by_numbers(one: Slot, other: Slot) -> float | None:
  """Returns 1 where two slots hold the same numbers, and these tell: not of a start, all alike."""
  return _by_value(one, other) if tells(one.value) else None


def _by_meaning(one: Slot, other: Slot) -> float | None:
  return 1.0 if meaning(one) == meaning(other) else None


def meaning(slot: Slot) -> str:
  """Returns the role of a slot, in one word for all that are used for it."""
  word = _COUNTER.sub('', slot.role.lower().replace('_', ' ')).strip()
  return _MEANINGS.get(word, word)


def _by_momentum(one: Slot, other: Slot, rate: float | None) -> float | None:
  """Returns what makes the port's momentum tf1's, where one of them is of an unknown unit.

  It may be the sum of the gradients, what is added to the variable or what is subtracted
  from it: of those the one that fits the values, if any does.
  """
  roles = {one.role, other.role}
  is_own = OWN_MOMENTUM in roles and roles <= {OWN_MOMENTUM, *_IN_MOMENTUM}
  # Under another word it may be anything: where its numbers say so, it is a momentum.
  is_guess = bool(roles & {OWN_MOMENTUM, *_IN_MOMENTUM}) and bool(roles - _KNOWN)
  if not is_own and not (is_guess and tells(one.value)):
    return None
  scales = (1.0, -1.0, *((rate, -rate, 1.0 / rate, -1.0 / rate) if rate else ()))
  return next((scale for scale in scales if _by_value(one, other, scale)), None)


def _by_value(one: Slot, other: Slot, scale: float = 1.0) -> float | None:
  """Returns the scale where two slots hold the same numbers, as far as rounding goes.

  Two of which it is known that they mean different things are still not a pair.
  """
  if _are_known_to_differ(one, other):
    return None
  if any(slot.role in COUNTS or not isinstance(slot.value, np.ndarray) for slot in (one, other)):
    return None
  return scale if are_same(one, other, scale) else None


def _are_known_to_differ(one: Slot, other: Slot) -> bool:
  """Returns whether optimizers whose rules are known mean different things by two slots.

  What code of one's own calls its state, such as `acc` or `v`, says nothing against its numbers.
  """
  return one.role != other.role and {one.role, other.role} <= _KNOWN


def tells(value: _Array) -> bool:
  """Returns whether an array has different elements: equal ones may be no more than a start."""
  return isinstance(value, np.ndarray) and value.size > 1 and bool(np.any(value != value.flat[0]))


def are_same(one: Slot, other: Slot, scale: float) -> bool:
  """Returns whether two slots hold the same numbers, but for a factor."""
  if not all(isinstance(slot.value, np.ndarray) for slot in (one, other)):
    return False
  if one.value.dtype != other.value.dtype or one.value.dtype.kind != 'f':
    return False
  if one.value.shape != other.value.shape:  # of a large one, samples may be all that there is
    return False
  size = float(np.max(np.abs(one.value), initial=0.0))
  return np.allclose(other.value * scale, one.value, 0.0, _SAME * size)


def shape(value: _Array) -> tuple[int, ...]:
  return value.full_shape if isinstance(value, SampledArray) else value.shape


def scale_between(tf1: str, tf2: str, rate: float | None) -> float | None:
  """Returns by what a slot of the port is multiplied to be in tf1's unit; None if it cannot be."""
  if tf1 == tf2:
    return 1.0
  if tf1 not in _IN_MOMENTUM or tf2 not in _IN_MOMENTUM:
    return None
  one, other = _IN_MOMENTUM[tf1], _IN_MOMENTUM[tf2]
  if one and other:
    return -1.0
  if not rate:
    return None
  return one * rate if one else 1.0 / (other * rate)


def _common(rates: Iterable[float | None]) -> float | None:
  """Returns the one learning rate of all steps; None where there are several."""
  known = [rate for rate in rates if rate is not None]
  same = known and all(math.isclose(rate, known[0], rel_tol=1e-6) for rate in known)
  return known[0] if same else None
