"""A text encoder of one block in the style of 2018: `get_variable`, `tf.layers.dense`."""

import tensorflow as tf

v1 = tf.compat.v1

WORDS, WIDTH, HEADS, LONGEST = 20, 16, 4, 12


def _norm(net: tf.Tensor, scope: str) -> tf.Tensor:
  with v1.variable_scope(scope):
    gamma = v1.get_variable('gamma', [WIDTH], initializer=v1.ones_initializer())
    beta = v1.get_variable('beta', [WIDTH], initializer=v1.zeros_initializer())
  mean, variance = tf.nn.moments(net, [-1], keepdims=True)
  return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-6)


def _attention(net: tf.Tensor, mask: tf.Tensor, is_training: bool) -> tf.Tensor:
  batch, length = tf.shape(net)[0], tf.shape(net)[1]

  def heads(name: str) -> tf.Tensor:
    projected = v1.layers.dense(net, WIDTH, name=name)
    return tf.transpose(tf.reshape(projected, [batch, length, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])

  scores = tf.matmul(heads('query'), heads('key'), transpose_b=True) / (WIDTH // HEADS) ** 0.5
  scores += (1.0 - mask[:, tf.newaxis, tf.newaxis, :]) * -1e4
  shares = v1.layers.dropout(tf.nn.softmax(scores), 0.1, training=is_training)
  context = tf.transpose(tf.matmul(shares, heads('value')), [0, 2, 1, 3])
  return v1.layers.dense(tf.reshape(context, [batch, length, WIDTH]), WIDTH, name='output')


def encoder(words: tf.Tensor, is_training: bool) -> tf.Tensor:
  """Encodes texts.

  Args:
    words: `[batch, length]` int32; 0 is no word.
    is_training: whether dropout is used.

  Returns:
    `[batch, length, 16]` float32.
  """
  small = v1.truncated_normal_initializer(stddev=0.02)
  with v1.variable_scope('encoder'):
    table = v1.get_variable('words/embeddings', [WORDS, WIDTH], initializer=small)
    places = v1.get_variable('places/embeddings', [LONGEST, WIDTH], initializer=small)
    net = tf.nn.embedding_lookup(table, words) + places[: words.shape[1].value]
    mask = tf.cast(tf.not_equal(words, 0), tf.float32)
    attended = _attention(net, mask, is_training)
    net = _norm(net + v1.layers.dropout(attended, 0.1, training=is_training), 'norm1')
    hidden = v1.layers.dense(net, 32, activation=tf.nn.gelu, name='inner')
    hidden = v1.layers.dense(hidden, WIDTH, name='outer')
    return _norm(net + v1.layers.dropout(hidden, 0.1, training=is_training), 'norm2')
