"""Tests of references that overflow at distinct values of variables."""

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_SAID = 'of tf1 is not finite in'
_GAIN = 8.0
_UP_TO_GRADIENTS = ['zero_randomness', 'gradients']


class _Port(keras.layers.Layer):
  """Logarithms of probabilities, by a function of the logits."""

  def __init__(self, log):
    super().__init__(name='head')
    self.log = log
    self.dense = keras.layers.Dense(6, kernel_initializer='zeros', name='dense')

  def call(self, inputs):
    return self.log(_GAIN * keras.ops.exp(3.0 * self.dense(inputs)))


def _by_softplus(logits):
  return -keras.ops.softplus(-(2.0 - logits))


def _with_epsilon(logits):
  return keras.ops.log(keras.ops.sigmoid(2.0 - logits) + 1e-8)


def _other_offset(logits):
  return -keras.ops.softplus(-(2.01 - logits))


def _case(log, **methods):
  class Parent(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      kernel = v1.zeros_initializer()  # no overflow at the start
      net = v1.layers.dense(inputs, 6, kernel_initializer=kernel, name='dense')
      logits = _GAIN * tf.exp(3.0 * net)
      return v1.log(tf.sigmoid(2.0 - logits))

    def make_tf2_layer(self):
      return _Port(log)

    def make_inputs(self):
      return tf2verify.normal_inputs((5, 4))

  return type('Case', (Parent,), methods)


class MilderValuesTest(absltest.TestCase):
  def verdict(self, log, stages=('zero_randomness',), **methods):
    return tf2verify.verify(_case(log, **methods), stages=list(stages))

  def test_finite_where_tf1_overflows(self):
    verdict = self.verdict(_by_softplus, _UP_TO_GRADIENTS)
    self.assertIsNone(verdict.first_failure, verdict.to_text())
    (stage,) = [one for one in verdict.stages if one.stage == 'zero_randomness']
    (spot,) = [one for one in stage.blind_spots if _SAID in one]
    self.assertRegex(spot, r'compared with these values times 0\.\d+, here and in later stages')

  def test_epsilon_shows_itself_near_the_overflow(self):
    verdict = self.verdict(_with_epsilon)
    self.assertIsNotNone(verdict.first_failure)
    self.assertIn('distinct values, times 0.', verdict.to_text())

  def test_other_mistake_is_found_at_smaller_values(self):
    verdict = self.verdict(_other_offset)
    self.assertIsNotNone(verdict.first_failure)
    self.assertIn('2.01', verdict.to_text())

  def test_values_of_a_case_stay(self):
    def fill_values(self, name, shape, dtype):
      return 1.5 * tf2verify.distinct_values(name, shape, dtype)

    verdict = self.verdict(_by_softplus, fill_values=fill_values)
    self.assertIsNotNone(verdict.first_failure)
    self.assertNotIn(_SAID, verdict.to_text())

  def test_both_overflow(self):
    def log(logits):
      return keras.ops.log(keras.ops.sigmoid(2.0 - logits))

    def build_tf1_graph(self, inputs, training):
      logits = _GAIN * tf.exp(9.0 + v1.layers.dense(inputs, 6, name='dense'))
      return v1.log(tf.sigmoid(2.0 - logits))

    class Port(_Port):
      def call(self, inputs):
        return self.log(_GAIN * keras.ops.exp(9.0 + self.dense(inputs)))

    verdict = self.verdict(
      log, build_tf1_graph=build_tf1_graph, make_tf2_layer=lambda self: Port(log)
    )
    self.assertIs(verdict.stages[-1].status, tf2verify.Status.INCONCLUSIVE, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
