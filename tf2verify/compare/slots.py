"""The state of two sides' optimizers, paired by meaning."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.records.sampled import SampledArray
from tf2verify.records.training import Slot

_Array = np.ndarray[Any, Any]

# A sum of gradients, and what it becomes in the step, as multiples of it where the
# learning rate has always been the same: TF1 keeps the sum and multiplies it in each
# step (w -= rate·m), Keras keeps what it adds to the variable (w += v), RMSProp of both
# what it subtracts.
_MOMENTUM = 'momentum'
_IN_MOMENTUM = {_MOMENTUM: 0, 'velocity': -1, 'scaled momentum': 1}


@dataclasses.dataclass(frozen=True, eq=False)
class SlotPair:
  """What both sides keep for a variable.

  Attributes:
    role: by the tf1 side.
    variable: its tf1 name; '' for the optimizer as a whole.
    tf1: the value.
    tf2: the value, in the unit of tf1's.
    name: what the port calls it.
  """

  role: str
  variable: str
  tf1: _Array
  tf2: _Array
  name: str


@dataclasses.dataclass(frozen=True, eq=False)
class PairedSlots:
  """All pairs, and what only one side has.

  Attributes:
    pairs: in the order of tf1.
    tf1_only: slots.
    tf2_only: slots.
  """

  pairs: tuple[SlotPair, ...]
  tf1_only: tuple[Slot, ...]
  tf2_only: tuple[Slot, ...]


def pair_slots(
  tf1: Sequence[Slot],
  tf2: Sequence[Slot],
  tf1_names: Mapping[str, str],
  rates: Iterable[float | None],
) -> PairedSlots:
  """Pairs slots by role and variable.

  A momentum of TF1 and a velocity of Keras are a pair as long as one learning rate has
  served all steps: velocity = -rate · momentum.

  Args:
    tf1: the reference's slots after a step.
    tf2: the port's.
    tf1_names: from the port's variable names to those of tf1.
    rates: the learning rates of both sides, of all steps so far.
  """
  rate = _common(rates)
  left = list(tf2)
  pairs, alone = [], []
  for one in tf1:
    for other in left:
      scale = _scale(one.role, other.role, rate)
      named = tf1_names.get(other.variable, other.variable)
      if scale is not None and named == one.variable and _shape(one.value) == other.value.shape:
        value = other.value if scale == 1.0 else (other.value * scale).astype(other.value.dtype)
        pairs.append(SlotPair(one.role, one.variable, one.value, value, other.name))
        left.remove(other)
        break
    else:
      alone.append(one)
  return PairedSlots(tuple(pairs), tuple(alone), tuple(left))


def _shape(value: _Array) -> tuple[int, ...]:
  return value.full_shape if isinstance(value, SampledArray) else value.shape


def _scale(tf1: str, tf2: str, rate: float | None) -> float | None:
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
