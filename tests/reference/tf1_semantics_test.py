"""Tests of tf2verify.reference.tf1_semantics: what is put back, and which attempt is shown."""

import tensorflow as tf
from absl.testing import absltest

from tf2verify.reference.tf1_semantics import tf1_semantics, with_either_shape

v1 = tf.compat.v1


class Failed(Exception):
  """What user code that raises becomes."""


def _failing(cause, graph, operations=0):
  with graph.as_default():
    for _ in range(operations):
      tf.constant(0.0)
  raise Failed(str(cause)) from cause


class SemanticsTest(absltest.TestCase):
  def test_tf1_inside_and_tf2_again_after_an_error(self):
    with self.assertRaises(ZeroDivisionError), tf1_semantics(v2_tensorshape=False):
      self.assertFalse(tf.Tensor._USE_EQUALITY)
      self.assertEqual(tf.TensorShape([3])[0].value, 3)
      raise ZeroDivisionError
    self.assertTrue(tf.Tensor._USE_EQUALITY)
    self.assertIsInstance(tf.TensorShape([3])[0], int)

  def test_equality_that_user_code_turns_is_turned_back(self):
    with tf1_semantics(v2_tensorshape=True):
      with tf1_semantics(v2_tensorshape=False):
        v1.enable_tensor_equality()
      self.assertFalse(tf.Tensor._USE_EQUALITY)
      self.assertIsInstance(tf.TensorShape([3])[0], int)


class EitherShapeTest(absltest.TestCase):
  def test_shapes_of_tf2_where_those_of_tf1_do_not_do(self):
    tried = []

    def make(graph, v2_tensorshape):
      tried.append(graph)
      return 'made' if v2_tensorshape else _failing(TypeError('a Dimension'), graph)

    self.assertEqual(with_either_shape(make, Failed), 'made')
    self.assertIsNot(tried[0], tried[1])

  def test_another_mistake_is_not_tried_again(self):
    def make(graph, v2_tensorshape):
      self.assertFalse(v2_tensorshape)
      _failing(ZeroDivisionError('of its own'), graph)

    with self.assertRaisesRegex(Failed, 'of its own'):
      with_either_shape(make, Failed)

  def test_the_attempt_that_got_further_is_shown(self):
    for graph in (None, tf.Graph()):
      for steps, said in (((2, 5), 'tf2'), ((5, 2), 'tf1'), ((3, 3), 'tf1')):

        def make(graph, v2_tensorshape, steps=steps):
          cause = TypeError('tf2' if v2_tensorshape else 'tf1')
          _failing(cause, graph, steps[v2_tensorshape])

        with self.assertRaisesRegex(Failed, said) as caught:
          with_either_shape(make, Failed, graph)
        self.assertIsInstance(caught.exception.__cause__, TypeError)

  def test_collections_of_the_first_attempt_are_emptied(self):
    graph = tf.Graph()
    graph.add_to_collection('losses', 'of the model')

    def make(graph, v2_tensorshape):
      graph.add_to_collection('losses', 'added')
      graph.add_to_collection('more', 'added')
      return None if v2_tensorshape else _failing(AttributeError('value'), graph)

    with_either_shape(make, Failed, graph)
    self.assertEqual(graph.get_collection('losses'), ['of the model', 'added'])
    self.assertEqual(graph.get_collection('more'), ['added'])


if __name__ == '__main__':
  absltest.main()
