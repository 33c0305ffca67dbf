"""A gate that is applied several operations too late."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class Cell(keras.layers.Layer):
  """A GRU, with the reset gate behind the activation of the candidate, or in front of all."""

  def __init__(self, is_late):
    super().__init__(name='cell')
    self.is_late = is_late
    self.gates = keras.layers.Dense(8, 'sigmoid', name='gates')
    self.candidate = keras.layers.Dense(4, 'tanh', name='candidate')

  def call(self, inputs, state):
    reset, update = tf.split(self.gates(tf.concat([inputs, state], -1)), 2, -1)
    if self.is_late:
      found = self.candidate(tf.concat([inputs, state], -1)) * reset
    else:
      found = self.candidate(tf.concat([inputs, reset * state], -1))
    return update * state + (1.0 - update) * found


class Encoder(tf2verify.EquivalenceCase, abc.ABC):
  is_late = False

  def build_tf1_graph(self, inputs, training):
    cell = v1.nn.rnn_cell.GRUCell(4)
    return v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[1]

  def make_tf2_layer(self):
    case = self

    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.cell = Cell(case.is_late)

      def call(self, inputs):
        state = tf.zeros([tf.shape(inputs)[0], 4])
        for step in range(inputs.shape[1]):
          state = self.cell(inputs[:, step], state)
        return state

    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 5, 2))


class FarMovesTest(absltest.TestCase):
  def test_a_gate_behind_an_activation(self):
    case = type('Case', (Encoder,), {'is_late': True})
    failure = tf2verify.verify(case, stages=['zero_randomness']).first_failure
    self.assertIsNotNone(failure)
    (cause,) = failure.diagnosis.causes
    self.assertTrue(cause.is_proven, failure.to_text())
    self.assertRegex(cause.text, r'\(Mul\) multiplies .*Tanh.* by .*split, output 0')
    self.assertRegex(cause.text, r'in the port; done to .* before .*concat')

  def test_the_right_cell(self):
    verdict = tf2verify.verify(type('Case', (Encoder,), {}), stages=['zero_randomness'])
    self.assertTrue(verdict.passed, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
