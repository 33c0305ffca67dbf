"""Benchmarks that stand in for functions of the package still fit them."""

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from benchmarks import noise

v1 = tf.compat.v1


def _weights():
  return v1.get_variable('kernel', (64, 2))


class _Port(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return tf.reduce_sum(inputs[:, :, None] * _weights(), 1)


def _rounded_case():
  class RoundedCase(tf2verify.EquivalenceCase):
    """Both sides compute the same and round differently; it declares no losses."""

    def build_tf1_graph(self, inputs, training):
      return tf.matmul(inputs, _weights())

    def make_tf2_layer(self):
      return _Port()

    def make_inputs(self):
      return tf2verify.normal_inputs((4, 64))

  return RoundedCase


class NoiseTest(absltest.TestCase):
  def test_differences_of_rounding_are_measured(self):
    measured = noise.example(_rounded_case(), exact=True)
    self.assertGreater(measured.runs, 0)
    self.assertIn('| RoundedCase |', noise.row('RoundedCase', measured))


if __name__ == '__main__':
  absltest.main()
