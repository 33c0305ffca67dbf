"""The TF2 port on its first day: the TF1 function inside a layer that owns its variables."""

from typing import Any

import tensorflow as tf

from examples.inception_resnet_v2 import model


class InceptionResnetV2(tf.keras.layers.Layer):
  """Inception-ResNet-v2 under the modeling shim.

  Args:
    num_classes: the number of classes.
    **kwargs: of `tf.keras.layers.Layer`.
  """

  def __init__(self, num_classes: int, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.num_classes = num_classes

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(
    self, inputs: tf.Tensor, training: bool = False
  ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Returns the logits, `[batch, num_classes]`, and the end points by name."""
    return model.inception_resnet_v2(inputs, self.num_classes, is_training=training)
