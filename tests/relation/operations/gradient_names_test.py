"""Tests of tf2verify.relation.operations.gradient_names."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.relation.operations.gradient_names import differentiated, is_of_gradient

v1 = tf.compat.v1


class DifferentiatedTest(parameterized.TestCase):
  @parameterized.parameters(
    ('gradients/deep/Square_grad/Mul', 'deep/Square'),
    ('train/gradients_1/deep/Square_grad_1/Mul_1', 'deep/Square'),
    ('gradients_1/gradients/mul_grad/Mul_grad/Mul', 'mul'),
    ('gradient_tape/net_1/h_1/MatMul/MatMul_1', 'net_1/h_1/MatMul'),
    ('port/gradient_tape/mul/Mul', 'mul'),
    ('gradients/AddN_10', ''),
    ('gradients/grad_ys_0', ''),
    ('gradient_tape/Reshape', ''),
    ('deep/Square', ''),
    ('my_gradients/deep/Square', ''),
  )
  def test_names(self, name, expected):
    self.assertEqual(differentiated(name), expected)

  @parameterized.parameters(
    ('gradients/deep/Square_grad/Mul', True),
    ('gradient_tape/LessEqual', True),
    ('port/gradient_tape/net/LessEqual_1', True),
    ('port/LessEqual', False),
    ('my_gradient_tape/LessEqual', False),
  )
  def test_of_gradient(self, name, expected):
    self.assertEqual(is_of_gradient(name), expected)

  def test_names_that_tensorflow_gives(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, (3,))
      with tf.name_scope('model'):
        loss = tf.reduce_sum(tf.square(x, name='squared'))
      with tf.name_scope('train'):
        [first] = tf.gradients(loss, x)
        tf.gradients(tf.reduce_sum(tf.square(first, name='penalty')), x)
    found = {differentiated(op.name) for op in graph.get_operations()}
    self.assertContainsSubset({'model/squared', 'train/penalty'}, found)
    names = {op.name for op in graph.get_operations()}
    self.assertContainsSubset(found - {''}, names)


if __name__ == '__main__':
  absltest.main()
