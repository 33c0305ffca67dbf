"""TF1 divides 0 by 0 at an empty mask, and the port does not."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.records.difference import Aspect

v1 = tf.compat.v1


class Shim(tf.keras.layers.Layer):
  def __init__(self, function):
    super().__init__()
    self._function = function

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return self._function(inputs)


def pooled(divide):
  """A mean over the steps that a mask leaves."""

  def function(inputs):
    net = v1.layers.dense(inputs['x'], 3, name='d', kernel_initializer=v1.ones_initializer())
    mask = inputs['mask'][:, :, None]
    return divide(tf.reduce_sum(net * mask, 1), tf.reduce_sum(mask, 1))

  return function


def mean_of_the_first(inputs):
  return tf.reduce_mean(tf.boolean_mask(v1.layers.dense(inputs['x'], 3, name='d')[0], [False] * 5))


def verified(model, port, stage='zero_randomness', empty=True):
  class Case(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      return model(inputs)

    def make_tf2_layer(self):
      return Shim(port)

    def make_inputs(self):
      mask = np.ones((4, 5), np.float32)
      mask[2] = 0.0 if empty else 1.0
      mask[0, 3:] = 0.0
      return {'x': tf2verify.normal_inputs((4, 5, 2)), 'mask': mask}

  return tf2verify.verify(Case, stages=[stage]).stages[-1]


def times(factor):
  return lambda one, other: factor * tf.math.divide_no_nan(one, other)


class ZeroByZeroTest(parameterized.TestCase):
  @parameterized.parameters('zero_randomness', 'seeded_constant', 'checkpoint')
  def test_a_port_that_mends_it(self, stage):
    verdict = verified(pooled(tf.divide), pooled(tf.math.divide_no_nan), stage)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    said = ' '.join(verdict.blind_spots)
    self.assertIn('tf1 divides 0 by 0 there, at truediv', said)
    self.assertIn('3 of 12 elements of output (the output)', said)
    self.assertIn('(2, 0)', said)

  def test_gradients_that_are_nan_by_that_tell_nothing(self):
    verdict = verified(pooled(tf.divide), pooled(tf.math.divide_no_nan), 'gradients')
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE, verdict.to_text())
    self.assertIn('tf1 divides 0 by 0', ' '.join(verdict.blind_spots))

  @parameterized.parameters(
    (times(2.0), tf.divide),  # a fault elsewhere in the same output
    (tf.divide, tf.math.divide_no_nan),  # the port is the one that divides
  )
  def test_blamed(self, port, model):
    verdict = verified(pooled(model), pooled(port))
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())

  def test_what_else_differs_is_told_without_it(self):
    verdict = verified(pooled(tf.divide), pooled(times(2.0)))
    told = next(d for d in verdict.differences if d.run == 'inference, distinct values')
    self.assertIs(told.aspect, Aspect.VALUES)
    self.assertEqual(told.array.mismatched, 9)
    self.assertIn('3 of 12 elements of output', ' '.join(verdict.blind_spots))

  def test_another_origin_of_nan(self):
    def logarithm(one, other):
      return tf.math.log(-1.0 - tf.abs(one)) + other

    verdict = verified(pooled(logarithm), pooled(lambda one, other: one + other))
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())

  def test_a_logarithm_beside_the_division(self):
    def both(one, other):
      return tf.divide(one, other) + tf.where(one > 0, tf.math.log(-1.0 - tf.abs(one)), 0.0)

    verdict = verified(pooled(both), pooled(tf.math.divide_no_nan))
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())

  def test_no_empty_mask(self):
    verdict = verified(pooled(tf.divide), pooled(tf.math.divide_no_nan), empty=False)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertEmpty(verdict.blind_spots)

  def test_nothing_but_nan_is_inconclusive(self):
    def zero(inputs):
      return 0.0 * tf.reduce_sum(v1.layers.dense(inputs['x'], 3, name='d'))

    verdict = verified(mean_of_the_first, zero)
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE, verdict.to_text())
    self.assertIn('tf1 divides 0 by 0', ' '.join(verdict.blind_spots))


if __name__ == '__main__':
  absltest.main()
