"""A TF-Slim network, and a training step after Inception v3's: RMSProp and averaged weights.

Decay and epsilon of RMSProp are those of Szegedy et al. (arXiv:1512.00567, section 8).
"""

import tensorflow as tf
import tf_slim as slim

v1 = tf.compat.v1

LEARNING_RATE = 0.045
RMSPROP_DECAY = 0.9
RMSPROP_MOMENTUM = 0.9
RMSPROP_EPSILON = 1.0
AVERAGE_DECAY = 0.9999
_WEIGHT_DECAY = 4e-5


def conv_net(images: tf.Tensor, num_classes: int, is_training: bool) -> tf.Tensor:
  """Returns the logits.

  Args:
    images: `[batch, height, width, channels]` float32.
    num_classes: the number of classes.
    is_training: whether batch norm uses batch statistics.

  Returns:
    `[batch, num_classes]` float32.
  """
  batch_norm = {'decay': 0.9997, 'epsilon': 0.001, 'is_training': is_training}
  with (
    v1.variable_scope('conv_net'),
    slim.arg_scope(
      [slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(_WEIGHT_DECAY)
    ),
    slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params=batch_norm),
  ):
    net = slim.conv2d(images, 8, 3, scope='conv1')
    net = slim.max_pool2d(net, 2, scope='pool1')
    net = slim.conv2d(net, 16, 3, scope='conv2')
    net = tf.reduce_mean(net, [1, 2])
    return slim.fully_connected(net, num_classes, activation_fn=None, scope='logits')


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
  """Returns the mean softmax cross-entropy; labels are class numbers."""
  return v1.losses.sparse_softmax_cross_entropy(labels, logits)


def train_op(total_loss: tf.Tensor) -> tf.Operation:
  """Returns the op of one step: moving averages of batch norm, weights, averaged weights."""
  global_step = v1.train.get_or_create_global_step()
  optimizer = v1.train.RMSPropOptimizer(
    LEARNING_RATE, RMSPROP_DECAY, momentum=RMSPROP_MOMENTUM, epsilon=RMSPROP_EPSILON
  )
  averages = tf.train.ExponentialMovingAverage(AVERAGE_DECAY, global_step)
  with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
    step = optimizer.minimize(total_loss, global_step=global_step)
  with tf.control_dependencies([step]):
    return averages.apply(v1.trainable_variables())
