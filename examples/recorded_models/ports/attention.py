"""The port of the transformer block: raw `get_variable` under the shim."""

import tensorflow as tf

v1 = tf.compat.v1
_HEADS = 2


def _normal(stddev: float) -> v1.random_normal_initializer:
  return v1.random_normal_initializer(stddev=stddev)


def _linear(net: tf.Tensor, size: int, scope: str) -> tf.Tensor:
  with v1.variable_scope(scope):
    kernel = v1.get_variable('w', [net.shape[-1], size], initializer=_normal(0.02))
    bias = v1.get_variable('b', [size], initializer=v1.zeros_initializer())
    return tf.tensordot(net, kernel, 1) + bias


def _norm(net: tf.Tensor, scope: str) -> tf.Tensor:
  with v1.variable_scope(scope):
    gain = v1.get_variable('g', [net.shape[-1]], initializer=v1.ones_initializer())
    bias = v1.get_variable('b', [net.shape[-1]], initializer=v1.zeros_initializer())
    mean, variance = tf.nn.moments(net, [-1], keepdims=True)
    return tf.nn.batch_normalization(net, mean, variance, bias, gain, 1e-5)


def _attend(net: tf.Tensor, training: bool, scope: str) -> tf.Tensor:
  batch, length, width = net.shape
  with v1.variable_scope(scope):
    heads = tf.reshape(_linear(net, 3 * width, 'qkv'), [batch, length, 3, _HEADS, -1])
    query, key, value = tf.unstack(tf.transpose(heads, [2, 0, 3, 1, 4]))
    scores = tf.einsum('bhqd,bhkd->bhqk', query, key) / value.shape[-1] ** 0.5
    mask = tf.linalg.band_part(tf.ones([length, length]), -1, 0)
    weights = tf.nn.softmax(scores * mask - 1e10 * (1.0 - mask))
    if training:
      weights = tf.nn.dropout(weights, rate=0.1)
    merged = tf.einsum('bhqk,bhkd->bqhd', weights, value)
    return _linear(tf.reshape(merged, [batch, length, width]), width, 'proj')


class Block(tf.keras.layers.Layer):
  """Returns the logits of the next token at every position."""

  @v1.keras.utils.track_tf1_style_variables
  def call(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Takes `[batch, length]` int32."""
    with v1.variable_scope('model'):
      table = v1.get_variable('wte', [11, 8], initializer=_normal(0.02))
      places = v1.get_variable('wpe', [tokens.shape[1], 8], initializer=_normal(0.01))
      net = tf.nn.embedding_lookup(table, tokens) + places
      with v1.variable_scope('h0'):
        net += _attend(_norm(net, 'ln_1'), training, 'attn')
        hidden = tf.nn.gelu(_linear(_norm(net, 'ln_2'), 32, 'mlp_fc'), approximate=True)
        net += _linear(hidden, 8, 'mlp_proj')
      return tf.matmul(_norm(net, 'ln_f'), table, transpose_b=True)
