"""Gradients of the reference in the place of those of a step of the port."""

import collections
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.training import TrainingStep
from tf2verify.reference.updates import Updates
from tf2verify.relation.layouts.variable_layouts import Layouts
from tf2verify.sides.optimizers.update_recorder import update_recorder

_CLOSE = 1e-6


class GivenGradients:
  """Gives the steps of a port what tf1 differentiates to, or applies.

  What both sides make of the same gradients can be compared then, whatever their models compute.
  """

  def __init__(self, layouts: Layouts, names: Mapping[str, str], applied: bool) -> None:
    """Prepares.

    Args:
      layouts: how the port holds the variables of tf1.
      names: under which its variables are shown, by tf1 name.
      applied: whether to give what tf1 applies to the port's optimizers, and not what tf1
        differentiates to, to its tapes: that leaves out how the gradients are clipped.
    """
    self._layouts = layouts
    self._names = names
    self._applied = applied
    self._values: dict[str, np.ndarray] = {}
    self._norms: dict[str, float] = {}
    self._answered: collections.Counter[str] = collections.Counter()
    # In a trace, by name: what a graph reads of a variable is no constant of it.
    self._variables: dict[str, Any] = {}
    # The same of rows, with their numbers.
    self._rows: dict[str, tuple[Any, np.ndarray]] = {}

  def begin(self, tf1: TrainingStep) -> None:
    """Takes what the next step of the port gets: that of the reference."""
    records = tf1.applied_gradients if self._applied else tf1.gradients
    shown = {self._names[r.name]: r for r in records if r.name in self._names}
    known = {name: r.value for name, r in shown.items() if r.value is not None}
    self._values = self._own(known)
    # An optimizer may expect that rows that occur several times were added up before.
    known_norms = {name: r.slices.norm for name, r in shown.items() if r.slices is not None}
    self._norms = {} if self._applied else known_norms
    self._answered.clear()
    self._variables, self._rows = {}, {}

  def begin_trace(self, tf1: TrainingStep) -> None:
    """Takes what the next step gets where it is traced: the graphs of all steps are one then."""
    self.begin(tf1)
    for number, (name, value) in enumerate(self._values.items()):
      self._variables[name] = _variable(value, number)
      if name in self._norms:
        rows, indices = self._of_rows(name)
        self._rows[name] = _variable(rows, number), indices

  @property
  def variables(self) -> list[Any]:
    """What a step that is traced reads its gradients from."""
    return [*self._variables.values(), *(rows for rows, _ in self._rows.values())]

  def recorder(self) -> Updates:
    """Returns what records the updates of the next step, and gives it the gradients."""
    if self._applied:
      return update_recorder(applied=self._given)
    return update_recorder(given=self._given)

  @property
  def were_all_taken(self) -> bool:
    """Whether the step has asked for each of them, once."""
    return set(self._answered) == set(self._values) and set(self._answered.values()) == {1}

  def _own(self, shown: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns gradients by the port's own names, and in its shapes."""
    zeros = {name: np.zeros_like(value) for name, value in shown.items()}
    # What a layout adds to a variable, as a forget bias, it does not add to a gradient.
    own, added = map(self._layouts.ungrouped, (shown, zeros))
    return {
      name: self._layouts.to_tf2(name, value - added[name], constants=False)
      for name, value in own.items()
    }

  def _given(self, name: str, gradient: Any) -> Any:
    """Returns what the port gets for a variable, by its own name, in place of a gradient."""
    value = self._values.get(name)
    if value is None:
      return gradient
    self._answered[name] += 1
    if not isinstance(gradient, tf.IndexedSlices):
      if name in self._variables:
        return tf.cast(self._variables[name], gradient.dtype)
      return tf.constant(value, gradient.dtype)
    values, indices = self._rows.get(name) or self._of_rows(name)
    rows = tf.cast(values, gradient.dtype), tf.constant(indices)
    return tf.IndexedSlices(*rows, gradient.dense_shape)

  def _of_rows(self, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows of a gradient that are not zero, and their numbers."""
    value = self._values[name]
    rows = np.flatnonzero(value.reshape(len(value), -1).any(axis=1))
    shares = _shares(value, self._norms.get(name))
    values = np.concatenate([share * value[rows] for share in shares])
    return values, np.tile(rows, len(shares))


def _variable(value: np.ndarray, number: int) -> tf.Variable:
  # Under one name in all steps, whose graphs are one then.
  return tf.Variable(value, trainable=False, name=f'given_gradient_{number}')


def _shares(value: np.ndarray, norm: float | None) -> list[float]:
  """Returns into which parts of itself a gradient is split, to have a norm before they are added.

  A row that occurs several times does so in the gradient of tf1, and clipping takes the norm of
  that. Of k parts one is t, and the others together 1 - t, with t² + (1 - t)² / (k - 1) as the
  squared norm asks.
  """
  whole = float(np.sum(np.square(value, dtype=np.float64)))
  if norm is None or not whole or np.isclose(norm * norm, whole, rtol=_CLOSE):
    return [1.0]
  squared = norm * norm / whole
  further = max(1, math.ceil(1.0 / squared) - 1)
  part = (1.0 + math.sqrt(max(0.0, further * ((further + 1) * squared - 1.0)))) / (further + 1)
  return [part, *[(1.0 - part) / further] * further]
