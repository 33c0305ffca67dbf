"""The constant fill, where roundings line up."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.sides.fill import GUIDE_CONSTANT, DitheredFill

v1 = tf.compat.v1
_TERMS = 4096
_RUN = "inference, the guide's constant 0.001"


def product(inputs, transposed):
  kernel = v1.get_variable('kernel', [16, _TERMS])
  if transposed:
    return tf.matmul(inputs, kernel, transpose_b=True)
  return tf.matmul(inputs, tf.transpose(kernel))


class Port(tf.keras.layers.Layer):
  def __init__(self, factor):
    super().__init__()
    self._factor = factor

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return product(inputs, False) * self._factor


def verified(factor):
  class Case(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      return product(inputs, True)

    def make_tf2_layer(self):
      return Port(factor)

    def make_inputs(self):
      return np.ones((4, _TERMS), np.float32)

  return tf2verify.verify(Case, stages=['zero_randomness']).stages[-1]


class LinedUpTest(parameterized.TestCase):
  def test_another_order_of_summation(self):
    verdict = verified(1.0)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  @parameterized.parameters(1.0001, 0.9999)
  def test_a_fault_of_one_in_ten_thousand(self, factor):
    verdict = verified(factor)
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
    (found,) = [d for d in verdict.differences if d.run == _RUN]
    self.assertLess(found.array.noise, 0.5 * found.array.greatest_absolute)


class Growing(tf.keras.layers.Layer):
  """Adds its loss anew in every call, and keeps those of the calls before."""

  def __init__(self):
    super().__init__()
    self._dense = tf.keras.layers.Dense(4, name='dense')

  def call(self, inputs):
    net = self._dense(inputs)
    kernel = self._dense.kernel
    self.add_loss(lambda: 0.1 * tf.reduce_sum(kernel * kernel))
    return net * 1.5


class GrowingLossesTest(absltest.TestCase):
  def test_losses_that_become_more_with_every_call_are_no_crash(self):
    class Case(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training):
        penalty = lambda kernel: 0.1 * tf.reduce_sum(kernel * kernel)  # noqa: E731
        return v1.layers.dense(inputs, 4, name='dense', kernel_regularizer=penalty)

      def make_tf2_layer(self):
        return Growing()

      def make_inputs(self):
        return tf2verify.normal_inputs((3, 5))

    verdict = tf2verify.verify(Case, stages=['zero_randomness'])
    self.assertIs(verdict.first_failure.status, tf2verify.Status.FAILED, verdict.to_text())


class DitheredFillTest(absltest.TestCase):
  def test_the_other_way(self):
    up, down = (DitheredFill(1, sign)('w', (9, 500), np.dtype(np.float32)) for sign in (1, -1))
    np.testing.assert_allclose((up + down) / 2, GUIDE_CONSTANT, rtol=1e-7)
    self.assertGreater(np.ptp(up), 0)

  def test_half_a_unit_of_the_sum(self):
    found = DitheredFill(1, 1)('w', (9, 500), np.dtype(np.float32))
    units = np.abs(found - np.float32(GUIDE_CONSTANT)) / np.spacing(np.float32(GUIDE_CONSTANT))
    self.assertBetween(units.max(), 200, 250.5)

  def test_no_integer_and_no_small_format(self):
    self.assertIsNone(DitheredFill(1, 1)('step', (), np.dtype(np.int64)))
    half = DitheredFill(1, 1)('w', (5,), np.dtype(np.float16))
    np.testing.assert_array_equal(half, np.full(5, GUIDE_CONSTANT, np.float16))


if __name__ == '__main__':
  absltest.main()
