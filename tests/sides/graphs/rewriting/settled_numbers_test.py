"""Tests of tf2verify.sides.graphs.rewriting.settled_numbers."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.sides.graphs.graph_defs.sessions import imported, open_session
from tf2verify.sides.graphs.rewriting import settled_numbers

v1 = tf.compat.v1


def _decaying():
  """Returns a graph, its handle of the count, and the names of rate, product and next count."""
  with tf.Graph().as_default() as graph:
    step = v1.get_variable('step', (), tf.int64, v1.zeros_initializer(), use_resource=True)
    weight = v1.get_variable('weight', (2,), initializer=v1.ones_initializer(), use_resource=True)
    now = step.read_value()
    rate = 0.1 / (1.0 + tf.cast(now, tf.float32))
    product = tf.multiply(weight.read_value(), rate, name='product')
    tf.add(now, 1, name='next')
  return graph.as_graph_def(), step.handle.op.name, rate.op.name, product.op.name


class NumbersOfCountsTest(absltest.TestCase):
  def test_the_last_operations_that_follow_from_counts(self):
    graph_def, count, rate, _ = _decaying()
    self.assertEqual(settled_numbers.numbers_of_counts(graph_def, [count], ['next']), [rate])
    self.assertEqual(settled_numbers.numbers_of_counts(graph_def, [], ['next']), [])

  def test_settled(self):
    graph_def, count, rate, product = _decaying()
    settled_numbers.settle_all(graph_def, {rate: np.float32(0.25)})
    with open_session(imported(graph_def)) as session:
      session.run([node.name for node in graph_def.node if node.op == 'AssignVariableOp'])
      np.testing.assert_array_equal(session.run(f'{product}:0'), [0.25, 0.25])
    self.assertEqual(settled_numbers.numbers_of_counts(graph_def, [count], ['next']), [])


class WithoutPartnerTest(parameterized.TestCase):
  @parameterized.parameters(
    ({'rate': 0.1}, {}, ['rate']),
    ({'rate': 0.1, 'decay': 0.5}, {'own': 0.50000001}, ['rate']),
    ({'rate': 0.1}, {'own': 0.1}, []),
    # A schedule with a mistake may be what the other one is to be.
    ({'rate': 0.1}, {'own': 0.2}, []),
  )
  def test(self, tf1, tf2, expected):
    tf1, tf2 = ({name: np.float32(n) for name, n in one.items()} for one in (tf1, tf2))
    self.assertEqual(list(settled_numbers.without_partner(tf1, tf2)), expected)

  def test_counts_are_no_numbers(self):
    self.assertTrue(settled_numbers.is_number(np.float32(2)))
    self.assertTrue(settled_numbers.is_number(np.bool_(True)))
    self.assertFalse(settled_numbers.is_number(np.int64(2)))
    self.assertFalse(settled_numbers.is_number(np.float32([2])))


if __name__ == '__main__':
  absltest.main()
