"""A slice with another new axis: told as Python writes it, once."""

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class SliceMasksTest(absltest.TestCase):
  def test_keys_and_queries_of_a_mask(self):
    class Port(keras.layers.Layer):
      def build(self, shape):
        self.shift = self.add_weight(shape=(4,), name='shift')

      def call(self, inputs):
        return (inputs + self.shift)[:, :, None] * tf.ones([1, 4, 4])

    class Case(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training):
        return (inputs + v1.get_variable('shift', [4]))[:, None, :] * tf.ones([1, 4, 4])

      def make_tf2_layer(self):
        return Port(name='port')

      variable_names = {'shift': 'port/shift'}

      def make_inputs(self):
        return tf2verify.normal_inputs((3, 4))

    failed = tf2verify.verify(Case, ['zero_randomness']).first_failure
    text = ' '.join(failed.to_text().split())
    (cause,) = failed.diagnosis.causes
    self.assertRegex(cause.text, r'takes \[:, :, None\] in the port[,;] .*\[:, None, :\]')
    self.assertTrue(cause.is_proven, text)
    self.assertNotIn('new_axis_mask', text)


if __name__ == '__main__':
  absltest.main()
