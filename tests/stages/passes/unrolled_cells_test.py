"""Cells that Python unrolls over many steps, so that one mistake is in all of them."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1
_UNITS, _STEPS = 3, 16


def lstm_step(gates, cell, kind):
  if kind == 'keras':
    i, f, j, o = tf.split(gates, 4, axis=1)
  else:
    i, j, f, o = tf.split(gates, 4, axis=1)
  cell = tf.sigmoid(f + 1.0) * cell + tf.sigmoid(i) * tf.tanh(j)
  return cell, tf.sigmoid(o) * tf.tanh(cell)


class Unrolled(tf.keras.layers.Layer):
  def __init__(self, kind):
    super().__init__()
    self._kind = kind

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    with v1.variable_scope('rnn/lstm_cell'):
      kernel = v1.get_variable('kernel', [2 + _UNITS, 4 * _UNITS])
      bias = v1.get_variable('bias', [4 * _UNITS], initializer=v1.zeros_initializer())
    cell = output = tf.zeros([tf.shape(inputs)[0], _UNITS])
    for step in range(inputs.shape[1]):
      gates = tf.concat([inputs[:, step], output], axis=1) @ kernel + bias
      cell, output = lstm_step(gates, cell, self._kind)
    return output


class Unrolling(tf2verify.EquivalenceCase, abc.ABC):
  kind = 'tf1'

  def build_tf1_graph(self, inputs, training):
    cell = v1.nn.rnn_cell.LSTMCell(_UNITS)
    outputs, _ = v1.nn.static_rnn(cell, tf.unstack(inputs, axis=1), dtype=tf.float32)
    return outputs[-1]

  def make_tf2_layer(self):
    return Unrolled(self.kind)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, _STEPS, 2))


class UnrolledCellsTest(absltest.TestCase):
  def test_right(self):
    causes, text = causes_of(self, Unrolling)
    self.assertEmpty(causes, text)

  def test_gates_in_the_order_of_keras(self):
    causes, text = causes_of(self, Unrolling, kind='keras')
    self.assertRegex(causes[0], 'the order of the gates differs', text)


if __name__ == '__main__':
  absltest.main()
