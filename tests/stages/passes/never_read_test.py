"""Tests of stages.failures.never_read: variables that the port does not read, and tf1 does."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'zero_randomness'
NEVER = 'the port never reads'


class Port(keras.Model):
  def __init__(self, order):
    super().__init__(name='port')
    self.first = keras.layers.Dense(4, 'tanh', name='first')
    self.norms = [keras.layers.LayerNormalization(epsilon=1e-3, name=f'n{n}') for n in (0, 1)]
    self.order = order

  def build(self, shape):
    self.first.build(shape)
    for norm in self.norms:
      norm.build((None, 4))

  def call(self, inputs):
    found = self.first(inputs)
    for n in self.order:
      found = tf.sin(self.norms[n](found))
    return found


class Norms(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = 'derive'
  order = (0, 1)

  def build_tf1_graph(self, inputs, training):
    found = v1.layers.dense(inputs, 4, tf.tanh, name='first')
    for n in (0, 1):
      mean, variance = tf.nn.moments(found, [-1], keepdims=True)
      with v1.variable_scope(f'norm{n}'):
        gamma = v1.get_variable('gamma', [4], initializer=v1.ones_initializer())
        beta = v1.get_variable('beta', [4], initializer=v1.zeros_initializer())
      found = tf.sin(tf.nn.batch_normalization(found, mean, variance, beta, gamma, 1e-3))
    return found

  def make_tf2_layer(self):
    return Port(self.order)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4))


class NeverReadTest(LadderTestCase):
  def test_right(self):
    self.assert_passes(type('Case', (Norms,), {}), STAGE)

  def test_one_layer_called_twice(self):
    case = type('Case', (Norms,), {'order': (0, 0)})
    self.assert_first_failure(case, STAGE, f'{NEVER} port/n1 (norm', 'never_read_test.py:')

  def test_variables_in_other_layouts_are_read(self):
    class Flattened(Port):
      def __init__(self):
        super().__init__((0, 1))
        self.first = keras.layers.Dense(8, 'softsign', name='first')

      def call(self, inputs):
        return super().call(inputs)[:, :4]

      def build(self, shape):
        self.first.build(shape)
        for norm in self.norms:
          norm.build((None, 8))

    class Case(Norms):
      def build_tf1_graph(self, inputs, training):
        parts = [v1.layers.dense(inputs, 4, tf.tanh, name=name) for name in ('one', 'other')]
        found = tf.concat(parts, 1)
        for n in (0, 1):
          mean, variance = tf.nn.moments(found, [-1], keepdims=True)
          with v1.variable_scope(f'norm{n}'):
            gamma = v1.get_variable('gamma', [1, 8], initializer=v1.ones_initializer())
            beta = v1.get_variable('beta', [8], initializer=v1.zeros_initializer())
          found = tf.sin(tf.nn.batch_normalization(found, mean, variance, beta, gamma, 1e-3))
        return found[:, :4]

      def make_tf2_layer(self):
        return Flattened()

    self.assertNotIn(NEVER, self.assert_first_failure(Case, STAGE))

  def test_another_mistake_has_no_such_cause(self):
    class Case(Norms):
      def make_tf2_layer(self):
        port = super().make_tf2_layer()
        port.first = keras.layers.Dense(4, 'softsign', name='first')
        return port

    self.assertNotIn(NEVER, self.assert_first_failure(Case, STAGE))


if __name__ == '__main__':
  absltest.main()
