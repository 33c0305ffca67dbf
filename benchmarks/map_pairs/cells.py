"""Recurrent cells of TF1 against layers of Keras 3: stacked, bidirectional, projected."""

import abc

import keras
import tensorflow as tf
from keras import ops

import tf2verify

v1 = tf.compat.v1


# The parts of a kernel that Keras divides would be drawn from other ranges by default.
_RANGE = -0.3, 0.3


def _initializers():
  def draws():
    return keras.initializers.RandomUniform(*_RANGE)

  return {'kernel_initializer': draws(), 'recurrent_initializer': draws()}


def _lstm(units):
  return keras.layers.LSTM(units, return_sequences=True, **_initializers())


@keras.saving.register_keras_serializable()  # `Bidirectional` makes its layer again
def _gru_bias(shape, dtype=None):
  """Returns ones for the gates and zeros for the candidate, as `GRUCell` starts."""
  units = shape[-1] // 3
  return ops.concatenate([ops.ones(2 * units, dtype), ops.zeros(units, dtype)])


def _lstm_bias(shape, dtype=None):
  """Returns ones for the forget gate, which `LSTMCell` of TF1 adds in every step."""
  units = shape[-1] // 4
  return ops.concatenate([ops.zeros(units, dtype), ops.ones(units, dtype), ops.zeros(2 * units)])


def _gru(units):
  return keras.layers.GRU(
    units,
    return_sequences=True,
    reset_after=False,
    bias_initializer=_gru_bias,
    **_initializers(),
  )


class SequenceCase(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = 'derive'
  training_modes = (False,)
  features = 5

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 7, self.features))

  def drawn(self, scope='rnn'):
    """Returns a scope whose variables start in the range of the port's."""
    return v1.variable_scope(scope, initializer=v1.random_uniform_initializer(*_RANGE))

  def stacked(self, inputs, cells):
    """Returns the logits of a stack of cells of TF1."""
    cell = v1.nn.rnn_cell.MultiRNNCell(cells)
    with self.drawn():
      outputs, _ = v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
    return v1.layers.dense(outputs, 3, name='logits')

  def both_ways(self, inputs, make):
    """Returns the logits of two layers of cells of TF1 in both directions."""
    net = inputs
    for number in range(2):
      with self.drawn(f'layer{number}'):
        outputs, _ = v1.nn.bidirectional_dynamic_rnn(make(), make(), net, dtype=tf.float32)
      net = tf.concat(outputs, 2)
    return v1.layers.dense(net, 3, name='logits')

  def sequential(self, *layers):
    """Returns a model of Keras."""
    return keras.Sequential([*layers, keras.layers.Dense(3)])


class StackedLstmCase(SequenceCase):
  def build_tf1_graph(self, inputs, training):
    return self.stacked(inputs, [v1.nn.rnn_cell.BasicLSTMCell(n) for n in (8, 8, 6)])

  def make_tf2_layer(self):
    return self.sequential(*map(_lstm, (8, 8, 6)))


class BidirectionalLstmCase(SequenceCase):
  def build_tf1_graph(self, inputs, training):
    return self.both_ways(inputs, lambda: v1.nn.rnn_cell.LSTMCell(6))

  def make_tf2_layer(self):
    return self.sequential(*(keras.layers.Bidirectional(_lstm(6)) for _ in range(2)))


class StackedGruCase(SequenceCase):
  def build_tf1_graph(self, inputs, training):
    return self.stacked(inputs, [v1.nn.rnn_cell.GRUCell(n) for n in (8, 8, 6)])

  def make_tf2_layer(self):
    return self.sequential(*map(_gru, (8, 8, 6)))


class BidirectionalGruCase(SequenceCase):
  def build_tf1_graph(self, inputs, training):
    return self.both_ways(inputs, lambda: v1.nn.rnn_cell.GRUCell(6))

  def make_tf2_layer(self):
    return self.sequential(*(keras.layers.Bidirectional(_gru(6)) for _ in range(2)))


class Projected(keras.layers.LSTMCell):
  """An `LSTMCell` of Keras 3 with peepholes and a projection of the output."""

  def __init__(self, units, projected):
    super().__init__(units)
    self.projected = projected
    self.state_size, self.output_size = [projected, units], projected

  def build(self, shape):
    def weight(name, *shape):
      return self.add_weight(
        shape=shape, name=name, initializer=keras.initializers.RandomUniform(*_RANGE)
      )

    self.kernel = weight('kernel', shape[-1], 4 * self.units)
    self.recurrent_kernel = weight('recurrent_kernel', self.projected, 4 * self.units)
    self.bias = self.add_weight(shape=(4 * self.units,), name='bias', initializer=_lstm_bias)
    self.peepholes = [weight(f'peephole_{gate}', self.units) for gate in 'ifo']
    self.projection = weight('projection', self.units, self.projected)
    self.built = True

  def call(self, inputs, states, training=False):
    h, c = states
    made = ops.matmul(inputs, self.kernel) + ops.matmul(h, self.recurrent_kernel) + self.bias
    i, f, new, o = ops.split(made, 4, axis=-1)  # the forget bias is in the bias
    of_i, of_f, of_o = self.peepholes
    c = ops.sigmoid(f + of_f * c) * c + ops.sigmoid(i + of_i * c) * ops.tanh(new)
    h = ops.matmul(ops.sigmoid(o + of_o * c) * ops.tanh(c), self.projection)
    return h, [h, c]


class ProjectedLstmCase(SequenceCase):
  def build_tf1_graph(self, inputs, training):
    cell = v1.nn.rnn_cell.LSTMCell
    return self.stacked(inputs, [cell(8, use_peepholes=True, num_proj=n) for n in (4, 5)])

  def make_tf2_layer(self):
    rnn = keras.layers.RNN
    return self.sequential(*(rnn(Projected(8, n), return_sequences=True) for n in (4, 5)))
