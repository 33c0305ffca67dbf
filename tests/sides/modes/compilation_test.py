from unittest import mock

import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.modes.compilation import GraphOps, untried, without_kernel


def _ops(function, *arguments):
  return GraphOps(tf.function(function).get_concrete_function(*arguments).graph)


class GraphOpsTest(absltest.TestCase):
  def test_operations_of_functions_that_are_called(self):
    inner = tf.function(tf.sinh)
    found = _ops(lambda net: tf.cosh(inner(net)), tf.ones([2]))
    self.assertContainsSubset({'Cosh', 'Sinh', 'PartitionedCall'}, found.types)
    self.assertGreater(found.count, len(found.types))

  def test_operations_in_loops(self):
    def loop(net):
      return tf.while_loop(lambda _: True, tf.sinh, [tf.cosh(net)], maximum_iterations=2)

    found = _ops(loop, tf.ones([2]))
    self.assertIn('Sinh', found.types_in_loops)
    self.assertNotIn('Cosh', found.types_in_loops)
    self.assertIn('Cosh', found.types)

  def test_function_called_in_a_loop_and_outside(self):
    inner = tf.function(tf.sinh)

    def loop(net):
      return tf.while_loop(lambda _: True, inner, [inner(net)], maximum_iterations=2)

    self.assertIn('Sinh', _ops(loop, tf.ones([2])).types_in_loops)


class UntriedTest(absltest.TestCase):
  def test_an_older_tensorflow(self):
    for version in ('2.16.2', '2.20.0'):
      with mock.patch.object(tf, '__version__', version):
        self.assertIn(f'and this is {version}; name', untried())

  def test_those_that_were_tried(self):
    for version in ('2.21.0', '2.22.0-rc1'):
      with mock.patch.object(tf, '__version__', version):
        self.assertEqual(untried(), '')


class WithoutKernelTest(absltest.TestCase):
  def test_missing(self):
    self.assertEqual(without_kernel({'MatMul', 'AsString', 'Placeholder'}), ('AsString',))

  def test_none_missing(self):
    self.assertEqual(without_kernel({'MatMul', 'Const', 'While'}), ())


if __name__ == '__main__':
  absltest.main()
