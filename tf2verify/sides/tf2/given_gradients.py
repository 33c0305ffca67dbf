"""Gradients of the reference in the place of those of a step of the port."""

import collections
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.training import TrainingStep
from tf2verify.reference.updates import Updates
from tf2verify.relation.layouts import Layouts
from tf2verify.sides.update_recorder import update_recorder


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
    self._answered: collections.Counter[str] = collections.Counter()

  def begin(self, tf1: TrainingStep) -> None:
    """Takes what the next step of the port gets: that of the reference."""
    records = tf1.applied_gradients if self._applied else tf1.gradients
    known = {self._names[r.name]: r.value for r in records if r.name in self._names}
    self._values = self._own({n: value for n, value in known.items() if value is not None})
    self._answered.clear()

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
      return tf.constant(value, gradient.dtype)
    rows = np.flatnonzero(value.reshape(len(value), -1).any(axis=1))
    values = tf.constant(value[rows], gradient.dtype)
    return tf.IndexedSlices(values, tf.constant(rows), gradient.dense_shape)
