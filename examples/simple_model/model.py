"""The SimpleModel of TensorFlow's guide on migrated training pipelines, as TF1 code.

Sizes and schedule are those of "Debug a TensorFlow 2 migrated training pipeline",
https://www.tensorflow.org/guide/migrate/migration_debugging.
"""

from collections.abc import Callable

import tensorflow as tf

v1 = tf.compat.v1

INITIAL_LEARNING_RATE = 1e-3


def simple_model(features: tf.Tensor) -> tf.Tensor:
  """Returns the logits, `[batch, 3]`, of three linear layers."""
  net = v1.layers.dense(features, 2, name='dense')
  net = v1.layers.dense(net, 2, name='dense_1')
  return v1.layers.dense(net, 3, name='dense_2')


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
  """Returns the mean softmax cross-entropy; labels are one-hot."""
  return v1.losses.softmax_cross_entropy(labels, logits)


def train_op(
  total_loss: tf.Tensor,
  decay_steps: int,
  make_optimizer: Callable[[tf.Tensor], v1.train.Optimizer] = v1.train.GradientDescentOptimizer,
) -> tf.Operation:
  """Returns the op of one step, with a learning rate that falls to zero.

  Args:
    total_loss: what to minimize.
    decay_steps: the step at which the learning rate is zero; 1000 in the guide.
    make_optimizer: makes the optimizer of the learning rate.
  """
  global_step = v1.train.get_or_create_global_step()
  learning_rate = v1.train.polynomial_decay(
    INITIAL_LEARNING_RATE, global_step, decay_steps, end_learning_rate=0.0
  )
  return make_optimizer(learning_rate).minimize(total_loss, global_step=global_step)
