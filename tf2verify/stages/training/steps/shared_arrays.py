"""Arrays that both sides have after a step, held once."""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import TrainingStep

# An array, or None.
_Value = TypeVar('_Value')


def with_shared(
  one: TrainingStep, other: TrainingStep, pairs: Sequence[tuple[str, str]]
) -> TrainingStep:
  """Returns the port's step with the reference's arrays where they are the same.

  Args:
    one: the reference's step.
    other: the port's.
    pairs: variable names of tf1 and tf2.
  """
  values = {record.name: record.value for record in one.variables}
  slots = {(slot.role, slot.variable): slot.value for slot in one.slots}
  tf1 = {tf2: name for name, tf2 in pairs}
  return dataclasses.replace(
    other,
    variables=tuple(
      TensorRecord(known.name, _one_of(known.value, values.get(tf1.get(known.name, ''))))
      for known in other.variables
    ),
    slots=tuple(
      dataclasses.replace(
        slot,
        value=_one_of(slot.value, slots.get((slot.role, tf1.get(slot.variable, slot.variable)))),
      )
      for slot in other.slots
    ),
  )


def _one_of(value: _Value, same: _Value | None) -> _Value:
  """Returns the second of two arrays where they are the same, so that one is let go."""
  if not isinstance(same, np.ndarray) or not isinstance(value, np.ndarray):
    return value
  return same if same.dtype == value.dtype and np.array_equal(same, value) else value
