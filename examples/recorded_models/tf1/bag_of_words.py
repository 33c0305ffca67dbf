"""A classifier of texts: the mean of the embedding of their words, padded by -1."""

import tensorflow as tf


def build(inputs, is_training):
  words = inputs['words']
  embedding = tf.get_variable(
    'embedding', [20, 4], initializer=tf.truncated_normal_initializer(stddev=0.5)
  )
  where = tf.where(tf.greater_equal(words, 0))
  bags = tf.SparseTensor(where, tf.gather_nd(words, where), tf.shape(words, out_type=tf.int64))
  mean = tf.nn.embedding_lookup_sparse(embedding, bags, None, combiner='mean')
  net = tf.concat([mean, tf.log1p(inputs['prices'])], axis=1)
  net = tf.contrib.layers.fully_connected(net, 6, scope='hidden')
  logits = tf.contrib.layers.fully_connected(net, 1, activation_fn=None, scope='logits')
  return tf.squeeze(logits, squeeze_dims=[1])


def loss(logits, labels):
  return tf.losses.sigmoid_cross_entropy(labels['clicked'], logits, weights=labels['weights'])


def optimizer():
  return tf.train.AdamOptimizer(learning_rate=0.05, epsilon=1e-4)
