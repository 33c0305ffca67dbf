"""A three-layer model, small enough that a benchmark measures the framework, not TensorFlow."""

from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def _l2(weights: tf.Tensor) -> tf.Tensor:
  return 1e-4 * tf.nn.l2_loss(weights)


def small_model(images: tf.Tensor, num_classes: int, is_training: bool) -> tf.Tensor:
  """Convolution, hidden layer with dropout, and classifier, all with L2.

  Args:
    images: `[batch, height, width, channels]` float32.
    num_classes: the number of classes.
    is_training: whether dropout (rate 0.4) is used.

  Returns:
    The logits, `[batch, num_classes]` float32.
  """
  with v1.variable_scope('small_model'):
    net = v1.layers.conv2d(
      images, 8, 3, 2, activation=tf.nn.relu, kernel_regularizer=_l2, name='conv'
    )
    net = v1.layers.dense(
      v1.layers.flatten(net), 32, activation=tf.nn.relu, kernel_regularizer=_l2, name='hidden'
    )
    net = v1.layers.dropout(net, rate=0.4, training=is_training, name='dropout')
    return v1.layers.dense(net, num_classes, kernel_regularizer=_l2, name='logits')


class SmallModel(tf.keras.layers.Layer):
  """The port of `small_model`.

  Args:
    num_classes: the number of classes.
    **kwargs: of `tf.keras.layers.Layer`.
  """

  def __init__(self, num_classes: int, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.num_classes = num_classes

  @v1.keras.utils.track_tf1_style_variables
  def call(self, images: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns the logits, `[batch, num_classes]`."""
    return small_model(images, self.num_classes, is_training=training)
