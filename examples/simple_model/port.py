"""SimpleModel rewritten in Keras, its optimizers, and one of them wrong."""

import tensorflow as tf

from examples.simple_model import model

v1 = tf.compat.v1


class SimpleModel(tf.keras.Model):
  """Three linear layers; they keep the names of the TF1 code."""

  def __init__(self) -> None:
    super().__init__(name='simple_model')
    self.dense = tf.keras.layers.Dense(2, name='dense')
    self.dense_1 = tf.keras.layers.Dense(2, name='dense_1')
    self.dense_2 = tf.keras.layers.Dense(3, name='dense_2')

  def call(self, features: tf.Tensor) -> tf.Tensor:
    """Returns the logits, `[batch, 3]`."""
    return self.dense_2(self.dense_1(self.dense(features)))


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
  """Returns the mean softmax cross-entropy; labels are one-hot."""
  each = tf.keras.losses.categorical_crossentropy(labels, logits, from_logits=True)
  return tf.reduce_mean(each)


def _decaying(decay_steps: int) -> tf.keras.optimizers.schedules.LearningRateSchedule:
  return tf.keras.optimizers.schedules.PolynomialDecay(
    model.INITIAL_LEARNING_RATE, decay_steps, end_learning_rate=0.0
  )


def sgd(decay_steps: int) -> tf.keras.optimizers.Optimizer:
  """Returns gradient descent with the schedule of the TF1 code."""
  return tf.keras.optimizers.SGD(_decaying(decay_steps))


def adam(decay_steps: int) -> tf.keras.optimizers.Optimizer:
  """Returns Adam with the schedule of the TF1 code, and with its epsilon: Keras has 1e-7."""
  return tf.keras.optimizers.Adam(_decaying(decay_steps), epsilon=1e-8)


def frozen_sgd(decay_steps: int) -> tf.keras.optimizers.Optimizer:
  """Returns gradient descent whose learning rate never changes.

  The TF1 code's line was kept. In eager mode `polynomial_decay` returns a function; Keras
  makes a variable of it, which holds the function's first value for ever.
  """
  learning_rate = v1.train.polynomial_decay(
    model.INITIAL_LEARNING_RATE,
    v1.train.get_or_create_global_step(),
    decay_steps,
    end_learning_rate=0.0,
  )
  return tf.keras.optimizers.SGD(learning_rate)
