"""Convolutions, normalizations, resized images and lookups, as TensorFlow 1.x code."""

import math

import tensorflow as tf

slim = tf.contrib.slim


def resnet_block(inputs, training):
  net = tf.layers.conv2d(inputs, 4, 3, padding='same', use_bias=False, name='conv')
  net = tf.layers.batch_normalization(
    net, momentum=0.9, epsilon=1e-5, training=training, name='norm'
  )
  return tf.nn.relu(net)


def slim_norm(inputs, training):
  return slim.batch_norm(inputs, is_training=training, scope='norm')


def layer_norm(inputs):
  return tf.contrib.layers.layer_norm(inputs, scope='norm')


def slim_convolution(inputs):
  return slim.conv2d(inputs, 4, [3, 3], scope='conv')


def pooled(inputs):
  return slim.max_pool2d(slim.conv2d(inputs, 4, [1, 1], scope='conv'), [3, 3])


def fixed_padding(inputs):
  padded = tf.pad(inputs, [[0, 0], [1, 1], [1, 1], [0, 0]])
  return tf.layers.conv2d(padded, 2, 3, 2, 'valid', use_bias=False, name='conv')


def _scaled(inputs):
  return inputs * tf.get_variable('scale', [3])


def resized_bilinear(inputs):
  return tf.image.resize_images(_scaled(inputs), (12, 12))


def leaky_relu(inputs):
  return tf.nn.leaky_relu(tf.layers.dense(inputs, 3, name='fc'))


def bert_intermediate(inputs):
  def gelu(x):
    return x * (0.5 * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3)))))

  return tf.layers.dense(inputs, 3, activation=gelu, name='intermediate')


def sharded(ids):
  shards = [tf.get_variable('embedding/part_%d' % n, [3, 2]) for n in range(2)]
  return tf.nn.embedding_lookup(shards, ids)


def bags(inputs):
  embedding = tf.get_variable('embedding', [5, 3])
  places = tf.where(inputs >= 0)
  rows = tf.SparseTensor(places, tf.gather_nd(inputs, places), inputs.shape.as_list())
  return tf.contrib.layers.safe_embedding_lookup_sparse([embedding], rows, combiner='mean')


def frozen_embedding(ids):
  table = tf.get_variable('embedding', [5, 4], trainable=False)
  return tf.layers.dense(tf.nn.embedding_lookup(table, ids), 2, name='fc')


def decayed(inputs):
  regularizer = tf.contrib.layers.l2_regularizer(0.1)
  return tf.layers.dense(inputs, 3, kernel_regularizer=regularizer, name='fc')


def started_normal(inputs):
  return tf.layers.dense(inputs, 8, kernel_initializer=tf.random_normal_initializer(), name='fc')


def started_by_variance(inputs):
  return tf.layers.dense(
    inputs, 8, kernel_initializer=slim.variance_scaling_initializer(), name='fc'
  )


def keep_prob(inputs, training):
  net = tf.layers.dense(inputs, 8, name='fc')
  return slim.dropout(net, 0.8, is_training=training)


def perceptron(inputs, training):
  start = tf.truncated_normal_initializer(stddev=0.5)
  weights = {
    name: tf.get_variable(name, [3, 3], initializer=start) for name in ('hidden', 'output')
  }
  net = tf.matmul(inputs, weights['hidden']) + tf.random_normal([4, 3])
  return tf.matmul(net, weights['output']) + tf.random_normal([4, 3])
