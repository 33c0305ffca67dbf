"""What an optimizer is given while a training step of a case is built or run."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tf2verify.reference.updates import TWO_LISTS, Updates
from tf2verify.sides.optimizers.state import V1_OPTIMIZER, eager_learning_rate
from tf2verify.tensorflow_internals import keras, keras3

FAMILIES = (
  (V1_OPTIMIZER, 'apply_gradients', 0),
  (keras.OPTIMIZER, '_internal_apply_gradients', 0),
  (keras.LEGACY_OPTIMIZER, '_distributed_apply', 1),
)


def update_recorder(
  factor: float | Mapping[str, float] = 1.0,
  given: Callable[[str, Any], Any] | None = None,
  applied: Callable[[str, Any], Any] | None = None,
  begun: Callable[[Any], None] | None = None,
) -> Updates:
  """Returns what records the gradients and updates of optimizers of TF1 and of Keras.

  Args:
    factor: multiplies every gradient for a variable that a tape gives, before anybody sees
      it; one by variable name, or one for all.
    given: returns what such a gradient is replaced with, given that and the variable's name; None
      leaves them.
    applied: the same of what an optimizer is given.
    begun: is given each optimizer just before its update, once it has made its slots.
  """
  changed = given if factor == 1.0 else functools.partial(_scaled, factor)
  families = [*FAMILIES]
  if keras3.loaded() is not None:
    families.append((*keras3.optimizer_base(), TWO_LISTS))
  return Updates(families, functools.partial(_learning_rate, begun), changed, applied)


def changes_gradients(updates: Updates) -> bool:
  """Returns whether an update was given another tensor than was differentiated, as by clipping."""
  applied = updates.applied
  return any(
    name in applied and applied[name] is not gradient
    for name, gradient in updates.differentiated.items()
  )


def _learning_rate(begun: Callable[[Any], None] | None, optimizer: Any) -> float | None:
  if begun is not None:
    begun(optimizer)
  return eager_learning_rate(optimizer) if tf.executing_eagerly() else None


def _scaled(factor: float | Mapping[str, float], name: str, gradient: Any) -> Any:
  if isinstance(gradient, tf.IndexedSlices):
    values = _scaled(factor, name, gradient.values)
    return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
  scale = factor.get(name, 1.0) if isinstance(factor, Mapping) else factor
  return gradient * tf.cast(scale, gradient.dtype)
