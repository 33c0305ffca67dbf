"""The TF2 port of the `tf.layers` network."""

from typing import Any

import tensorflow as tf

from examples.layers_conv_net import model


class ConvNet(tf.keras.layers.Layer):
  """The `tf.layers` network under the modeling shim.

  Args:
    num_classes: the number of classes.
    **kwargs: of `tf.keras.layers.Layer`.
  """

  def __init__(self, num_classes: int, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.num_classes = num_classes

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, images: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns the logits, `[batch, num_classes]`."""
    return model.conv_net(images, self.num_classes, is_training=training)
