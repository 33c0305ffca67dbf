"""Gradients of a port's steps as records."""

import dataclasses
from typing import Any

import tensorflow as tf

from tf2verify.numerics.gradient_clips import norm
from tf2verify.records.observation import Slices, TensorRecord
from tf2verify.sides.tf2.layers import port_records
from tf2verify.sides.tf2.layers.port import Port, array_of


def is_known(gradient: Any) -> bool:
  """Returns whether a gradient has a value, or is none."""
  parts = gradient if not isinstance(gradient, tf.IndexedSlices) else gradient.values
  return parts is None or hasattr(parts, 'numpy')


def gradient_record(port: Port, variable: Any, gradient: Any) -> TensorRecord:
  """Returns a gradient for a variable as it is shown; one of `IndexedSlices` as a dense array."""
  record = port_records.gradient_record(port, variable, gradient)
  if not isinstance(gradient, tf.IndexedSlices):
    return record
  rows = array_of(gradient.values)
  return dataclasses.replace(record, slices=Slices(len(rows), norm(rows)))
