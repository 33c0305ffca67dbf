"""Tests of tf2verify.sides.graphs.rewriting.apart_lists."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.graphs.graph_defs.sessions import imported
from tf2verify.sides.graphs.rewriting.unrolled_loops import take_apart

v1 = tf.compat.v1
_ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def _placeholder():
  return v1.placeholder(tf.float32, [4, 3], 'rows')


class ApartListsTest(absltest.TestCase):
  def apart(self, build):
    """Returns the types of operations of a graph taken apart, which yields the same as before."""
    graph = tf.Graph()
    with graph.as_default():
      tf.identity(build(), 'result')
    graph_def = graph.as_graph_def()

    def evaluate(tensors):
      with v1.Session(graph=imported(graph_def)) as session:
        return session.run(list(tensors), {'rows:0': _ROWS})

    expected = evaluate(['result:0'])[0]
    take_apart(graph_def, evaluate, in_parts=False)
    np.testing.assert_array_equal(evaluate(['result:0'])[0], expected)
    return [node.op for node in graph_def.node]

  def test_rows_that_are_read_and_results_that_are_stacked(self):
    types = self.apart(lambda: tf.map_fn(lambda row: row * 2.0, _placeholder()))
    self.assertEqual(types.count('GatherV2'), 4)
    self.assertEqual(types.count('Pack'), 1)
    self.assertNotIn('TensorListGetItem', types)
    self.assertNotIn('TensorListStack', types)

  def test_element_that_was_written_is_read(self):
    def build():
      rows = _placeholder()
      made = tf.TensorArray(tf.float32, 4, element_shape=(3,), clear_after_read=False)
      made = made.write(0, rows[0])

      def body(n, made):
        return n + 1, made.write(n, made.read(n - 1) + rows[n])

      return tf.while_loop(lambda n, _: n < 4, body, (1, made))[1].stack()

    types = self.apart(build)
    self.assertNotIn('TensorListGetItem', types)
    self.assertNotIn('TensorListStack', types)

  def test_element_that_is_written_twice(self):
    def build():
      made = tf.TensorArray(tf.float32, 2, element_shape=(3,))
      rows = _placeholder()

      def body(n, made):
        return n + 1, made.write(n // 2, rows[n])

      return tf.while_loop(lambda n, _: n < 4, body, (0, made))[1].stack()

    self.assertNotIn('TensorListStack', self.apart(build))

  def test_rows_in_another_order(self):
    def build():
      rows = _placeholder()
      array = tf.TensorArray(tf.float32, 4).unstack(rows)
      made = tf.TensorArray(tf.float32, 4, element_shape=(3,))

      def body(n, made):
        return n + 1, made.write(3 - n, array.read(n))

      return tf.while_loop(lambda n, _: n < 4, body, (0, made))[1].stack()

    self.assertNotIn('TensorListStack', self.apart(build))

  def test_list_with_elements_that_nothing_wrote_stays(self):
    def build():
      made = tf.TensorArray(tf.float32, 4, element_shape=(3,))
      rows = _placeholder()

      def body(n, made):
        return n + 1, made.write(n, rows[n])

      return tf.while_loop(lambda n, _: n < 3, body, (0, made))[1].stack()

    self.assertIn('TensorListStack', self.apart(build))


if __name__ == '__main__':
  absltest.main()
