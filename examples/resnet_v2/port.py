"""The TF2 port of ResNet-50 v2."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from examples.resnet_v2 import model


def _drop_end_points() -> None:
  """Empties the collections of end points that slim's ResNets fill.

  A TF1 graph is built once, and they belong to it. An eager call adds its 74
  activations to the process-wide default graph, which would keep all of them.
  """
  graph = tf.compat.v1.get_default_graph()
  for name in graph.get_all_collection_keys():
    if str(name).endswith('_end_points'):
      graph.clear_collection(name)


class ResnetV2(tf.keras.layers.Layer):
  """ResNet v2 under the modeling shim.

  Args:
    num_classes: the number of classes.
    network: the function of `model.py` that builds it.
    **kwargs: of `tf.keras.layers.Layer`.
  """

  def __init__(
    self,
    num_classes: int,
    network: Callable[..., tf.Tensor] = model.resnet_v2_50,
    **kwargs: Any,
  ) -> None:
    super().__init__(**kwargs)
    self.num_classes = num_classes
    self.network = network

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, images: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns the logits, `[batch, num_classes]`."""
    logits = self.network(images, self.num_classes, is_training=training)
    _drop_end_points()
    return logits
