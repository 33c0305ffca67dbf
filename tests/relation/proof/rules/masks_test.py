"""Conditions, masks, exponentials: spellings that are one function, and near ones that are not."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.traced_functions import related, values

X = Y = (4, 6)


def _places(x):
  return tf.cast(tf.math.floormod(10.0 * x, 4.0), tf.int32)


def _ones(x, condition):
  return tf.where(condition, tf.ones_like(x), tf.zeros_like(x))


SAME = (
  (
    'not_equal',
    lambda x: tf.cast(tf.not_equal(_places(x), 1), tf.float32),
    lambda x: tf.cast(tf.logical_not(tf.equal(1, _places(x))), tf.float32),
    [X],
  ),
  (
    'not_twice',
    lambda x: tf.where(tf.logical_not(tf.logical_not(x > 0.3)), x, 2.0 * x),
    lambda x: tf.where(x > 0.3, x, 2.0 * x),
    [X],
  ),
  (
    'present_weights',  # of tf.losses, and written by hand
    lambda x: tf.where(tf.equal(_places(x), 0), tf.zeros_like(x), tf.ones_like(x)),
    lambda x: tf.cast(tf.not_equal(_places(x), 0), tf.float32),
    [X],
  ),
  (
    'chosen_numbers',
    lambda x: tf.where(x > 0.0, tf.fill([4, 6], 5.0), tf.fill([4, 6], 2.0)),
    lambda x: 2.0 + 3.0 * tf.cast(x > 0.0, tf.float32),
    [X],
  ),
  (
    'exchanged_choice',
    lambda x, y: tf.where(tf.not_equal(_places(x), 2), x, y),
    lambda x, y: tf.where(tf.equal(_places(x), 2), y, x),
    [X, Y],
  ),
  (
    'one_hot_of_wide_integers',
    lambda x: tf.one_hot(_places(x), 4),
    lambda x: tf.one_hot(tf.cast(_places(x), tf.int64), 4),
    [X],
  ),
  ('softplus', tf.nn.softplus, lambda x: tf.math.log1p(tf.exp(x)), [X]),
  ('softplus_of_negative', lambda x: tf.nn.softplus(-x), lambda x: tf.nn.softplus(x) - x, [X]),
  ('relu_of_negative', lambda x: tf.nn.relu(-x), lambda x: tf.maximum(0.0, x) - x, [X]),
  (
    'stable_softplus',
    lambda x: tf.math.log1p(tf.exp(-tf.abs(x))) + tf.nn.relu(-x),
    lambda x: tf.nn.softplus(-x),
    [X],
  ),
  (
    'weighted_cross_entropy',
    lambda x, y: tf.nn.weighted_cross_entropy_with_logits(labels=y, logits=x, pos_weight=3.0),
    lambda x, y: 3.0 * y * tf.nn.softplus(-x) + (1.0 - y) * tf.nn.softplus(x),
    [X, Y],
  ),
  (
    'log_sigmoid_of_a_sum',
    lambda x, y: tf.where(x > 0.3, tf.math.log_sigmoid(x - 2.0 * y), y),
    lambda x, y: tf.where(x > 0.3, x - 2.0 * y - tf.nn.softplus(x - 2.0 * y), y),
    [X, Y],
  ),
  (
    'log_of_sigmoid',
    lambda x: tf.math.log(tf.sigmoid(x)) - tf.math.log(1.0 - tf.sigmoid(x)),
    lambda x: tf.math.log_sigmoid(x) + tf.nn.softplus(x),
    [X],
  ),
  ('log_of_exponential', lambda x: tf.math.log(1.0 + tf.exp(x)), tf.nn.softplus, [X]),
  (
    'sigmoid_by_exponential',
    lambda x, y: tf.sigmoid(x - y) * y,
    lambda x, y: y / (1.0 + tf.exp(y - x)),
    [X, Y],
  ),
  ('sigmoid_of_negative', lambda x: 1.0 - tf.sigmoid(-x), tf.sigmoid, [X]),
  (
    'odd_function',
    lambda x, y: tf.tanh(x - 2.0 * y) * tf.sin(y - x),
    lambda x, y: tf.tanh(2.0 * y - x) * tf.sin(x - y),
    [X, Y],
  ),
  ('even_function', lambda x, y: tf.cos(x - y), lambda x, y: tf.cos(y - x), [X, Y]),
  (
    'softplus_in_another_shape',
    lambda x: tf.reshape(tf.math.log1p(tf.exp(-tf.abs(x))), [24]),
    lambda x: tf.nn.softplus(tf.reshape(x, [24])) - tf.nn.relu(tf.reshape(x, [24])),
    [X],
  ),
)
DIFFERENT = (
  (
    'equal_for_not_equal',
    lambda x: tf.cast(tf.equal(_places(x), 1), tf.float32),
    lambda x: tf.cast(tf.not_equal(_places(x), 1), tf.float32),
    [X],
  ),
  (
    'other_number',
    lambda x: tf.where(x > 0.0, tf.ones_like(x), tf.fill([4, 6], 0.5)),
    lambda x: tf.cast(x > 0.0, tf.float32),
    [X],
  ),
  (
    'choice_the_wrong_way_round',
    lambda x, y: tf.where(x > 0.0, x, y),
    lambda x, y: tf.where(tf.logical_not(x > 0.0), x, y),
    [X, Y],
  ),
  (
    'one_hot_of_a_cast_that_cuts_off',
    lambda x: tf.one_hot(_places(x), 4),
    lambda x: tf.one_hot(tf.cast(tf.cast(256 + _places(x), tf.uint8), tf.int64), 4),
    [X],
  ),
  ('softplus_of_negative_itself', lambda x: tf.nn.softplus(-x), tf.nn.softplus, [X]),
  ('log_of_another_number', lambda x: tf.math.log(1.5 + tf.exp(x)), tf.nn.softplus, [X]),
  ('log_of_two_exponentials', lambda x: tf.math.log(1.0 + 2 * tf.exp(x)), tf.nn.softplus, [X]),
  ('sigmoid_for_another_sign', lambda x: 1.0 / (1.0 + tf.exp(x)), tf.sigmoid, [X]),
  ('sigmoid_for_tanh', lambda x: 1.0 / (1.0 + tf.exp(-2 * x)), tf.sigmoid, [X]),
  ('odd_function_itself', lambda x, y: tf.tanh(x - y), lambda x, y: tf.tanh(y - x), [X, Y]),
  ('even_function_of_a_sum', lambda x, y: tf.cos(x + y), lambda x, y: tf.cos(y - x), [X, Y]),
  ('exponential_of_negative', lambda x: tf.exp(-x), tf.exp, [X]),
  ('log1p_for_log', lambda x: tf.math.log1p(tf.exp(x)), lambda x: tf.math.log(tf.exp(x)), [X]),
  (
    'half_of_stable_softplus',
    lambda x: tf.math.log1p(tf.exp(-tf.abs(x))),
    lambda x: tf.nn.softplus(-x),
    [X],
  ),
  (
    'infinite_choice',
    lambda x: tf.where(x > 0.0, tf.fill([4, 6], -np.inf), tf.zeros_like(x)),
    lambda x: tf.cast(x > 0.0, tf.float32) * -np.inf,
    [X],
  ),
)


class MasksTest(parameterized.TestCase):
  @parameterized.named_parameters(*SAME)
  def test_proven(self, one, other, shapes):
    for seed in range(3):
      for first, second in zip(values(one, shapes, seed), values(other, shapes, seed), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)
    self.assertEqual(related(one, other, shapes).tested, ())

  @parameterized.named_parameters(*DIFFERENT)
  def test_not_proven(self, one, other, shapes):
    self.assertIn('output [0]', related(one, other, shapes).tested)


if __name__ == '__main__':
  absltest.main()
