"""A port whose batch norm writes its variance twice in a call, which is no mistake."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from examples.keras3_conv_net.port import UnbiasedBatchNormalization

v1 = tf.compat.v1


class Normalized(tf2verify.EquivalenceCase, abc.ABC):
  momentum = 0.9

  def build_tf1_graph(self, inputs, training):
    return v1.layers.batch_normalization(inputs, momentum=0.9, training=training, name='norm')

  def make_tf2_layer(self):
    return UnbiasedBatchNormalization(momentum=self.momentum, name='norm')

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5, 5, 3))


class UnbiasedNormTest(absltest.TestCase):
  def test_another_momentum_is_one_cause(self):
    class Case(Normalized):
      momentum = 0.99

    found = tf2verify.verify(Case, stages=['seeded_constant']).first_failure
    self.assertIn('pass momentum=0.9', found.to_text())
    self.assertNotIn('a different number of times', found.to_text())

  def test_right_port_passes(self):
    verdict = tf2verify.verify(type('Case', (Normalized,), {}), stages=['seeded_constant'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
