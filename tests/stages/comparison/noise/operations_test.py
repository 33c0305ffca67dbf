"""The rounding of operations that what they read does not show."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1


class Squashed(tiny_models.OneModel, abc.ABC):
  """A correction by 1 - tanh² where tanh is close to 1, as in soft actor-critic."""

  least = 1e-6

  def fill_values(self, name, shape, dtype):
    return 0.4 + 0.02 * tf2verify.distinct_values(name, shape, dtype)

  def make_inputs(self):
    return 4.0 + 0.1 * tf2verify.normal_inputs((4, 3))

  def squashed(self, inputs):
    return tf.tanh(tf.matmul(inputs, v1.get_variable('kernel', [3, 3])))

  def model(self, inputs, training):
    return tf.math.log(1 - self.squashed(inputs) ** 2 + 1e-6)

  def port(self, inputs, training):
    return tf.math.log(1 + self.least - tf.square(self.squashed(inputs)))


class OperationNoiseTest(LadderTestCase):
  def test_right_but_rounded_elsewhere(self):
    class Case(Squashed):
      pass

    verdict = self.assert_passes(Case, 'gradients')
    self.assertIn('the rounding of the operations does', verdict.to_text())

  def test_another_constant(self):
    class Case(Squashed):
      least = 3e-6

    self.assert_first_failure(Case, 'zero_randomness', 'output')


if __name__ == '__main__':
  absltest.main()
