"""Tests of tf2verify.sides.tf2.traces.ways_to_trace."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.tf2.traces.ways_to_trace import Habit, trace
from tf2verify.tensorflow_internals import autograph

_X = np.array([1.0, -2.0, 3.0], np.float32)


def _trace(user, habit):
  """Returns a trace, and how often the code was called for it."""
  calls = []

  def compute(x):
    calls.append(1)
    return {'output': autograph.converted(user)(x)}

  return trace(compute, _X, evaluate=lambda *_: np.float32(1.0), habit=habit), len(calls)


def _types(traced):
  return {op.type for op in traced.graph.get_operations()}


class HabitTest(absltest.TestCase):
  def test_what_is_rewritten_is_rewritten_at_once(self):
    def user(x):
      if tf.reduce_sum(x) > 0:
        x = tf.exp(x)
      return x

    habit = Habit()
    traces = [_trace(user, habit) for _ in range(3)]
    self.assertEqual([calls for _, calls in traces], [3, 1, 1])
    types = [_types(traced) for traced, _ in traces]
    self.assertEqual(types, 3 * [types[0]])
    self.assertNotIn('Exp', types[0])  # in a branch
    self.assertEqual(_trace(user, None)[1], 3)

  def test_numbers_are_read_at_once(self):
    habit = Habit()
    traces = [_trace(lambda x: x * float(x[0].numpy()), habit) for _ in range(2)]
    self.assertEqual([calls for _, calls in traces], [4, 1])
    self.assertEqual([len(traced.numbers_read) for traced, _ in traces], [1, 1])

  def test_numbers_of_shapes_are_read_at_once(self):
    habit = Habit()
    traces = [_trace(lambda x: x * np.float32(tf.size(x).numpy()), habit) for _ in range(2)]
    self.assertEqual([calls for _, calls in traces], [2, 1])
    self.assertFalse(traces[1][0].numbers_read)

  def test_where_other_numbers_are_read_all_ways_are_tried(self):
    reads = [True]

    def user(x):
      scale = x[0].numpy() if reads[-1] else 1.0
      if x[1] > 0:
        x = tf.exp(x)
      return x * scale

    habit = Habit()
    self.assertLen(_trace(user, habit)[0].numbers_read, 2)
    reads.append(False)
    traced, _ = _trace(user, habit)
    self.assertFalse(traced.numbers_read)  # the branch is rewritten, which no number binds
    self.assertEqual(_trace(user, habit)[1], 1)

  def test_what_cannot_be_rewritten_yet_is_tried_again(self):
    made = []

    def user(x):
      if x[0] > 0:
        is_branch = tf.compat.v1.get_default_graph().name != 'port'
        if is_branch and not made:
          raise ValueError('a variable of a branch')
        x = -x
      return x

    habit = Habit()
    self.assertLen(_trace(user, habit)[0].numbers_read, 1)
    made.append(tf.Variable(1.0))
    traced, _ = _trace(user, habit)
    self.assertFalse(traced.numbers_read)
    self.assertTrue(_types(traced) & {'If', 'StatelessIf'})

  def test_a_way_that_works_no_more(self):
    habit = Habit()

    def branching(x):
      if x[0] > 0:
        x = -x
      return x

    _trace(branching, habit)
    traced, calls = _trace(lambda x: x * float(x[0].numpy()), habit)
    self.assertLen(traced.numbers_read, 1)
    self.assertEqual(calls, 5)


if __name__ == '__main__':
  absltest.main()
