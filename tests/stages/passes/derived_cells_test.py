"""Highway layers in front of cells that only one side writes by hand, through a derived map."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_UNITS = 4


def tf1_model(inputs):
  net, lengths = inputs['net'], inputs['lengths']
  with v1.variable_scope('encoder'):
    for n in range(2):
      with v1.variable_scope(f'highway_{n}'):
        h = v1.layers.dense(net, _UNITS, tf.nn.relu, name='H')
        t = v1.layers.dense(
          net, _UNITS, tf.nn.sigmoid, name='T', bias_initializer=v1.constant_initializer(-1.0)
        )
        net = h * t + net * (1.0 - t)
    cells = [v1.nn.rnn_cell.GRUCell(_UNITS) for _ in range(2)]
    outputs, _ = v1.nn.bidirectional_dynamic_rnn(*cells, net, lengths, dtype=tf.float32)
    return tf.concat(outputs, 2)


class Cell(keras.layers.Layer):
  """A GRU of TF1: the state is reset before the product."""

  def __init__(self, **settings):
    super().__init__(**settings)
    self.state_size = self.output_size = _UNITS

  def build(self, shape):
    rows = shape[-1] + _UNITS
    self.gate_kernel = self.add_weight((rows, 2 * _UNITS), name='gate_kernel')
    self.gate_bias = self.add_weight((2 * _UNITS,), 'ones', name='gate_bias')
    self.kernel = self.add_weight((rows, _UNITS), name='kernel')
    self.bias = self.add_weight((_UNITS,), 'zeros', name='bias')

  def call(self, inputs, states):
    (state,) = states
    gates = keras.ops.concatenate([inputs, state], -1) @ self.gate_kernel + self.gate_bias
    reset, update = keras.ops.split(keras.ops.sigmoid(gates), 2, -1)
    both = keras.ops.concatenate([inputs, reset * state], -1)
    state = update * state + (1 - update) * keras.ops.tanh(both @ self.kernel + self.bias)
    return state, [state]


class Highway(keras.layers.Layer):
  def __init__(self, **settings):
    super().__init__(**settings)
    self.h = keras.layers.Dense(_UNITS, 'relu')
    self.t = keras.layers.Dense(_UNITS, 'sigmoid', bias_initializer=keras.initializers.Constant(-1))

  def call(self, net):
    t = self.t(net)
    return t * self.h(net) + (1 - t) * net


class Encoder(keras.Model):
  def __init__(self, exchanged):
    super().__init__(name='port')
    self.highways = [Highway() for _ in range(2)]
    # The backward one is built first.
    self.back = keras.layers.RNN(Cell(), return_sequences=True, go_backwards=True)
    self.fore = keras.layers.RNN(Cell(), return_sequences=True)
    self.exchanged = exchanged

  def call(self, inputs):
    net, lengths = inputs['net'], inputs['lengths']
    mask = keras.ops.arange(net.shape[1])[None] < lengths[:, None]
    for highway in self.highways:
      net = highway(net)
    back = keras.ops.flip(self.back(net, mask=mask), 1)
    both = [self.fore(net, mask=mask), back]
    return (
      tf.concat(both[::-1] if self.exchanged else both, 2) * tf.cast(mask, 'float32')[..., None]
    )


class Encoding(tf2verify.EquivalenceCase, abc.ABC):
  exchanged = False

  def build_tf1_graph(self, inputs, training):
    return tf1_model(inputs)

  def make_tf2_layer(self):
    return Encoder(self.exchanged)

  def make_inputs(self):
    lengths = np.array([6, 3, 5], np.int32)
    return {'net': tf2verify.normal_inputs((3, 6, _UNITS)), 'lengths': lengths}


class DerivedCellsTest(absltest.TestCase):
  def test_right(self):
    class Right(Encoding):
      pass

    verdict = tf2verify.verify(Right, stages=['seeded_constant'])
    self.assertTrue(verdict.passed, verdict.to_text())

  def test_outputs_are_concatenated_in_the_other_order(self):
    class Wrong(Encoding):
      exchanged = True

    verdict = tf2verify.verify(Wrong, stages=['zero_randomness'])
    self.assertIs(verdict.first_failure.status, tf2verify.Status.FAILED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
