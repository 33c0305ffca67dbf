"""Graphs of 32-bit floating-point numbers, computed with 64 bits."""

from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.sides.graphs.rewriting.wide_norms import unfuse

_SINGLE, _DOUBLE = tf.float32.as_datatype_enum, tf.float64.as_datatype_enum


def with_64_bits(value: np.ndarray) -> np.ndarray:
  """Returns an array of float32 as float64, and any other as it is."""
  return value.astype(np.float64) if value.dtype == np.float32 else value


def widen(graph_def: Any) -> None:
  """Makes every float32 of a GraphDef, and of its functions, a float64.

  Casts to narrower formats stay, and so does what they lose. Operations that have no kernel for
  float64 are found out when the graph is run.
  """
  unfuse(graph_def)
  nodes = list(graph_def.node)
  for function in graph_def.library.function:
    signature = function.signature
    for argument in (*signature.input_arg, *signature.output_arg):
      argument.type = _wide(argument.type)
    nodes += function.node_def
  for node in nodes:
    for attribute in node.attr.values():
      _widen_attribute(attribute)


def _wide(kind: int) -> int:
  return _DOUBLE if kind == _SINGLE else kind


def _widen_attribute(attribute: Any) -> None:
  kind = attribute.WhichOneof('value')
  if kind == 'type':
    attribute.type = _wide(attribute.type)
  elif kind == 'list' and attribute.list.type:
    attribute.list.type[:] = [_wide(one) for one in attribute.list.type]
  elif kind == 'tensor' and attribute.tensor.dtype == _SINGLE:
    value = tf.make_ndarray(attribute.tensor).astype(np.float64)
    attribute.tensor.CopyFrom(tf.make_tensor_proto(value, tf.float64, value.shape))
