"""A small classifier in `tf.layers`, and how it was trained."""

import tensorflow as tf

v1 = tf.compat.v1

_WEIGHT_DECAY = 1e-3


def _l2(weights: tf.Tensor) -> tf.Tensor:
  return _WEIGHT_DECAY * tf.nn.l2_loss(weights)


def classifier(images: tf.Tensor, is_training: bool) -> tf.Tensor:
  """Returns the logits of four classes.

  Args:
    images: `[batch, height, width, 3]` float32.
    is_training: whether batch statistics and dropout are used.

  Returns:
    `[batch, 4]` float32.
  """
  with v1.variable_scope('classifier'):
    net = v1.layers.conv2d(
      images, 8, 3, padding='same', use_bias=False, kernel_regularizer=_l2, name='conv1'
    )
    net = v1.layers.batch_normalization(net, momentum=0.9, training=is_training, name='norm1')
    net = v1.layers.max_pooling2d(tf.nn.leaky_relu(net), 2, 2)
    net = v1.layers.conv2d(
      net, 16, 3, padding='same', use_bias=False, kernel_regularizer=_l2, name='conv2'
    )
    net = v1.layers.batch_normalization(net, momentum=0.9, training=is_training, name='norm2')
    net = tf.reduce_mean(tf.nn.leaky_relu(net), [1, 2])
    net = v1.layers.dropout(net, rate=0.3, training=is_training)
    return v1.layers.dense(net, 4, name='logits')


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
  """Returns the loss that was minimized, without regularization."""
  return v1.losses.sparse_softmax_cross_entropy(labels, logits)


def optimizer() -> v1.train.Optimizer:
  """Returns the optimizer of the training script."""
  return v1.train.MomentumOptimizer(0.05, 0.9)
