"""Tests of tf2verify.sides.graphs.rewriting.unrolled_loops."""

import unittest.mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.stages.losses.loss_lines_test import line_of
from tf2verify.sides.graphs.graph_defs.inlining import operation
from tf2verify.sides.graphs.graph_defs.sessions import imported
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.graphs.rewriting import unrolled_loops
from tf2verify.sides.graphs.rewriting.unrolled_loops import with_unrolled_loops

v1 = tf.compat.v1


def _powers(x, n):
  """Returns x to the power of n + 1, and the sum of the powers on the way."""

  def body(i, power, total):
    power = power * x
    return i + 1, power, total + power

  _, power, total = tf.while_loop(lambda i, *_: i < n, body, (0, x, 0.0), name='powers')
  return power, total


class UnrolledLoopsTest(absltest.TestCase):
  def unrolled(self, build, feeds):
    """Returns a graph, its loops unrolled; asserts that it yields `result:0` as before."""
    self.graph = tf.Graph()
    with self.graph.as_default():
      tf.identity(build(), 'result')
    graph_def = self.graph.as_graph_def()

    def evaluate(tensors):
      with v1.Session(graph=imported(graph_def)) as session:
        session.run([op for op in session.graph.get_operations() if op.name.endswith('/Assign')])
        return session.run(list(tensors), feeds)

    expected = evaluate(['result:0'])[0]
    with_unrolled_loops(graph_def, evaluate)
    np.testing.assert_allclose(evaluate(['result:0'])[0], expected, rtol=1e-6)
    return graph_def

  def types(self, graph_def):
    return [node.op for node in graph_def.node]

  def test_rounds_stand_in_the_place_of_a_loop(self):
    def build():
      x, n = v1.placeholder(tf.float32, [], 'x'), v1.placeholder(tf.int32, [], 'n')
      return tf.stack(_powers(x, n))

    for n in (0, 1, 4):
      with self.subTest(rounds=n):
        graph_def = self.unrolled(build, {'x:0': 1.5, 'n:0': n})
        self.assertNoCommonElements(set(self.types(graph_def)), set(unrolled_loops.LOOPS))
        names = [node.name for node in graph_def.node]
        of_power = [name for name in names if '/mul' in name]
        self.assertEqual(of_power, [f'powers/round_{number}/mul_0' for number in range(n)])
        self.assertIn('powers', names)  # to be asked for by its name

  def test_operation_of_a_round_has_the_line_that_made_it(self):
    graph_def = self.unrolled(lambda: tf.stack(_powers(tf.constant(2.0), 3)), {})
    self.assertIn('powers/round_2/mul_0', [node.name for node in graph_def.node])
    line = user_source(operation(self.graph, 'powers/round_2/mul_0'))
    assert line is not None
    self.assertEqual(line.line, line_of(_powers, 'power = power * x'))

  def test_loop_within_a_loop_that_reads_a_variable(self):
    def build():
      w = v1.get_variable('w', initializer=1.25, use_resource=True)

      def outer(i, net):
        return i + 1, tf.tanh(_powers(net, 2)[0] * w)

      return tf.while_loop(lambda i, _: i < 2, outer, (0, tf.constant(0.5)), name='outer')[1]

    graph_def = self.unrolled(build, {})
    self.assertNoCommonElements(set(self.types(graph_def)), set(unrolled_loops.LOOPS))
    self.assertIn('outer/round_1/powers/round_0/mul_0', [node.name for node in graph_def.node])

  def test_what_draws_or_writes_or_is_not_counted_stays(self):
    def drawing():
      def body(i, x):
        return i + 1, x + 0.0 * tf.random.uniform([])

      return tf.while_loop(lambda i, _: i < 3, body, (0, 1.0))[1]

    def writing():
      v = v1.get_variable('v', initializer=1.0, use_resource=True)

      def body(i, x):
        with tf.control_dependencies([v.assign(2.0)]):
          return i + 1, x + 1.0

      return tf.while_loop(lambda i, _: i < 3, body, (0, 1.0))[1]

    def uncounted():
      body = tf.function(lambda x: x + 2.0).get_concrete_function(tf.TensorSpec([]))
      cond = tf.function(lambda x: x < 5.0).get_concrete_function(tf.TensorSpec([]))
      return tf.raw_ops.StatelessWhile(input=[tf.constant(1.0)], cond=cond, body=body)[0]

    for build in (drawing, writing, uncounted):
      with self.subTest(build.__name__):
        self.assertLen(set(unrolled_loops.LOOPS) & set(self.types(self.unrolled(build, {}))), 1)

  def test_long_loop_stays(self):
    def build():
      return tf.stack(_powers(tf.constant(0.5), 40))

    with unittest.mock.patch.object(unrolled_loops, '_MOST_OPERATIONS', 50):
      self.assertIn('StatelessWhile', self.types(self.unrolled(build, {})))


if __name__ == '__main__':
  absltest.main()
