"""Tests of tf2verify.sides.graphs.numbers_read."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.graphs.numbers_read import (
  CannotBeRead,
  Number,
  NumbersRead,
  in_order,
  value_by_shapes,
)
from tf2verify.tensorflow_internals import graphs

v1 = tf.compat.v1


class ValueByShapesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.enterContext(tf.Graph().as_default())
    self.known = v1.placeholder(tf.float32, (4, 3))

  def test_what_follows_from_known_shapes(self):
    length = tf.shape(self.known)[1]
    self.assertEqual(value_by_shapes(length), 3)
    self.assertEqual(value_by_shapes(tf.maximum(length // 2, 1) + tf.rank(self.known)), 3)
    self.assertEqual(value_by_shapes(tf.size(self.known) > 11), True)
    self.assertEqual(value_by_shapes(tf.constant(2.5)), 2.5)

  def test_what_depends_on_values(self):
    unknown = v1.placeholder(tf.float32, (None, 3))
    for tensor in (
      tf.reduce_sum(self.known),
      tf.shape(unknown)[0],
      tf.random.uniform(()) + tf.cast(tf.shape(self.known)[0], tf.float32),
    ):
      self.assertIsNone(value_by_shapes(tensor))


class NumbersReadTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.graph = graphs.FuncGraph('traced')
    self.evaluated = []

  def _numbers(self, value):
    def evaluate(tensor, feeds):
      self.assertTrue(tf.executing_eagerly())
      self.evaluated.append((tensor, dict(feeds)))
      return np.asarray(value)

    numbers = NumbersRead(self.graph, evaluate)
    numbers.feeds = {'x:0': np.float32([1, 2])}
    return numbers

  def test_a_number_is_evaluated_once(self):
    numbers = self._numbers(np.float32(0.25))
    with self.graph.as_default():
      loss = tf.reduce_sum(v1.placeholder(tf.float32, (2,)))
      self.assertEqual([numbers.value_of(loss), numbers.value_of(loss)], [0.25, 0.25])
    [(tensor, feeds)] = self.evaluated
    self.assertIs(tensor, loss)
    self.assertEqual(list(feeds), ['x:0'])
    self.assertIs(numbers.resolved(Number(0.25)), loss)
    self.assertIsNone(numbers.resolved(Number(0.5)))
    self.assertIs(numbers.resolved(loss), loss)

  def test_what_it_follows_from(self):
    step, rate = tf.Variable(3, dtype=tf.int64), tf.Variable(0.5)
    numbers = self._numbers(1)
    with self.graph.as_default():
      numbers.value_of(step.read_value() % 2)
      numbers.value_of(tf.cast(step.read_value(), tf.float32) * rate)
      numbers.value_of(tf.shape(tf.zeros((2, 5)))[1])  # the same in every run
      numbers.value_of(tf.cast(step.read_value(), tf.float32) * v1.placeholder(tf.float32, ()))
    self.assertEqual([one.of_counts for one in numbers.of_this_run], [True, False, False])

  def test_what_cannot_be_read(self):
    numbers = self._numbers(1)
    with self.graph.as_default():
      vector = v1.placeholder(tf.float32, (2,))
    with tf.Graph().as_default():
      elsewhere = v1.placeholder(tf.float32, ())
    for tensor in (vector, elsewhere):
      with self.assertRaisesRegex(CannotBeRead, 'no number of the graph'):
        numbers.value_of(tensor)
    with self.graph.as_default():
      scalar = tf.reduce_sum(vector)
    with self.assertRaisesRegex(CannotBeRead, 'not known while'):
      NumbersRead(self.graph, None).value_of(scalar)


class InOrderTest(absltest.TestCase):
  def test_a_read_waits_for_the_write_before_it(self):
    count, scale = tf.Variable(1.0), tf.constant(np.full(200, 2.0, np.float32))
    graph = graphs.FuncGraph('traced')
    unused = tf.Variable(5.0)
    with graph.as_default(), graphs.AutomaticControlDependencies():
      before = count.read_value()
      count.assign_add(2.0)
      after = count.read_value() * tf.reduce_max(scale)
      graph.capture(unused.handle)
      copy = in_order(graph)
    written = {op.name for op in copy.get_operations() if op.type == 'AssignAddVariableOp'}
    reads = [op for op in copy.get_operations() if op.type == 'ReadVariableOp']
    waiting = [sorted({one.name for one in op.control_inputs} & written) for op in reads]
    self.assertLen(written, 1)
    self.assertEqual(waiting, [[], sorted(written)])
    self.assertIsNotNone(copy.get_tensor_by_name(after.name))
    self.assertIsNotNone(copy.get_tensor_by_name(before.name))


if __name__ == '__main__':
  absltest.main()
