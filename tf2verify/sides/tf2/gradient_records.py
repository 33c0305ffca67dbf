"""Gradients of a port's steps as records."""

import dataclasses
from typing import Any

import tensorflow as tf

from tf2verify.numerics.gradient_clips import norm
from tf2verify.records.observation import Slices, TensorRecord
from tf2verify.reference.variables import static_shape, variable_name
from tf2verify.sides import side
from tf2verify.sides.tf2.port import Port, array_of


def is_known(gradient: Any) -> bool:
  """Returns whether a gradient has a value, or is none."""
  parts = gradient if not isinstance(gradient, tf.IndexedSlices) else gradient.values
  return parts is None or hasattr(parts, 'numpy')


def gradient_record(port: Port, variable: Any, gradient: Any) -> TensorRecord:
  """Returns a gradient for a variable as it is shown; one of `IndexedSlices` as a dense array."""
  if isinstance(gradient, tf.IndexedSlices):
    shape = tuple(size or 0 for size in static_shape(variable.shape))
    rows = array_of(gradient.values)
    dense = side.dense_gradient(rows, array_of(gradient.indices), shape)
    slices = Slices(len(rows), norm(rows))
    return dataclasses.replace(port.record_of(variable, dense, constants=False), slices=slices)
  if gradient is None:
    return TensorRecord(variable_name(variable), None)
  return port.record_of(variable, gradient, constants=False)
