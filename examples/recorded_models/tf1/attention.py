"""One encoder block of a transformer, in raw tf.get_variable."""

import math

import tensorflow as tf


def gelu(x):
  return 0.5 * x * (1.0 + tf.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * tf.pow(x, 3))))


def linear(x, size, scope):
  """A projection of the last axis."""
  with tf.variable_scope(scope):
    width = x.shape[-1].value
    w = tf.get_variable('w', [width, size], initializer=tf.random_normal_initializer(stddev=0.02))
    b = tf.get_variable('b', [size], initializer=tf.constant_initializer(0))
    start = [dim.value for dim in x.shape[:-1]]
    return tf.reshape(tf.matmul(tf.reshape(x, [-1, width]), w) + b, start + [size])


def norm(x, scope, epsilon=1e-5):
  with tf.variable_scope(scope):
    size = x.shape[-1].value
    g = tf.get_variable('g', [size], initializer=tf.constant_initializer(1))
    b = tf.get_variable('b', [size], initializer=tf.constant_initializer(0))
    u = tf.reduce_mean(x, axis=-1, keep_dims=True)
    s = tf.reduce_mean(tf.square(x - u), axis=-1, keep_dims=True)
    return (x - u) * tf.rsqrt(s + epsilon) * g + b


def split_heads(x, heads):
  batch, length, width = [dim.value for dim in x.shape]
  return tf.transpose(tf.reshape(x, [batch, length, heads, width // heads]), [0, 2, 1, 3])


def attend(x, heads, keep_prob, scope):
  with tf.variable_scope(scope):
    batch, length, width = [dim.value for dim in x.shape]
    q, k, v = [
      split_heads(part, heads) for part in tf.split(linear(x, 3 * width, 'qkv'), 3, axis=2)
    ]
    weights = tf.matmul(q, k, transpose_b=True) / math.sqrt(v.shape[-1].value)
    mask = tf.matrix_band_part(tf.ones([length, length]), -1, 0)
    weights = tf.nn.softmax(weights * mask - 1e10 * (1 - mask))
    weights = tf.nn.dropout(weights, keep_prob)
    merged = tf.reshape(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3]), [batch, length, width])
    return linear(merged, width, 'proj')


def block(tokens, vocabulary, width, heads, is_training):
  keep_prob = 0.9 if is_training else 1.0
  with tf.variable_scope('model'):
    wte = tf.get_variable(
      'wte', [vocabulary, width], initializer=tf.random_normal_initializer(stddev=0.02)
    )
    wpe = tf.get_variable(
      'wpe', [tokens.shape[1].value, width], initializer=tf.random_normal_initializer(stddev=0.01)
    )
    h = tf.gather(wte, tokens) + wpe
    with tf.variable_scope('h0'):
      h += attend(norm(h, 'ln_1'), heads, keep_prob, 'attn')
      h += linear(gelu(linear(norm(h, 'ln_2'), 4 * width, 'mlp_fc')), width, 'mlp_proj')
    h = norm(h, 'ln_f')
    return tf.tensordot(h, wte, [[2], [1]])


def build(tokens, is_training):
  return block(tokens, vocabulary=11, width=8, heads=2, is_training=is_training)
