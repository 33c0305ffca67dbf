"""Tests of tf2verify.relation.proof.graph_differences."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.traced_functions import related
from tf2verify.relation.proof.graph_differences import unlike

X = (4, 6)


def _found(one, other, *shapes):
  return [(one.what, one.values) for one in unlike(related(one, other, shapes), {})]


class UnlikeTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'bound',
      lambda x: tf.clip_by_value(x, -20.0, 2.0) + 1.0,
      lambda x: tf.clip_by_value(x, -5.0, 2.0) + 1.0,
      ('constant', ('-20', '-5')),
    ),
    ('activation', tf.nn.relu, tf.nn.relu6, ('operation', ('Relu', 'Relu6'))),
    (
      'epsilon',
      lambda x: tf.nn.l2_normalize(x, -1, 1e-10),
      lambda x: tf.nn.l2_normalize(x, -1),
      ('constant', ('1e-10', '1e-12')),
    ),
    (
      'slope',
      lambda x: tf.nn.leaky_relu(x, 0.2) * x,
      lambda x: tf.nn.leaky_relu(x, 0.3) * x,
      ('alpha', ('0.2', '0.3')),
    ),
  )
  def test_found(self, one, other, wanted):
    self.assertEqual(_found(one, other, X), [wanted])

  @parameterized.named_parameters(
    ('bound', lambda x: tf.tanh(tf.maximum(x, 1.0)), tf.tanh, ('missing', ('Maximum with 1', ''))),
    (
      'clipping',
      lambda x: tf.tanh(tf.clip_by_value(x, -20.0, 2.0)),
      tf.tanh,
      ('missing', ('Minimum with 2 → Maximum with -20', '')),
    ),
    ('activation', lambda x: tf.exp(tf.nn.relu(x)), tf.exp, ('missing', ('Relu', ''))),
    ('rounding', tf.exp, lambda x: tf.exp(tf.floor(x)), ('extra', ('', 'Floor'))),
    (
      'comparison',
      lambda x: tf.cast(tf.not_equal(tf.cast(x, tf.int32), 0), tf.float32),
      lambda x: tf.cast(tf.cast(x, tf.int32) >= 1, tf.float32),
      ('operation', ('NotEqual with 0', 'GreaterEqual with 1')),
    ),
  )
  def test_on_one_side_only(self, one, other, wanted):
    self.assertEqual(_found(one, other, X), [wanted])

  def test_integers_that_are_greater_than_0_are_at_least_1(self):
    def one(x):
      return tf.cast(tf.cast(x, tf.int32) > 0, tf.float32)

    def other(x):
      return tf.cast(tf.cast(x, tf.int32) >= 1, tf.float32)

    self.assertEqual(_found(one, other, X), [])

  def test_two_after_each_other(self):
    def one(x):
      return tf.nn.leaky_relu(tf.nn.relu(x - 1.0) + x, 0.2)

    def other(x):
      return tf.nn.leaky_relu(tf.nn.relu6(x - 1.0) + x, 0.3)

    self.assertEqual([what for what, _ in _found(one, other, X)], ['operation', 'alpha'])

  def test_nothing_in_what_is_proven(self):
    self.assertEqual(_found(lambda x: x * 0.5, lambda x: x / 2.0, X), [])

  def test_factors_that_make_up_for_each_other(self):
    # Constants of two operations differ, and the graphs are the same function.
    self.assertEqual(
      _found(lambda x: tf.tanh(x * 2.0 * 3.0), lambda x: tf.tanh(x * 3.0 * 2.0), X), []
    )

  def test_silent_where_the_rest_differs_as_well(self):
    # The constants differ, but what reads them is another computation: nothing is known of it.
    def one(x):
      return tf.math.cumsum(tf.maximum(x, 1.0))

    def other(x):
      return tf.math.cumprod(tf.maximum(x, 2.0))

    self.assertEqual(_found(one, other, X), [])


if __name__ == '__main__':
  absltest.main()
