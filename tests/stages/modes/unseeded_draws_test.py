"""A port that draws by Keras 3 without a seed, from the generator that Keras shares."""

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tf2verify.records import execution_mode as modes

v1 = tf.compat.v1


class _Noisy(keras.Model):
  def __init__(self):
    super().__init__(name='noisy')
    self.head = keras.layers.Dense(3, name='head')

  def call(self, inputs, training=False):
    net = self.head(inputs)
    return net + keras.random.uniform((4, 3)) if training else net


class UnseededDrawsTest(LadderTestCase):
  def test_modes_make_no_variable_of_their_own(self):
    class Case(tf2verify.EquivalenceCase):
      modes_to_run = (modes.FUNCTION, modes.FUNCTIONAL)
      other_sizes = ()

      def build_tf1_graph(self, inputs, training):
        net = v1.layers.dense(inputs, 3, name='head')
        return net + tf.random.uniform((4, 3)) if training else net

      def make_tf2_layer(self):
        return _Noisy()

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 3))

    self.assert_passes(Case, 'execution_modes')


if __name__ == '__main__':
  absltest.main()
