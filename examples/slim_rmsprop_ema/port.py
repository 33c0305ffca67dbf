"""The TF2 port: network, optimizer (the right one and a wrong one), and training step."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from examples.slim_rmsprop_ema import model

v1 = tf.compat.v1


class ConvNet(tf.keras.layers.Layer):
  """The TF-Slim network.

  Args:
    num_classes: the number of classes.
    **kwargs: of `tf.keras.layers.Layer`.
  """

  def __init__(self, num_classes: int, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.num_classes = num_classes
    self.averages: tf.train.ExponentialMovingAverage | None = None

  @v1.keras.utils.track_tf1_style_variables
  def call(self, images: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns the logits, `[batch, num_classes]`."""
    return model.conv_net(images, self.num_classes, is_training=training)


class RMSprop(tf.keras.optimizers.RMSprop):
  """Keras' RMSprop, whose mean of squares starts at one, as TF1's does, and not at zero."""

  def build(self, var_list: Sequence[tf.Variable]) -> None:
    """Makes the slots, once."""
    is_first = not getattr(self, '_built', False)
    super().build(var_list)
    if is_first:
      for mean_square in self._velocities:
        mean_square.assign(tf.ones_like(mean_square))


def rmsprop() -> RMSprop:
  """Returns RMSprop with the settings of the TF1 code and the start of its accumulator."""
  return RMSprop(
    model.LEARNING_RATE,
    rho=model.RMSPROP_DECAY,
    momentum=model.RMSPROP_MOMENTUM,
    epsilon=model.RMSPROP_EPSILON,
  )


def plain_rmsprop() -> tf.keras.optimizers.Optimizer:
  """Returns RMSprop with the settings of the TF1 code; its accumulator starts at zero."""
  return tf.keras.optimizers.RMSprop(
    model.LEARNING_RATE,
    rho=model.RMSPROP_DECAY,
    momentum=model.RMSPROP_MOMENTUM,
    epsilon=model.RMSPROP_EPSILON,
  )


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
  """Returns the mean softmax cross-entropy; labels are class numbers."""
  each = tf.keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
  return tf.reduce_mean(each)


def train_step(
  net: ConvNet, images: tf.Tensor, labels: tf.Tensor, optimizer: tf.keras.optimizers.Optimizer
) -> tf.Tensor:
  """Takes one step and returns the loss that it has minimized."""
  with tf.GradientTape() as tape:
    total = loss(net(images, training=True), labels) + tf.add_n(net.losses)
  weights = net.trainable_variables
  if net.averages is None:
    # Before the first step: in eager mode a shadow starts at the value that it finds.
    net.averages = tf.train.ExponentialMovingAverage(model.AVERAGE_DECAY, optimizer.iterations)
    net.averages.apply(weights)
  gradients = tape.gradient(total, weights)
  optimizer.apply_gradients(zip(gradients, weights, strict=True))
  net.averages.apply(weights)
  return total
