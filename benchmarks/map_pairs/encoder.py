"""A BERT encoder in the style of 2018 against a port with `MultiHeadAttention`.

From arXiv:1810.04805, with the names and operations that code of that year has.
"""

import keras
import numpy as np
import tensorflow as tf
import tf_slim as slim
from keras import ops

import tf2verify

v1 = tf.compat.v1

WORDS, LONGEST, WIDTH, HEADS, INNER, LAYERS = 50, 12, 32, 4, 64, 4


def _norm(net):
  return slim.layer_norm(net, begin_norm_axis=-1, begin_params_axis=-1, scope='LayerNorm')


def _attention(net, bias):
  def heads(name):
    made = tf.reshape(v1.layers.dense(net, WIDTH, name=name), [-1, LONGEST, HEADS, WIDTH // HEADS])
    return tf.transpose(made, [0, 2, 1, 3])

  with v1.variable_scope('self'):
    scores = tf.matmul(heads('query'), heads('key'), transpose_b=True)
    scores = tf.multiply(scores, 1.0 / (WIDTH // HEADS) ** 0.5) + bias
    context = tf.transpose(tf.matmul(tf.nn.softmax(scores), heads('value')), [0, 2, 1, 3])
  with v1.variable_scope('output'):
    made = v1.layers.dense(tf.reshape(context, [-1, LONGEST, WIDTH]), WIDTH)
    return _norm(made + net)


def bert(words, kinds):
  """Returns the encoded words and the pooled first one."""
  with v1.variable_scope('bert', initializer=v1.random_uniform_initializer(-0.2, 0.2)):
    with v1.variable_scope('embeddings'):
      table = v1.get_variable('word_embeddings', [WORDS, WIDTH])
      types = v1.get_variable('token_type_embeddings', [2, WIDTH])
      places = v1.get_variable('position_embeddings', [LONGEST, WIDTH])
      net = tf.nn.embedding_lookup(table, words)
      net += tf.reshape(tf.matmul(tf.one_hot(tf.reshape(kinds, [-1]), 2), types), tf.shape(net))
      net = _norm(net + tf.expand_dims(places, 0))
    bias = (1.0 - tf.cast(words > 0, tf.float32)[:, None, None, :]) * -10000.0
    for number in range(LAYERS):
      with v1.variable_scope(f'encoder/layer_{number}'):
        with v1.variable_scope('attention'):
          net = _attention(net, bias)
        with v1.variable_scope('intermediate'):
          hidden = v1.layers.dense(net, INNER, tf.nn.gelu)
        with v1.variable_scope('output'):
          net = _norm(v1.layers.dense(hidden, WIDTH) + net)
    with v1.variable_scope('pooler'):
      pooled = v1.layers.dense(tf.squeeze(net[:, 0:1, :], axis=1), WIDTH, tf.tanh)
  return net, pooled


def _drawn():
  return keras.initializers.RandomUniform(-0.2, 0.2)


def _dense(units, activation=None):
  return keras.layers.Dense(units, activation, kernel_initializer=_drawn())


class Block(keras.layers.Layer):
  """Attention and two products, each with a sum and a normalization."""

  def __init__(self):
    super().__init__()
    self.mha = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS, kernel_initializer=_drawn())
    self.up, self.down = _dense(INNER, 'gelu'), _dense(WIDTH)
    self.ln_a, self.ln_b = (keras.layers.LayerNormalization(epsilon=1e-12) for _ in range(2))

  def call(self, net, mask):
    net = self.ln_a(net + self.mha(net, net, attention_mask=mask))
    return self.ln_b(net + self.down(self.up(net)))


class Port(keras.Model):
  """The same in Keras 3."""

  def __init__(self):
    super().__init__()
    self.tables = [keras.layers.Embedding(n, WIDTH, _drawn()) for n in (WORDS, 2, LONGEST)]
    self.ln = keras.layers.LayerNormalization(epsilon=1e-12)
    self.blocks = [Block() for _ in range(LAYERS)]
    self.first = _dense(WIDTH, 'tanh')

  def call(self, inputs):
    words, kinds = inputs
    parts = words, kinds, ops.arange(LONGEST)
    net = self.ln(sum(table(one) for table, one in zip(self.tables, parts, strict=True)))
    for block in self.blocks:
      net = block(net, (words > 0)[:, None, :])
    return net, self.first(net[:, 0])


class BertCase(tf2verify.EquivalenceCase):
  training_modes = (False,)
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    return bert(*inputs)

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    draws = np.random.RandomState(0)
    words = draws.randint(1, WORDS, (3, LONGEST)).astype(np.int32)
    words[1, 7:] = 0
    return words, draws.randint(0, 2, (3, LONGEST)).astype(np.int32)
