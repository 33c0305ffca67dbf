"""Tests of tf2verify.sides.graphs.lines.op_recorder."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.graphs.lines.op_recorder import MAKING, OpRecorder

v1 = tf.compat.v1


class Shimmed(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    with v1.variable_scope('net'):
      kernel = v1.get_variable('kernel', [3, 2])
    return tf.nn.dropout(inputs @ kernel, 0.5)


class OpRecorderTest(absltest.TestCase):
  def test_creations_with_the_users_line(self):
    recorder = OpRecorder()
    with recorder.recording('call 1'):
      Shimmed()(tf.ones([1, 3]))
    (creation,) = recorder.creation_records()
    self.assertEqual(
      (creation.name, creation.shape, creation.creator), ('net/kernel', (3, 2), 'get_variable')
    )
    self.assertIn("v1.get_variable('kernel', [3, 2])", creation.source.code)
    self.assertEqual(creation.source.function, 'call')

  def test_draws_in_order_with_their_variable(self):
    recorder = OpRecorder()
    with recorder.recording('call 1'):
      Shimmed()(tf.ones([1, 3]))
    draws = recorder.random_draws()
    self.assertEqual([draw.variable for draw in draws], ['net/kernel', None])
    self.assertEqual([draw.shape for draw in draws], [(3, 2), (1, 2)])

  def test_the_same_in_a_graph(self):
    recorder = OpRecorder()
    with tf.Graph().as_default(), recorder.recording('the build'):
      kernel = v1.get_variable('net/kernel', [3, 2])
      tf.nn.dropout(tf.ones([1, 3]) @ kernel, 0.5)
    self.assertEqual([draw.variable for draw in recorder.random_draws()], ['net/kernel', None])

  def test_an_attempt_that_tensorflow_refuses_is_recorded(self):
    recorder = OpRecorder()
    with recorder.recording('call 2'), self.assertRaises(ValueError):
      tf.Variable(lambda: 1 / 0 if False else tf.constant([1.0]), shape=[2], name='bad')
    (creation,) = recorder.creation_records()
    self.assertTrue(creation.refused)

  def test_variables_used_beside_the_known_ones(self):
    hidden, known = tf.Variable([1.0], name='hidden'), tf.Variable([2.0], name='known')
    recorder = OpRecorder()
    with recorder.recording('call 1'):
      _ = hidden.read_value() + known.read_value()
    self.assertEqual([v.name for v in recorder.variables_used_beside([known])], ['hidden:0'])
    self.assertEmpty(recorder.variables_used_beside([known, hidden]))

  def test_variables_that_only_making_the_layer_uses_are_none(self):
    recorder = OpRecorder()
    with recorder.recording(MAKING):
      tf.Variable([1.0]).assign_add([1.0])
    self.assertEmpty(recorder.variables_used_beside([]))

  def test_variables_used_inside_functions(self):
    hidden, known = tf.Variable([1.0], name='hidden'), tf.Variable([2.0], name='known')
    step = tf.function(lambda: known.assign_add(tf.function(lambda: 2.0 * hidden)()))
    recorder = OpRecorder()
    with recorder.recording('call 1'):
      step()
    self.assertEqual([v.name for v in recorder.variables_used_beside([known])], ['hidden:0'])

  def test_leaves_no_callback_behind(self):
    recorder = OpRecorder()
    with self.assertRaises(ZeroDivisionError), recorder.recording('call 1'):
      raise ZeroDivisionError
    tf.Variable(tf.random.uniform([2]))
    self.assertEmpty(recorder.creations)
    self.assertEmpty(recorder.random_draws())


class IsRandomOpTest(parameterized.TestCase):
  @parameterized.parameters(
    'RandomUniform', 'TruncatedNormal', 'StatelessRandomUniformV2', 'Multinomial', 'RandomShuffle'
  )
  def test_draws(self, kind):
    self.assertTrue(is_random_op(kind))

  @parameterized.parameters('MatMul', 'StatelessRandomGetKeyCounter', 'StatelessRandomGetAlg')
  def test_draws_nothing(self, kind):
    self.assertFalse(is_random_op(kind))


if __name__ == '__main__':
  absltest.main()
