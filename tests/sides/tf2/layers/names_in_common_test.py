"""Tests of sides.tf2.layers.names_in_common: two networks whose layers have the same names."""

import abc

import keras
import numpy as np
import tensorflow as tf
import tf_keras
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tf2verify.reference.variables import variable_name
from tf2verify.sides.tf2.layers import layer_parts

v1 = tf.compat.v1


def _network(package, units, name):
  hidden = package.layers.Dense(10, 'tanh', name='hidden')
  return package.Sequential([hidden, package.layers.Dense(units, name='out')], name=name)


def _port(package):
  class ActorCritic(package.Model):
    def __init__(self):
      super().__init__()
      self.actor = _network(package, 4, 'actor')
      self.critic = _network(package, 1, 'critic')

    def call(self, inputs):
      return {'logits': self.actor(inputs), 'value': self.critic(inputs)}

  return ActorCritic()


class ActorCritic(tf2verify.EquivalenceCase, abc.ABC):
  package = tf_keras

  def build_tf1_graph(self, inputs, training):
    found = {}
    for scope, key, units in (('actor', 'logits', 4), ('critic', 'value', 1)):
      with v1.variable_scope(scope):
        hidden = v1.layers.dense(inputs, 10, tf.tanh, name='hidden')
        found[key] = v1.layers.dense(hidden, units, name='out')
    return found

  def make_tf2_layer(self):
    return _port(self.package)

  def make_inputs(self):
    return tf2verify.normal_inputs((7, 6))

  def make_labels(self):
    return np.arange(7) % 4

  def tf1_loss(self, outputs, labels):
    chosen = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs['logits'])
    return tf.reduce_mean(chosen) + tf.reduce_mean(tf.square(outputs['value'] - 1.0))

  def tf2_loss(self, outputs, labels):
    chosen = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs['logits'])
    return tf.reduce_mean(chosen) + tf.reduce_mean(tf.square(outputs['value'] - 1.0))

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return self.package.optimizers.Adam(0.01, epsilon=1e-8)


class NamesInCommonTest(LadderTestCase):
  def test_right(self):
    for package in (tf_keras, keras):
      with self.subTest(package.__name__):
        case = type('Case', (ActorCritic,), {'package': package})
        self.assert_passes(case, 'determinism')

  def test_by_name(self):
    class Case(ActorCritic):
      variable_names = {}

    self.assert_passes(Case, 'zero_randomness')

  def test_exchanged(self):
    class Case(ActorCritic):
      variable_names = {}

      def make_tf2_layer(self):
        class Swapped(tf_keras.Model):
          def __init__(self):
            super().__init__()
            self.first = _network(tf_keras, 4, 'critic')
            self.second = _network(tf_keras, 1, 'actor')

          def call(self, inputs):
            return {'logits': self.first(inputs), 'value': self.second(inputs)}

        return Swapped()

    self.assert_first_failure(Case, 'variable_inventory', 'actor/out/kernel')

  def test_names(self):
    layer = _port(tf_keras)
    layer(np.zeros([1, 6], np.float32))
    names = [variable_name(variable) for variable in layer_parts.variables_of(layer)]
    self.assertLen(set(names), 8)
    self.assertIn('critic/hidden/kernel', names)

  def test_a_layer_that_makes_a_variable_twice(self):
    class Remade(tf_keras.layers.Layer):
      def build(self, shape):
        for _ in range(2):
          self.kernel = self.add_weight(name='kernel', shape=(shape[-1],))

      def call(self, inputs):
        return inputs * self.kernel

    layer = Remade()
    layer(np.zeros([1, 6], np.float32))
    names = {variable_name(variable) for variable in layer_parts.variables_of(layer)}
    self.assertLen(names, 1)

  def test_one_network_twice_has_no_names_of_its_own(self):
    class Twice(tf_keras.Model):
      def __init__(self):
        super().__init__()
        self.parts = [_network(tf_keras, 4, 'part'), _network(tf_keras, 4, 'part')]

      def call(self, inputs):
        return self.parts[0](inputs) + self.parts[1](inputs)

    layer = Twice()
    layer(np.zeros([1, 6], np.float32))
    names = [variable_name(variable) for variable in layer_parts.variables_of(layer)]
    self.assertEqual([n for n in names if n.endswith('_1')], [f'{n}_1' for n in names[:4]])


if __name__ == '__main__':
  absltest.main()
