"""Pairs of other kinds: attention over a recurrent encoder, a ConvLSTM, an exchange."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

import tf2verify

v1 = tf.compat.v1


# As in `cells`: the parts of a kernel that Keras divides would be drawn from other ranges.
_RANGE = -0.3, 0.3


def _drawn(*kinds):
  """Returns the initializers of a layer of Keras that draw from that range."""
  return {f'{kind}_initializer': keras.initializers.RandomUniform(*_RANGE) for kind in kinds}


def _scope(scope, **arguments):
  """Returns a scope of TF1 whose variables are drawn from that range."""
  return v1.variable_scope(scope, initializer=v1.random_uniform_initializer(*_RANGE), **arguments)


def _gru_bias(shape, dtype=None):
  """Returns ones for the gates and zeros for the candidate, as `GRUCell` starts."""
  units = shape[-1] // 3
  return ops.concatenate([ops.ones(2 * units, dtype), ops.zeros(units, dtype)])


class Decoder(keras.Model):
  """The port of the translator below."""

  def __init__(self):
    super().__init__()
    layers, own = keras.layers, _drawn('kernel', 'recurrent')
    self.source, self.target = (
      layers.Embedding(words, 8, **_drawn('embeddings')) for words in (30, 25)
    )
    own.update(reset_after=False, bias_initializer=_gru_bias)
    self.encoder = layers.GRU(10, return_sequences=True, **own)
    self.cell = layers.GRUCell(10, **own)
    self.of_memory, self.of_state, self.score = (
      layers.Dense(units, use_bias=False, **_drawn('kernel')) for units in (6, 6, 1)
    )
    self.logits = layers.Dense(25, **_drawn('kernel'))

  def call(self, inputs):
    memory = self.encoder(self.source(inputs['source']))
    known, state, found = self.of_memory(memory), memory[:, -1], []
    for step in range(4):
      grades = self.score(ops.tanh(known + self.of_state(state)[:, None]))
      seen = ops.sum(ops.softmax(grades, 1) * memory, 1)
      word = self.target(inputs['target'][:, step])
      _, (state,) = self.cell(ops.concatenate([word, seen], -1), [state])
      found.append(self.logits(state))
    return ops.stack(found, 1)


class TranslatorCase(tf2verify.EquivalenceCase):
  """A decoder of four steps with additive attention (arXiv:1409.0473)."""

  training_modes = (False,)
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    with _scope('translator'):
      return self.translated(inputs)

  def translated(self, inputs):
    """Returns the logits of four words."""
    source = v1.get_variable('source_embedding', [30, 8])
    target = v1.get_variable('target_embedding', [25, 8])
    cell = v1.nn.rnn_cell.GRUCell(10, name='encoder')
    words = tf.nn.embedding_lookup(source, inputs['source'])
    memory, state = v1.nn.dynamic_rnn(cell, words, dtype=tf.float32)
    known = v1.layers.dense(memory, 6, use_bias=False, name='memory_layer')
    cell, found = v1.nn.rnn_cell.GRUCell(10, name='decoder'), []
    for step in range(4):
      with v1.variable_scope('attention', reuse=step > 0):
        query = v1.layers.dense(state, 6, use_bias=False, name='query_layer')
        v = v1.get_variable('attention_v', [6])
      shares = tf.nn.softmax(tf.reduce_sum(v * tf.tanh(known + query[:, None]), [2]))
      seen = tf.squeeze(tf.matmul(shares[:, None], memory), 1)
      word = tf.nn.embedding_lookup(target, inputs['target'][:, step])
      _, state = cell(tf.concat([word, seen], -1), state)
      found.append(v1.layers.dense(state, 25, name='logits', reuse=step > 0))
    return tf.stack(found, 1)

  def make_tf2_layer(self):
    return Decoder()

  def make_inputs(self):
    draws = np.random.RandomState(0)
    return {
      'source': draws.randint(0, 30, (3, 5)).astype(np.int32),
      'target': draws.randint(0, 25, (3, 4)).astype(np.int32),
    }


class ConvLstmCase(tf2verify.EquivalenceCase):
  """A ConvLSTM (arXiv:1506.04214) whose steps are written out, against `ConvLSTM2D`."""

  training_modes = (False,)
  variable_map = 'derive'
  # Keras makes the layer for one size of image, as its documentation says; TF1 takes any.
  other_sizes = (3, 3, 6, 6, 4)

  def build_tf1_graph(self, inputs, training):
    c = h = tf.zeros_like(inputs[:, 0, :, :, :1]) + tf.zeros([6])
    for step in range(3):
      with _scope('conv_lstm_cell', reuse=step > 0):
        made = v1.layers.conv2d(
          tf.concat([inputs[:, step], h], 3), 24, 3, padding='same', name='gates'
        )
      i, new, f, o = tf.split(made, 4, 3)
      c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(new)
      h = tf.sigmoid(o) * tf.tanh(c)
    return v1.layers.dense(tf.reduce_mean(h, [1, 2]), 3, name='logits')

  def make_tf2_layer(self):
    return keras.Sequential(
      [
        keras.layers.ConvLSTM2D(
          6, 3, padding='same', recurrent_activation='sigmoid', **_drawn('kernel', 'recurrent')
        ),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(3),
      ]
    )

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 3, 6, 6, 4))


class Siamese(keras.Model):
  """Makes its layers under the names of TF1, and exchanges two of one shape, unless it is right."""

  def __init__(self, is_right=False):
    super().__init__(name='siamese')
    self.is_right = is_right
    self.query, self.key, self.value = (
      keras.layers.Dense(8, name=name) for name in ('query', 'key', 'value')
    )
    self.logits = keras.layers.Dense(3, name='logits')

  def call(self, inputs):
    query, key = (self.query, self.key) if self.is_right else (self.key, self.query)
    shares = ops.softmax(ops.matmul(query(inputs), ops.transpose(key(inputs), (0, 2, 1))))
    return self.logits(ops.matmul(shares, self.value(inputs)))


class ExchangedCase(tf2verify.EquivalenceCase):
  """A wrong port: the query serves as the key. It must end as a finding."""

  training_modes = (False,)
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    query, key, value = (v1.layers.dense(inputs, 8, name=n) for n in ('query', 'key', 'value'))
    shares = tf.nn.softmax(tf.matmul(query, key, transpose_b=True))
    return v1.layers.dense(tf.matmul(shares, value), 3, name='logits')

  def make_tf2_layer(self):
    return Siamese()

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 5, 6))
