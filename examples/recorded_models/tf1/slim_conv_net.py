"""A convolutional classifier in TF-Slim: batch norm, dropout, RMSProp."""

import tensorflow as tf

slim = tf.contrib.slim


def arg_scope(is_training, weight_decay=0.0005):
  batch_norm = {'decay': 0.997, 'epsilon': 0.001, 'is_training': is_training}
  with slim.arg_scope(
    [slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(weight_decay)
  ):
    with slim.arg_scope(
      [slim.conv2d],
      weights_initializer=slim.variance_scaling_initializer(),
      normalizer_fn=slim.batch_norm,
      normalizer_params=batch_norm,
    ) as scope:
      return scope


def conv_net(images, num_classes, is_training=True, dropout_keep_prob=0.8, scope='ConvNet'):
  """Returns the logits, and the end points by name."""
  end_points = {}
  with tf.variable_scope(scope, 'ConvNet', [images]):
    net = slim.conv2d(images, 8, [3, 3], scope='conv1')
    net = slim.max_pool2d(net, [2, 2], scope='pool1')
    end_points['pool1'] = net
    net = slim.conv2d(net, 12, [3, 3], stride=1, scope='conv2')
    # Global average pooling, as the size of the images is not known beforehand.
    net = tf.reduce_mean(net, [1, 2], name='global_pool', keep_dims=True)
    net = slim.dropout(net, keep_prob=dropout_keep_prob, is_training=is_training, scope='dropout')
    net = slim.flatten(net)
    logits = slim.fully_connected(net, num_classes, activation_fn=None, scope='logits')
    end_points['predictions'] = slim.softmax(logits)
  return logits, end_points


def build(images, is_training):
  with slim.arg_scope(arg_scope(is_training)):
    return conv_net(images, 5, is_training=is_training)


def loss(outputs, labels):
  logits, _ = outputs
  return tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)


def train_op(total_loss):
  global_step = tf.train.get_or_create_global_step()
  learning_rate = tf.train.exponential_decay(0.045, global_step, 2, 0.94, staircase=True)
  optimizer = tf.train.RMSPropOptimizer(learning_rate, decay=0.9, momentum=0.9, epsilon=1.0)
  return slim.learning.create_train_op(total_loss, optimizer, global_step=global_step)
