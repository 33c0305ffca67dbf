"""A classifier in tf.layers, trained by Momentum."""

import tensorflow as tf

WEIGHT_DECAY = 5e-4


def conv_block(net, filters, strides, is_training, name):
  with tf.variable_scope(name):
    net = tf.layers.conv2d(
      net,
      filters,
      3,
      strides=strides,
      padding='same',
      use_bias=False,
      kernel_initializer=tf.variance_scaling_initializer(),
      kernel_regularizer=tf.contrib.layers.l2_regularizer(WEIGHT_DECAY),
      name='conv',
    )
    net = tf.layers.batch_normalization(
      net, momentum=0.9, epsilon=1e-5, training=is_training, name='norm'
    )
    return tf.nn.relu(net)


def conv_net(images, num_classes, is_training):
  with tf.variable_scope('conv_net'):
    net = conv_block(images, 6, 1, is_training, 'block1')
    net = tf.layers.max_pooling2d(net, 2, 2, padding='same')
    net = conv_block(net, 8, 2, is_training, 'block2')
    net = tf.layers.flatten(net)
    if net.shape[1].value > 8:
      net = tf.layers.dropout(net, rate=0.5, training=is_training)
    return tf.layers.dense(net, num_classes, name='logits')


def build(images, is_training):
  return conv_net(images, 4, is_training)


def loss(logits, labels):
  one_hot = tf.one_hot(labels, logits.get_shape()[-1].value)
  return tf.losses.softmax_cross_entropy(one_hot, logits, label_smoothing=0.1)


def train_op(total_loss):
  global_step = tf.train.get_or_create_global_step()
  learning_rate = tf.train.piecewise_constant(global_step, [1], [0.1, 0.01])
  optimizer = tf.train.MomentumOptimizer(learning_rate, 0.9)
  update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
  with tf.control_dependencies(update_ops):
    return optimizer.minimize(total_loss, global_step)
