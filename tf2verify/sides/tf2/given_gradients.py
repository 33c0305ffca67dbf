"""Gradients of the reference in the place of those that a step of the port differentiates to."""

import collections
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.relation.layouts import Layouts


class GivenGradients:
  """Answers a tape of the port with gradients of tf1, so that the update alone is compared."""

  def __init__(self, layouts: Layouts) -> None:
    """Takes how the port holds the variables of tf1; nothing is given yet."""
    self._layouts = layouts
    self._values: dict[str, np.ndarray] = {}
    self._answered: collections.Counter[str] = collections.Counter()

  def begin(self, gradients: Mapping[str, np.ndarray]) -> None:
    """Takes what the next step gets.

    Args:
      gradients: in the shapes of tf1, by the names under which the port's variables are shown.
    """
    zeros = {name: np.zeros_like(value) for name, value in gradients.items()}
    # What a layout adds to a variable, as a forget bias, it does not add to a gradient.
    own, added = map(self._layouts.ungrouped, (gradients, zeros))
    self._values = {
      name: self._layouts.to_tf2(name, value - added[name], constants=False)
      for name, value in own.items()
    }
    self._answered.clear()

  @property
  def were_all_taken(self) -> bool:
    """Whether the step has asked for each of them, once."""
    return set(self._answered) == set(self._values) and set(self._answered.values()) == {1}

  def __call__(self, name: str, gradient: Any) -> Any:
    """Returns what a tape gives for a variable, by its own name, in place of a gradient."""
    value = self._values.get(name)
    if value is None:
      return gradient
    self._answered[name] += 1
    if not isinstance(gradient, tf.IndexedSlices):
      return tf.constant(value, gradient.dtype)
    rows = np.flatnonzero(value.reshape(len(value), -1).any(axis=1))
    return tf.IndexedSlices(
      tf.constant(value[rows], gradient.dtype), tf.constant(rows), gradient.dense_shape
    )
