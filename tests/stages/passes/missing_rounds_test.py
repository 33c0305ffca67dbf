"""Rounds of a loop in Python that the port does not go through."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1


def _round(state, kernel, net):
  weights = tf.nn.softmax(state, axis=-1)
  mixed = tf.tanh(tf.matmul(weights * net, kernel))
  return state + mixed * tf.reduce_sum(net, axis=-1, keepdims=True)


class _Port(keras.layers.Layer):
  def __init__(self, rounds):
    super().__init__(name='port')
    self.rounds = rounds
    self.dense = keras.layers.Dense(4, name='dense')
    self.kernel = self.add_weight(name='kernel', shape=(4, 4))

  def call(self, inputs):
    net = self.dense(inputs)
    state = keras.ops.zeros_like(net)
    for _ in range(self.rounds):
      weights = keras.ops.softmax(state, axis=-1)
      mixed = keras.ops.tanh(keras.ops.matmul(weights * net, self.kernel))
      state = state + mixed * keras.ops.sum(net, axis=-1, keepdims=True)
    return state


class _Case(tf2verify.EquivalenceCase, abc.ABC):
  rounds = 4

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 4, name='dense')
    kernel = v1.get_variable('kernel', [4, 4])
    state = tf.zeros_like(net)
    for _ in range(4):
      state = _round(state, kernel, net)
    return state

  def variable_names(self, name):
    return f'port/{name}'

  def make_tf2_layer(self):
    return _Port(self.rounds)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 5))


class MissingRoundsTest(parameterized.TestCase):
  def test_a_round_less(self):
    causes, text = causes_of(self, _Case, rounds=3)
    self.assertLen(causes, 1, text)
    said = r'the port lacks one round of what tf1 repeats: .* one run of missing_rounds_test.py:\d+'
    self.assertRegex(causes[0], said + r' \(of 4\)')

  def test_right_port(self):
    verdict = tf2verify.verify(_Case, ['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
