"""Tests of tf2verify.sides.tf1.graphs.idle_draws."""

import types

import tensorflow as tf
from absl.testing import absltest

from tf2verify.records.observation import RandomDraw
from tf2verify.sides.tf1.graphs.idle_draws import idle_draws

v1 = tf.compat.v1


def _is_idle(use):
  """Returns whether a uniform draw that `use` makes something of is found to be idle."""
  with tf.Graph().as_default() as graph:
    drawn = v1.random_uniform([v1.placeholder(tf.int32, []), 2])
    tf.identity(use(drawn) * v1.placeholder(tf.float32, [None, 2]))
    names = [op.name for op in graph.get_operations() if op.type == 'RandomUniform']
  draws = tuple(RandomDraw('RandomUniform', (None, 2), None, op_name=name) for name in names)
  found = idle_draws(types.SimpleNamespace(graph=graph, random_draws=draws))
  return found == frozenset(names)


class IdleDrawsTest(absltest.TestCase):
  def test_masks_that_keep_everything(self):
    for keep in (1.0, 1.5):
      with self.subTest(keep):
        self.assertEqual(_is_idle(lambda u, keep=keep: tf.minimum(tf.floor(keep + u), 1.0)), True)
    self.assertTrue(_is_idle(lambda u: tf.cast(u >= 0.0, tf.float32)))
    self.assertTrue(_is_idle(lambda u: tf.cast(u < 1.0, tf.float32)))

  def test_masks_that_do_not(self):
    for keep in (0.999999, 0.5, 0.0001):
      with self.subTest(keep):
        self.assertFalse(_is_idle(lambda u, keep=keep: tf.floor(keep + u)))
        self.assertFalse(_is_idle(lambda u, keep=keep: tf.cast(u >= 1 - keep, tf.float32)))

  def test_numbers_that_are_used_themselves(self):
    self.assertFalse(_is_idle(lambda u: u))
    self.assertFalse(_is_idle(lambda u: tf.floor(1.0 + u) + u))

  def test_what_turns_back_within_the_range(self):
    self.assertFalse(_is_idle(lambda u: tf.abs(u - 0.5)))
    self.assertFalse(_is_idle(lambda u: tf.maximum(1.0 / (u - 0.5), 5.0)))  # 5 at both ends
    self.assertFalse(_is_idle(lambda u: u * (1.0 - u)))


if __name__ == '__main__':
  absltest.main()
