"""tf-keras: its seeds, its counts of names, and base classes that it does not publish.

Without them a right `tf.layers` port draws other numbers than its reference in a seeded run, and
a second layer of a kind has another name than the first. Run with tf-keras 2.16 to 2.21.
"""

import random
from collections.abc import Iterator
from typing import Any

import tensorflow.python.keras.backend as inner_backend
from tensorflow.python.ops import variable_scope
from tensorflow.python.trackable.resource import CapturableResource
from tf_keras.src import backend
from tf_keras.src.legacy_tf_layers import base
from tf_keras.src.optimizers import optimizer
from tf_keras.src.optimizers.legacy import optimizer_v2

# The base of `tf.keras.optimizers`, with `_internal_apply_gradients`.
OPTIMIZER: Any = optimizer._BaseOptimizer
# The base of `tf.keras.optimizers.legacy`, with `_distributed_apply`.
LEGACY_OPTIMIZER: Any = optimizer_v2.OptimizerV2
# The base of `tf.compat.v1.layers`, with `add_weight`.
TF1_LAYER: Any = base.Layer
# The base of look-up tables and whatever else a SavedModel has to carry along.
CAPTURABLE_RESOURCE: Any = CapturableResource


def set_seed_generator(generator: random.Random) -> None:
  """Has initializers without a seed take theirs from a generator."""
  backend._SEED_GENERATOR.generator = generator


def reset_names() -> None:
  """Counts layer names, and how often a variable scope was opened, from the start."""
  backend.PER_GRAPH_OBJECT_NAME_UIDS.clear()
  inner_backend.PER_GRAPH_OBJECT_NAME_UIDS.clear()
  variable_scope.get_variable_scope_store().variable_scopes_count.clear()


def default_initializer_of(layer: Any) -> Any:
  """Returns the initializer that the variable scope gives a TF1 layer; None without one."""
  layer._set_scope(None)
  return layer._scope.initializer


def is_keras_style(layer: Any) -> bool:
  """Returns whether a TF1 layer keeps its variables as Keras does, without a variable scope."""
  return bool(layer._keras_style)


def layers_within(layer: Any) -> Iterator[Any]:
  """Yields the layers in a layer of tf-keras or of Keras 3, and not those within them."""
  yield from layer._flatten_layers(recursive=False, include_self=False)
