import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.records.observation import RandomDraw
from tf2verify.sides.process import loop_draws, randomness

_DRAWS = frozenset({('RandomUniform', 4), ('RandomStandardNormal', 4), ('TruncatedNormal', 4)})


class NumbersTest(absltest.TestCase):
  def test_they_are_spread_over_the_distribution(self):
    uniform = loop_draws.numbers('RandomUniform', 1000)
    self.assertBetween(uniform.min(), 0.0, 0.01)
    self.assertBetween(uniform.max(), 0.99, 1.0)
    self.assertAlmostEqual(uniform.mean(), 0.5, delta=0.01)
    normal = loop_draws.numbers('RandomStandardNormal', 1000)
    self.assertAlmostEqual(normal.std(), 1.0, delta=0.02)
    # Of a normal distribution that is cut off at two standard deviations.
    truncated = loop_draws.numbers('TruncatedNormal', 1000)
    self.assertLess(np.abs(truncated).max(), 2.0)
    self.assertAlmostEqual(truncated.std(), 0.8796, delta=0.02)


class AnswersTest(absltest.TestCase):
  def draw(self):
    return tf.random.uniform([2, 4]).numpy(), tf.random.normal([3, 4]).numpy()

  def test_known_draws_are_answered(self):
    with loop_draws.known(_DRAWS), randomness.seeded(randomness.NUM_RANDOM_OPS) as scope:
      first, again = self.draw(), self.draw()
      truncated = tf.random.truncated_normal([4])
    for one, other in zip(first, again, strict=True):
      np.testing.assert_array_equal(one, other)
      np.testing.assert_array_equal(one, np.broadcast_to(one[0], one.shape))
    np.testing.assert_allclose(truncated, loop_draws.numbers('TruncatedNormal', 4), rtol=1e-6)
    self.assertLen(scope.answers.answered, 5)
    # An answered draw takes no seed from those that follow.
    self.assertEqual(scope.tool.operation_seed, 0)

  def test_others_are_drawn(self):
    with loop_draws.known(_DRAWS), randomness.seeded(randomness.NUM_RANDOM_OPS) as scope:
      self.assertNotAllEqual(tf.random.uniform([2, 5]))
      tf.random.uniform([2, 4], maxval=3, dtype=tf.int32)
      tf.random.uniform([])
    self.assertEmpty(scope.answers.answered)
    self.assertEqual(scope.tool.operation_seed, 3)

  def assertNotAllEqual(self, rows):
    self.assertFalse(np.array_equal(rows[0], rows[1]))

  def test_initial_values_are_drawn(self):
    with loop_draws.known(_DRAWS), randomness.seeded(randomness.CONSTANT):
      variable = tf.Variable(lambda: tf.random.uniform([2, 4]))
    self.assertNotAllEqual(variable.numpy())

  def test_nothing_is_left_behind(self):
    seeded = randomness.seeded(randomness.CONSTANT)
    with self.assertRaises(KeyError), loop_draws.known(_DRAWS), seeded:
      raise KeyError('planted')
    with randomness.seeded(randomness.CONSTANT) as scope:
      self.draw()
    self.assertEmpty(scope.answers.answered)

  def test_what_draws_are_known_by(self):
    draws = [RandomDraw('RandomUniform', shape, None) for shape in ((2, 4), (4,), (), (2, None))]
    self.assertEqual(loop_draws.of(draws), {('RandomUniform', 4)})


if __name__ == '__main__':
  absltest.main()
