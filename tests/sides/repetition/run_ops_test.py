import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.repetition import run_ops


class EagerOpsTest(absltest.TestCase):
  def test_what_was_read_and_given(self):
    square, total = run_ops.eager_ops(lambda: tf.reduce_sum(tf.square(tf.constant([1.0, 2.0]))))
    self.assertEqual((square.op_type, total.op_type), ('Square', 'Sum'))
    np.testing.assert_array_equal(square.outputs[0], [1.0, 4.0])
    self.assertEqual(square.produced, (False,))  # Python gave it
    self.assertTrue(total.produced[0])
    self.assertEqual(square.source.path, 'tests/sides/repetition/run_ops_test.py')

  def test_functions_run_eagerly_and_only_here(self):
    function = tf.function(lambda x: tf.sin(x) + 1.0)
    ops = run_ops.eager_ops(lambda: function(tf.constant(1.0)))
    self.assertIn('Sin', [op.op_type for op in ops])
    self.assertFalse(tf.config.functions_run_eagerly())

  def test_writes_of_variables(self):
    (make, write) = run_ops.eager_ops(lambda: tf.Variable(2.0))[:2]
    self.assertEqual(make.op_type, 'VarHandleOp')
    self.assertEqual((write.op_type, write.produced), ('AssignVariableOp', (True, False)))

  def test_errors_end_the_recording(self):
    def fail():
      tf.sin(1.0)
      raise KeyError('x')

    with self.assertRaises(KeyError):
      run_ops.eager_ops(fail)
    self.assertFalse(tf.config.functions_run_eagerly())


class OpSourcesTest(absltest.TestCase):
  def test_first_line_of_each_type(self):
    watched = run_ops.OpSources()
    with watched.recording():
      for _ in range(2):
        tf.nn.bias_add(tf.sin(tf.ones([1, 2])), tf.ones([2]))
    tf.nn.softmax_cross_entropy_with_logits(tf.ones([1, 2]), tf.ones([1, 2]))
    self.assertEqual(list(watched.found), ['BiasAdd'])
    self.assertIn('tf.nn.bias_add(', watched.found['BiasAdd'].code)

  def test_in_a_function(self):
    watched = run_ops.OpSources()
    with watched.recording():
      tf.function(lambda: tf.nn.bias_add(tf.ones([1, 2]), tf.ones([2])))()
    self.assertIn('BiasAdd', watched.found)


if __name__ == '__main__':
  absltest.main()
