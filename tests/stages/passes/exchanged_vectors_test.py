"""Tests of two variables that a port reads in place of each other, in a formula of its own."""

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class _Port(keras.layers.Layer):
  def __init__(self, is_exchanged):
    super().__init__(name='prior')
    self.is_exchanged = is_exchanged

  def build(self, _):
    self.location = self.add_weight(name='location', shape=(4,))
    self.spread = self.add_weight(name='spread', shape=(4,))

  def call(self, inputs):
    location, spread = self.location, self.spread
    if self.is_exchanged:
      location, spread = spread, location
    return -0.5 * (2.0 * spread + (inputs - location) ** 2 * keras.ops.exp(-2.0 * spread))


def _case(is_exchanged):
  class Case(tf2verify.EquivalenceCase):
    training_modes = (False,)
    variable_names = {'mean': 'prior/location', 'logs': 'prior/spread'}

    def build_tf1_graph(self, inputs, training):
      start = v1.random_uniform_initializer(-1.0, 1.0)
      mean, logs = (v1.get_variable(name, [4], initializer=start) for name in ('mean', 'logs'))
      return -0.5 * (2.0 * logs + (inputs - mean) ** 2 / tf.exp(2.0 * logs))

    def make_tf2_layer(self):
      return _Port(is_exchanged)

    def make_inputs(self):
      return tf2verify.normal_inputs((3, 4))

  return Case


class ExchangedVectorsTest(absltest.TestCase):
  def verdict(self, is_exchanged):
    return tf2verify.verify(_case(is_exchanged), stages=['zero_randomness'])

  def test_exchanged(self):
    failure = self.verdict(is_exchanged=True).first_failure
    self.assertIsNotNone(failure)
    (cause,) = failure.diagnosis.causes
    self.assertTrue(cause.is_proven, failure.to_text())
    self.assertIn('reads variable mean as y in the port, variable logs in tf1', cause.text)
    self.assertIn('reads variable logs as y in the port, variable mean in tf1', cause.text)
    self.assertNotIn('RealDiv', cause.text)

  def test_right(self):
    self.assertIsNone(self.verdict(is_exchanged=False).first_failure)


if __name__ == '__main__':
  absltest.main()
