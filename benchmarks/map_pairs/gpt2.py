"""GPT-2 as its authors wrote it in 2019, against a port with `MultiHeadAttention`."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

import tf2verify

v1 = tf.compat.v1

WORDS, LONGEST, WIDTH, HEADS, LAYERS = 40, 16, 24, 3, 3


def _norm(net, scope):
  with v1.variable_scope(scope):
    g = v1.get_variable('g', [WIDTH], initializer=v1.constant_initializer(1))
    b = v1.get_variable('b', [WIDTH], initializer=v1.constant_initializer(0))
  mean = tf.reduce_mean(net, axis=-1, keepdims=True)
  variance = tf.reduce_mean(tf.square(net - mean), axis=-1, keepdims=True)
  return (net - mean) * tf.math.rsqrt(variance + 1e-5) * g + b


def _conv1d(net, width, scope):
  *start, before = net.shape.as_list()
  with v1.variable_scope(scope):
    w = v1.get_variable('w', [1, before, width], initializer=v1.random_normal_initializer(0, 0.02))
    b = v1.get_variable('b', [width], initializer=v1.constant_initializer(0))
  product = tf.matmul(tf.reshape(net, [-1, before]), tf.reshape(w, [-1, width])) + b
  return tf.reshape(product, [*start, width])


def _heads(net):
  *start, width = net.shape.as_list()
  return tf.transpose(tf.reshape(net, [*start, HEADS, width // HEADS]), [0, 2, 1, 3])


def _attention(net):
  query, key, value = map(_heads, tf.split(_conv1d(net, 3 * WIDTH, 'c_attn'), 3, axis=2))
  scores = tf.matmul(query, key, transpose_b=True) * tf.math.rsqrt(float(WIDTH // HEADS))
  count = scores.shape[-1].value
  mask = tf.cast(tf.range(count)[:, None] >= tf.range(count), scores.dtype)
  shares = tf.nn.softmax(scores * mask - 1e10 * (1 - mask))
  joined = tf.transpose(tf.matmul(shares, value), [0, 2, 1, 3])
  return _conv1d(tf.reshape(joined, net.shape), WIDTH, 'c_proj')


def _gelu(x):
  return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


def gpt2(words):
  """Returns the logits of the next word."""
  with v1.variable_scope('model'):
    wpe = v1.get_variable(
      'wpe', [LONGEST, WIDTH], initializer=v1.random_normal_initializer(0, 0.01)
    )
    wte = v1.get_variable('wte', [WORDS, WIDTH], initializer=v1.random_normal_initializer(0, 0.02))
    net = tf.gather(wte, words) + tf.gather(wpe, tf.range(words.shape[1]))
    for layer in range(LAYERS):
      with v1.variable_scope(f'h{layer}'):
        normed = _norm(net, 'ln_1')
        with v1.variable_scope('attn'):
          net += _attention(normed)
        normed = _norm(net, 'ln_2')
        with v1.variable_scope('mlp'):
          net += _conv1d(_gelu(_conv1d(normed, 4 * WIDTH, 'c_fc')), WIDTH, 'c_proj')
    flat = tf.reshape(_norm(net, 'ln_f'), [-1, WIDTH])
    return tf.reshape(tf.matmul(flat, wte, transpose_b=True), [*words.shape.as_list(), WORDS])


def _normal(spread=0.02):
  return keras.initializers.RandomNormal(stddev=spread)


class Port(keras.Model):
  """The same in Keras 3; the logits are made with the table of the words."""

  def __init__(self):
    super().__init__()
    self.words = keras.layers.Embedding(WORDS, WIDTH, _normal())
    self.places = keras.layers.Embedding(LONGEST, WIDTH, _normal(0.01))
    self.norms = [keras.layers.LayerNormalization(epsilon=1e-5) for _ in range(2 * LAYERS + 1)]
    self.attentions = [
      keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS, kernel_initializer=_normal())
      for _ in range(LAYERS)
    ]
    self.inner = [
      keras.layers.Dense(4 * WIDTH, kernel_initializer=_normal()) for _ in range(LAYERS)
    ]
    self.outer = [keras.layers.Dense(WIDTH, kernel_initializer=_normal()) for _ in range(LAYERS)]

  def call(self, words):
    net = self.words(words) + self.places(ops.arange(words.shape[1]))
    for n in range(LAYERS):
      normed = self.norms[2 * n](net)
      net += self.attentions[n](normed, normed, use_causal_mask=True)
      hidden = keras.activations.gelu(self.inner[n](self.norms[2 * n + 1](net)), approximate=True)
      net += self.outer[n](hidden)
    return ops.matmul(self.norms[-1](net), ops.transpose(self.words.embeddings))


class Gpt2Case(tf2verify.EquivalenceCase):
  training_modes = (False,)
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    return gpt2(inputs)

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    return np.random.RandomState(0).randint(0, WORDS, (2, 9)).astype(np.int32)
