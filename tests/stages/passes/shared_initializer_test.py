"""Tests of an initializer that several parts of one variable of TF1 share."""

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_PARTS = ('query', 'key', 'value')


class _Port(keras.layers.Layer):
  def __init__(self, is_shared):
    super().__init__(name='attention')
    one = keras.initializers.RandomUniform(-0.5, 0.5)
    made = [one if is_shared else keras.initializers.RandomUniform(-0.5, 0.5) for _ in _PARTS]
    self.parts = [
      keras.layers.Dense(4, use_bias=False, kernel_initializer=initializer, name=name)
      for name, initializer in zip(_PARTS, made, strict=True)
    ]

  def call(self, inputs):
    query, key, value = (part(inputs) for part in self.parts)
    return query * tf.tanh(key) + value


def _case(is_shared):
  class Case(tf2verify.EquivalenceCase):
    training_modes = (False,)
    variable_map = 'derive'

    def build_tf1_graph(self, inputs, training):
      start = v1.random_uniform_initializer(-0.5, 0.5)
      made = tf.matmul(inputs, v1.get_variable('qkv', [5, 12], initializer=start))
      query, key, value = tf.split(made, 3, 1)
      return query * tf.tanh(key) + value

    def make_tf2_layer(self):
      return _Port(is_shared)

    def make_inputs(self):
      return tf2verify.normal_inputs((3, 5))

  return Case


class SharedInitializerTest(absltest.TestCase):
  def verdict(self, is_shared):
    return tf2verify.verify(_case(is_shared), stages=['seeded_num_random_ops'])

  def test_shared(self):
    failure = self.verdict(is_shared=True).first_failure
    self.assertIsNotNone(failure)
    text = failure.to_text()
    self.assertIn('start with exactly the same numbers in the port, but not in tf1', text)
    self.assertIn('attention/query/kernel', text)

  def test_right(self):
    self.assertIsNone(self.verdict(is_shared=False).first_failure)


if __name__ == '__main__':
  absltest.main()
