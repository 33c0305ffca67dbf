"""Gradients within a graph."""

from typing import Any, Callable, Dict, List, Optional

import numpy as np
import tensorflow as tf

from .arrays import Array
from .built_graph import BuiltGraph
from .randomness import NUM_RANDOM_OPS, Seeding, seeded
from .sequences import pairs
from .tf1_semantics import tf1_semantics
from .user_code import user_code
from .variables import GraphVariable


def add_gradients(built: BuiltGraph, loss: Callable[[Any], Any]) -> None:
  """Adds the gradients of a loss of the outputs for every trainable variable to the graph."""
  trainable = [variable for variable in built.variables if variable.trainable]
  seeding = Seeding(NUM_RANDOM_OPS)
  seeding.ops.count = built.operation_seeds
  with tf1_semantics(v2_tensorshape=True), built.graph.as_default():
    total = loss(built.output_nest)
    if total is None or not trainable:
      return
    with user_code('the gradient of the loss'), seeded(seeding):
      found = tf.gradients(total, [built.objects[variable.name] for variable in trainable])
  built.operation_seeds = seeding.ops.count
  for variable, gradient in pairs(trainable, found):
    built.gradients.append(gradient_entry(variable, gradient))


def gradient_entry(variable: GraphVariable, gradient: Any) -> Dict[str, Any]:
  """Returns a gradient's entry of the manifest."""
  sparse = isinstance(gradient, tf.IndexedSlices)
  values = gradient.values if sparse else gradient
  return {
    'variable': variable.name,
    'values': None if values is None else values.name,
    'indices': gradient.indices.name if sparse else None,
    'shape': [size or 0 for size in variable.shape],
  }


def dense_gradient(entry: Dict[str, Any], values: Array, indices: Optional[Array]) -> Array:
  """Returns a gradient, rows of `IndexedSlices` added up in their places."""
  if indices is None:
    return values
  dense = np.zeros(entry['shape'], values.dtype)
  np.add.at(dense, indices, values)
  return dense


def gradient_names(gradient: Any) -> List[Optional[str]]:
  """Returns the names of a gradient's values and, of `IndexedSlices`, indices; None for none."""
  if isinstance(gradient, tf.IndexedSlices):
    return [gradient.values.name, gradient.indices.name]
  return [None if gradient is None else gradient.name, None]
