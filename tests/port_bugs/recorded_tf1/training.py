"""Small models with losses, optimizers and schedules, as TensorFlow 1.x code."""

import tensorflow as tf


def affine(inputs):
  kernel = tf.get_variable('kernel', [3, 3])
  bias = tf.get_variable('bias', [3], initializer=tf.zeros_initializer())
  return tf.matmul(inputs, kernel) + bias


def probabilities(inputs):
  return tf.sigmoid(affine(inputs))


def scaled(inputs):
  ones = tf.ones_initializer()
  with tf.variable_scope('c1'):
    net = tf.matmul(inputs, tf.get_variable('weights', [3, 3], initializer=ones))
    with tf.variable_scope('BatchNorm'):
      return net * tf.get_variable('gamma', [3], initializer=ones)


def sequences(inputs):
  return tf.tensordot(inputs, tf.get_variable('kernel', [3, 5]), 1)


def transcribed(inputs):
  return tf.tensordot(inputs, tf.get_variable('kernel', [3, 4]), 1)


def regularized(inputs):
  return tf.layers.dense(
    inputs, 3, kernel_regularizer=lambda kernel: 0.01 * tf.nn.l2_loss(kernel), name='fc'
  )


def _one_hot(labels):
  return tf.one_hot(labels['classes'], 3)


def cross_entropy(logits, labels):
  return tf.losses.softmax_cross_entropy(_one_hot(labels), logits)


def weighted_cross_entropy(logits, labels):
  return tf.losses.softmax_cross_entropy(_one_hot(labels), logits, weights=labels['weights'])


def cross_entropy_per_example(logits, labels):
  return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels['classes'], logits=logits)


def log_loss(outputs, labels):
  return tf.losses.log_loss(labels, outputs)


def ctc(outputs, labels):
  places = tf.where(tf.not_equal(labels, 0))
  sparse = tf.SparseTensor(places, tf.gather_nd(labels, places), [2, 2])
  return tf.nn.ctc_loss(sparse, outputs, [5, 5], time_major=False)


def sequence_loss(outputs, labels):
  return tf.contrib.seq2seq.sequence_loss(outputs, labels['words'], labels['weights'])


def mean_squared_error(outputs, labels):
  return tf.losses.mean_squared_error(labels, outputs)


def squared_error(outputs, labels):
  return tf.reduce_mean(tf.square(outputs - labels))


def rmsprop():
  return tf.train.RMSPropOptimizer(0.01)


def adam():
  return tf.train.AdamOptimizer(0.01)


def adam_with_weight_decay():
  return tf.contrib.opt.AdamWOptimizer(1e-4, learning_rate=0.001)


def scheduled_momentum():
  global_step = tf.train.get_or_create_global_step()
  rate = tf.train.piecewise_constant(global_step, [1], [0.1, 0.01])
  return tf.train.MomentumOptimizer(rate, 0.9)


def staircase():
  global_step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(0.1, global_step, 2, 0.5, staircase=True)
  return tf.train.GradientDescentOptimizer(rate)
