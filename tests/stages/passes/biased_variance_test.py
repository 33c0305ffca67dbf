"""Tests of batch norms of Keras 3, which average the biased variance of a batch."""

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1


class _Port(keras.layers.Layer):
  def __init__(self, layers, momentum):
    super().__init__(name='net')
    self.parts = []
    for n in range(layers):
      self.parts.append(keras.layers.Conv2D(4, 3, name=f'conv_{n}'))
      self.parts.append(keras.layers.BatchNormalization(momentum=momentum, name=f'norm_{n}'))

  def call(self, inputs, training=False):
    net = inputs
    for conv, norm in zip(self.parts[::2], self.parts[1::2], strict=True):
      net = norm(keras.ops.tanh(conv(net)), training=training)
    return net


def _case(layers, momentum=0.9):
  class Case(tf2verify.EquivalenceCase):
    training_modes = (True,)

    def build_tf1_graph(self, inputs, training):
      net = inputs
      for n in range(layers):
        net = tf.tanh(v1.layers.conv2d(net, 4, 3, name=f'conv_{n}'))
        net = v1.layers.batch_normalization(net, momentum=0.9, training=training, name=f'norm_{n}')
      return net

    def make_tf2_layer(self):
      return _Port(layers, momentum)

    def make_inputs(self):
      return tf2verify.normal_inputs((3, 8, 8, 2))

  return Case


class BiasedVarianceTest(parameterized.TestCase):
  def failure(self, *arguments):
    failure = tf2verify.verify(_case(*arguments), stages=['seeded_constant']).first_failure
    self.assertIsNotNone(failure)
    return failure

  @parameterized.parameters(1, 2)
  def test_it_is_all_that_differs(self, layers):
    failure = self.failure(layers)
    cause, *_ = failure.diagnosis.causes
    self.assertEqual((cause.rule, cause.is_proven), ('biased_variance', True), failure.to_text())
    self.assertNotIn('still differ', failure.to_text())
    self.assertNotIn('none of the corrections', failure.to_text())

  def test_beside_another_momentum_it_is_not_proven(self):
    failure = self.failure(1, 0.95)
    for cause in failure.diagnosis.causes:
      self.assertNotEqual((cause.rule, cause.is_proven), ('biased_variance', True))


if __name__ == '__main__':
  absltest.main()
