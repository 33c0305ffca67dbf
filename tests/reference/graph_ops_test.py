"""Tests of what tensors and ops of a graph depend on."""

import tensorflow as tf
from absl.testing import absltest

from tf2verify.reference.graph_ops import ops_behind, variables_behind

v1 = tf.compat.v1


class GraphVariablesBehindTest(absltest.TestCase):
  def test_names_the_variables(self):
    with tf.Graph().as_default():
      one, other = v1.get_variable('one', [2]), v1.get_variable('other', [2])
      v1.get_variable('unused', [2])
      self.assertEqual(variables_behind(tf.nn.l2_loss(one)), ['one'])
      self.assertEqual(variables_behind(tf.reduce_sum(other * one)), ['one', 'other'])

  def test_reference_variables_too(self):
    with tf.Graph().as_default():
      one = v1.get_variable('one', [2], use_resource=False)
      self.assertEqual(variables_behind(tf.nn.l2_loss(one)), ['one'])

  def test_an_activity_regularization_counts_as_reading_none(self):
    with tf.Graph().as_default():
      fed = v1.placeholder(tf.float32, [2])
      activity = tf.nn.l2_loss(fed * v1.get_variable('one', [2]))
      self.assertEqual(variables_behind(activity), [])


class OpNamesBehindTest(absltest.TestCase):
  def test_ops_of_the_computation_but_not_of_initial_values(self):
    with tf.Graph().as_default():
      start = tf.random.normal([2], name='start')
      noise = tf.random.normal([2], name='noise')
      output = v1.get_variable('one', initializer=start) + noise
      names = ops_behind([output])
    self.assertIn(noise.op.name, names)
    self.assertNotIn(start.op.name, names)


if __name__ == '__main__':
  absltest.main()
