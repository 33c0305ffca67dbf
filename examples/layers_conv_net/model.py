"""A small convolutional classifier in `tf.layers`, the usual style of 2017 to 2019."""

import tensorflow as tf

v1 = tf.compat.v1

_WEIGHT_DECAY = 5e-4


def _l2(weights: tf.Tensor) -> tf.Tensor:
  return _WEIGHT_DECAY * tf.nn.l2_loss(weights)


def _conv_block(net: tf.Tensor, filters: int, is_training: bool, scope: str) -> tf.Tensor:
  with v1.variable_scope(scope):
    net = v1.layers.conv2d(
      net, filters, 3, padding='same', use_bias=False, kernel_regularizer=_l2, name='conv'
    )
    net = v1.layers.batch_normalization(net, momentum=0.9, training=is_training, name='norm')
    return v1.layers.max_pooling2d(tf.nn.relu(net), 2, 2, name='pool')


def conv_net(images: tf.Tensor, num_classes: int, is_training: bool) -> tf.Tensor:
  """Returns the logits.

  Args:
    images: `[batch, height, width, channels]` float32.
    num_classes: the number of classes.
    is_training: whether batch statistics and dropout (rate 0.5) are used.

  Returns:
    `[batch, num_classes]` float32.
  """
  with v1.variable_scope('conv_net'):
    net = _conv_block(images, 16, is_training, 'block1')
    net = _conv_block(net, 32, is_training, 'block2')
    net = v1.layers.flatten(net)
    net = v1.layers.dense(net, 64, activation=tf.nn.relu, kernel_regularizer=_l2, name='hidden')
    net = v1.layers.dropout(net, rate=0.5, training=is_training, name='dropout')
    return v1.layers.dense(net, num_classes, kernel_regularizer=_l2, name='logits')
