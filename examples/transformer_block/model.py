"""An embedding and one transformer encoder block, in raw `get_variable`.

Vaswani et al.: "Attention Is All You Need", arXiv:1706.03762, section 3, with the
layer normalization after each residual sum, as published.
"""

import dataclasses

import tensorflow as tf

v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Config:
  """The sizes of the block."""

  vocabulary: int = 50
  positions: int = 16
  width: int = 32
  heads: int = 4
  hidden: int = 64
  dropout_rate: float = 0.1


def _dropout(net: tf.Tensor, config: Config, is_training: bool) -> tf.Tensor:
  return v1.nn.dropout(net, rate=config.dropout_rate) if is_training else net


def _project(net: tf.Tensor, width: int, scope: str) -> tf.Tensor:
  with v1.variable_scope(scope):
    kernel = v1.get_variable(
      'kernel', [net.shape[-1], width], initializer=v1.truncated_normal_initializer(stddev=0.02)
    )
    bias = v1.get_variable('bias', [width], initializer=v1.zeros_initializer())
    return tf.tensordot(net, kernel, axes=1) + bias


def _layer_norm(net: tf.Tensor, scope: str) -> tf.Tensor:
  with v1.variable_scope(scope):
    gamma = v1.get_variable('gamma', [net.shape[-1]], initializer=v1.ones_initializer())
    beta = v1.get_variable('beta', [net.shape[-1]], initializer=v1.zeros_initializer())
    mean, variance = tf.nn.moments(net, [-1], keepdims=True)
    return (net - mean) * tf.math.rsqrt(variance + 1e-6) * gamma + beta


def _embed(token_ids: tf.Tensor, config: Config) -> tf.Tensor:
  initializer = v1.random_normal_initializer(stddev=config.width**-0.5)
  with v1.variable_scope('embedding'):
    tokens = v1.get_variable('tokens', [config.vocabulary, config.width], initializer=initializer)
    positions = v1.get_variable(
      'positions', [config.positions, config.width], initializer=initializer
    )
    return tf.nn.embedding_lookup(tokens, token_ids) + positions[: token_ids.shape[1]]


def _attention(net: tf.Tensor, mask: tf.Tensor, config: Config, is_training: bool) -> tf.Tensor:
  length = net.shape[1]
  depth = config.width // config.heads

  def split_heads(name: str) -> tf.Tensor:
    projected = _project(net, config.width, name)
    return tf.transpose(tf.reshape(projected, [-1, length, config.heads, depth]), [0, 2, 1, 3])

  with v1.variable_scope('attention'):
    query, key, value = split_heads('query'), split_heads('key'), split_heads('value')
    scores = tf.matmul(query, key, transpose_b=True) * depth**-0.5
    # -1e9 leaves no weight on padding once the softmax has been taken.
    scores += (1.0 - mask[:, tf.newaxis, tf.newaxis, :]) * -1e9
    weights = _dropout(tf.nn.softmax(scores), config, is_training)
    joined = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
    return _project(tf.reshape(joined, [-1, length, config.width]), config.width, 'output')


def transformer_block(
  token_ids: tf.Tensor, lengths: tf.Tensor, config: Config, is_training: bool
) -> tf.Tensor:
  """Embeds the tokens and encodes them.

  Args:
    token_ids: `[batch, length]` int32.
    lengths: `[batch]` int32, the number of tokens before the padding.
    config: the sizes.
    is_training: whether dropout is used.

  Returns:
    The encoded tokens, `[batch, length, width]` float32.
  """
  mask = tf.sequence_mask(lengths, token_ids.shape[1], dtype=tf.float32)
  with v1.variable_scope('transformer'):
    net = _dropout(_embed(token_ids, config), config, is_training)
    attended = _attention(net, mask, config, is_training)
    net = _layer_norm(net + _dropout(attended, config, is_training), 'attention_norm')
    hidden = tf.nn.relu(_project(net, config.hidden, 'hidden'))
    fed_forward = _project(hidden, config.width, 'feed_forward')
    return _layer_norm(net + _dropout(fed_forward, config, is_training), 'feed_forward_norm')
