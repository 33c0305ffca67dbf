"""Gradients that are formed once the graph of a port is made."""

import dataclasses
from typing import Any

import tensorflow as tf

from tf2verify.sides.graphs.reading import Target


@dataclasses.dataclass(frozen=True)
class Derived:
  """Gradients of a graph.

  Attributes:
    of: name of the tensor that is differentiated.
    by: name of each target, and of the tensor that it is the gradient by.
  """

  of: str
  by: tuple[tuple[str, str], ...]


def derived_targets(graph: tf.Graph, derived: Derived) -> tuple[Target, ...]:
  """Adds gradients to a graph; returns them, without those that there are none of."""
  with graph.as_default():
    by = [graph.get_tensor_by_name(name) for _, name in derived.by]
    try:
      found = tf.gradients(graph.get_tensor_by_name(derived.of), by)
    except (LookupError, TypeError, ValueError, AttributeError):  # an operation has none, say
      return ()
  return tuple(
    Target(name, _names(graph, gradient))
    for (name, _), gradient in zip(derived.by, found, strict=True)
    if gradient is not None
  )


def _names(graph: Any, gradient: Any) -> tuple[str, ...]:
  is_rows = isinstance(gradient, tf.IndexedSlices)
  parts = (gradient.values, gradient.indices) if is_rows else (gradient,)
  # A gradient that is written in Python may be a tensor of the graph that was traced.
  return tuple((part if part.graph is graph else graph.capture(part)).name for part in parts)
