"""Keras layer classes, which a layer that is made in a graph turns into TF1's.

`tf.compat.v1.layers.dense` in a graph gives `tf.keras.layers.Dense` itself the
base class of TF1, for the whole process, until somebody makes a layer of that
class eagerly. Layers that were made before can no longer be called: "Your Layer
or Model is in an invalid state".
"""

import tensorflow.python.keras.engine.base_layer as inner_layer
import tensorflow.python.keras.engine.base_layer_v1 as inner_layer_v1
import tensorflow.python.keras.engine.training as inner_training
import tensorflow.python.keras.engine.training_v1 as inner_training_v1
from tf_keras.src.engine import base_layer, base_layer_v1, training, training_v1

_TF1_AND_TF2_BASES = (
  (base_layer_v1.Layer, base_layer.Layer),
  (training_v1.Model, training.Model),
  (inner_layer_v1.Layer, inner_layer.Layer),
  (inner_training_v1.Model, inner_training.Model),
)


def read_tf1_classes() -> tuple[frozenset[type], ...]:
  """Returns the classes whose bases are TF1's at the moment, for `write_tf1_classes`."""
  return tuple(frozenset(type.__subclasses__(tf1)) for tf1, _ in _TF1_AND_TF2_BASES)


def write_tf1_classes(saved: tuple[frozenset[type], ...]) -> None:
  """Gives every class the bases back that it had when `saved` was read."""
  for (tf1, tf2), classes in zip(_TF1_AND_TF2_BASES, saved, strict=True):
    now = frozenset(type.__subclasses__(tf1))
    for changed, old, new in ((now - classes, tf1, tf2), (classes - now, tf2, tf1)):
      for cls in changed:
        cls.__bases__ = tuple(new if base is old else base for base in cls.__bases__)


def use_tf2_classes() -> None:
  """Gives all layer classes the bases of TF2, but those that are TF1's by definition."""
  write_tf1_classes(
    tuple(
      frozenset(cls for cls in classes if cls.__module__ == tf1.__module__)
      for (tf1, _), classes in zip(_TF1_AND_TF2_BASES, read_tf1_classes(), strict=True)
    )
  )
