"""Tests of tf2verify.sides.graphs.lines.gradient_lines."""

import tensorflow as tf
from absl.testing import absltest

from tests.stages.losses.loss_lines_test import line_of
from tf2verify.sides.graphs.lines.gradient_lines import with_forward_lines
from tf2verify.sides.graphs.lines.user_sources import user_source

v1 = tf.compat.v1


def _loss(x):
  return tf.reduce_sum(tf.square(x))


def _gradients(x):
  return tf.gradients(_loss(x), x)


class WithForwardLinesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    with tf.Graph().as_default() as self.graph:
      [self.gradient] = _gradients(v1.placeholder(tf.float32, (3,)))

  def test_a_gradient_has_the_line_that_it_is_of(self):
    source = with_forward_lines(self.graph, user_source)(self.gradient.op)
    self.assertEqual(source.line, line_of(_gradients, 'tf.gradients'))
    self.assertEqual(source.gradient_of.line, line_of(_loss, 'tf.square'))
    self.assertStartsWith(source.leading()[0], 'gradient of gradient_lines_test.py:')

  def test_operations_without_one(self):
    source = with_forward_lines(self.graph, user_source)
    self.assertIsNone(source(self.graph.get_operation_by_name('Square')).gradient_of)
    self.assertIsNone(source(self.graph.get_operation_by_name('gradients/grad_ys_0')).gradient_of)
    with tf.Graph().as_default() as part, tf.name_scope('gradients/Square_grad'):
      op = tf.constant(1.0).op
    self.assertIsNone(with_forward_lines(part, user_source)(op).gradient_of)


if __name__ == '__main__':
  absltest.main()
