"""Tests of tf2verify.sides.graphs.variables.dataflow."""

import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.graphs.variables.dataflow import variables_behind_each


class VariablesBehindEachTest(absltest.TestCase):
  def test_names_the_variables_of_each_result(self):
    one, other = tf.Variable([1.0]), tf.Variable([2.0])
    activity = tf.constant(3.0)
    found = variables_behind_each(
      lambda: [tf.nn.l2_loss(one), tf.reduce_sum(one * other), activity],
      [(one, 'one'), (other, 'other')],
    )
    self.assertEqual(found, [('one',), ('one', 'other'), ()])


if __name__ == '__main__':
  absltest.main()
