"""Variables that have a handle and no value, and where variables are in a module.

SavedModels are loaded with such variables; the public `tf.Variable` computes its initial value
where it is made. `tf.Module.variables` does not say by which attributes it found them. Run with
TensorFlow 2.16 to 2.21.
"""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops

# A variable that is never initialized: its handle knows dtype and shape, and nothing is allocated.
UninitializedVariable: Any = resource_variable_ops.UninitializedVariable


def paths_of(module: tf.Module) -> Iterator[tuple[tuple[str, ...], Any]]:
  """Yields the variables of a module and of those in it, each once, after the attributes to it."""
  found = module._flatten(predicate=lambda one: isinstance(one, tf.Variable), with_path=True)
  yield from ((tuple(map(str, path)), variable) for path, variable in found)
