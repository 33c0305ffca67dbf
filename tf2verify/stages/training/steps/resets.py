"""Elements that training changes by rounding only, reset to tf1's values between the steps.

An optimizer that scales gradients up moves such an element by its learning rate, in a direction of
its own on each side. What reads it differs from the next step on, and by more in each, although
both sides train alike. From tf1's values both sides start the next step from the same.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import TrainingStep


@dataclasses.dataclass(frozen=True, eq=False)
class ResetElements:
  """Elements of one variable of the port, in the shape of tf1."""

  where: np.ndarray  # bool
  values: np.ndarray  # those of tf1

  def into(self, value: np.ndarray) -> np.ndarray:
    """Returns a value of the variable with these elements; one of another shape as it is."""
    if value.shape != self.where.shape:
      return value
    return np.where(self.where, self.values, value).astype(value.dtype, copy=False)


# By the names under which the port's variables are shown.
Held = Mapping[str, ResetElements]


def reset_elements(
  elements: Mapping[str, np.ndarray],
  tf1: TrainingStep,
  pairs: Sequence[tuple[str, str]],
) -> dict[str, ResetElements]:
  """Returns the elements to be held after a step.

  Args:
    elements: where, by tf1 variable names.
    tf1: the step of the reference.
    pairs: variable names of tf1 and tf2.
  """
  values = {record.name: record.value for record in tf1.variables}
  found = {}
  for name, shown in pairs:
    where, value = elements.get(name), values.get(name)
    if where is not None and isinstance(value, np.ndarray) and where.shape == value.shape:
      found[shown] = ResetElements(where, value)
  return found


def all_elements(tf1: TrainingStep, pairs: Sequence[tuple[str, str]]) -> dict[str, ResetElements]:
  """Returns all values after a step that are known whole, so that both sides go on from the same.

  Args:
    tf1: the step of the reference.
    pairs: variable names of tf1 and tf2.
  """
  known = {record.name: record.value for record in tf1.variables}
  whole = {n: np.full(v.shape, True) for n, v in known.items() if isinstance(v, np.ndarray)}
  return reset_elements(whole, tf1, pairs)


def with_held(step: TrainingStep, held: Held) -> TrainingStep:
  """Returns a step of the port with elements as the next step finds them."""
  variables = tuple(
    TensorRecord(record.name, held[record.name].into(np.asarray(record.value)))
    if record.name in held
    else record
    for record in step.variables
  )
  return dataclasses.replace(step, variables=variables)
