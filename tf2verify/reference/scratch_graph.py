"""The graphs in which Keras tries a layer out before it calls it."""

import re
from typing import Any

# Every layer and model of Keras 3 without a `build` of its own is built in one.
_OF_KERAS_3 = re.compile(r'scratch_graph(_\d+)?$')


def is_scratch_graph(graph: Any) -> bool:
  """Returns whether ops of a graph are never run: Keras only wants to know their shapes.

  A functional model, and a `tf.keras.Sequential` without an input shape at its
  first call, build themselves by calling each layer once in such a graph.

  Args:
    graph: a `tf.Graph`; None for eager execution.
  """
  while graph is not None:
    name = getattr(graph, 'name', '')
    if name == 'keras_graph' or name.endswith('_scratch_graph') or _OF_KERAS_3.match(name):
      return True
    graph = getattr(graph, 'outer_graph', None)
  return False
