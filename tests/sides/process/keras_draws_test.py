"""Keras draws by the seeds of the scope, and what a user calls has the seed that is written."""

import keras
import numpy as np
import tensorflow as tf
import tf_keras
from absl.testing import absltest

from tf2verify.sides.process import randomness

_DRAWS = (
  lambda seed: keras.random.uniform((3,), seed=seed),
  lambda seed: keras.random.normal((3,), mean=1.0, stddev=2.0, seed=seed),
  lambda seed: keras.random.truncated_normal((3,), seed=seed),
  lambda seed: keras.random.dropout(tf.ones([3, 4]), 0.4, seed=seed),
)
_OF_TENSORFLOW = (
  lambda: tf.random.uniform((3,)),
  lambda: tf.random.normal((3,), mean=1.0, stddev=2.0),
  lambda: tf.random.truncated_normal((3,)),
  lambda: tf.nn.dropout(tf.ones([3, 4]), 0.4),
)


class KerasDrawsTest(absltest.TestCase):
  def test_keras_3_draws_as_a_tf1_graph_does(self):
    for mode in (randomness.CONSTANT, randomness.NUM_RANDOM_OPS):
      with randomness.seeded(mode):
        ours = [draw(seed=7) for draw in _DRAWS]
      with randomness.seeded(mode):
        expected = [draw() for draw in _OF_TENSORFLOW]
      for one, other in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(one, other)

  def test_keras_2_only_where_it_is_asked_for(self):
    glorot = tf_keras.initializers.GlorotUniform
    with randomness.seeded(randomness.CONSTANT):
      own = glorot()((3, 2))
    with randomness.seeded(randomness.CONSTANT, as_keras3=True):
      first = glorot()((3, 2))
    with randomness.seeded(randomness.CONSTANT):
      second = keras.initializers.GlorotUniform()((3, 2))
    np.testing.assert_array_equal(first, second)
    self.assertFalse(np.array_equal(own, first))

  def test_a_users_own_stateless_op_keeps_its_seed(self):
    expected = tf.random.stateless_uniform((3,), seed=(1, 2))
    with randomness.seeded(randomness.CONSTANT):
      np.testing.assert_array_equal(tf.random.stateless_uniform((3,), seed=(1, 2)), expected)

  def test_all_is_as_it_was_afterwards_also_after_an_error(self):
    before = self.functions()
    with self.assertRaises(ZeroDivisionError), randomness.seeded(randomness.CONSTANT):
      self.assertNotEqual(self.functions(), before)
      raise ZeroDivisionError
    self.assertEqual(self.functions(), before)

  def functions(self):
    homes = (tf, tf.compat.v2)
    return [
      *(home.random.stateless_uniform for home in homes),
      *(home.random.stateless_normal for home in homes),
      *(home.random.stateless_truncated_normal for home in homes),
      *(home.random.stateless_categorical for home in homes),
      *(home.nn.experimental.stateless_dropout for home in homes),
      keras.random.SeedGenerator.next,
    ]

  def test_the_state_of_a_seed_generator_is_left_alone(self):
    seeds = keras.random.SeedGenerator(3)
    before = seeds.state.numpy()
    with randomness.seeded(randomness.CONSTANT):
      keras.random.uniform((2,), seed=seeds)
    np.testing.assert_array_equal(seeds.state.numpy(), before)


if __name__ == '__main__':
  absltest.main()
