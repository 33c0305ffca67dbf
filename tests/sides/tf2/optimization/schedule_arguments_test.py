"""Arguments with which a schedule would be that of the reference."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.diagnosis.rules.updates.later_rates import COUNTS, are_same
from tf2verify.sides.tf2.optimization.schedule_arguments import fitting_arguments
from tf2verify.sides.tf2.optimization.schedules import Schedule
from tf2verify.stages.training.steps.schedules import AskedSchedule

schedules = keras.optimizers.schedules


class Warmup(schedules.LearningRateSchedule):
  """A schedule of one's own, which raises for what is no length."""

  def __init__(self, peak, steps):
    super().__init__()
    self.peak, self.steps = peak, steps

  def __call__(self, step):
    if self.steps < 1:
      raise ValueError('no steps')
    return self.peak * tf.minimum(tf.cast(step, tf.float32) / self.steps, 1.0)


def fitting(port, tf1):
  one, other = (Schedule([keras.optimizers.SGD(rate)]) for rate in (tf1, port))
  return list(fitting_arguments(other, COUNTS, one.rates(COUNTS), are_same))


class FittingTest(absltest.TestCase):
  def test_one_argument(self):
    decay = schedules.PolynomialDecay
    self.assertEqual(
      fitting(decay(3e-3, 10), decay(3e-3, 10, 0.0)), [('end_learning_rate', 1e-4, 0.0)]
    )
    found = fitting(decay(0.1, 50, 0.01, power=2.0), decay(0.1, 50, 0.01, power=1.5))
    self.assertEqual([name for name, _, _ in found], ['power'])
    np.testing.assert_allclose(found[0][2], 1.5)
    found = fitting(Warmup(0.1, 400), Warmup(0.1, 4000))
    self.assertIn(('steps', 400, 4000), found)

  def test_flags(self):
    decay = schedules.ExponentialDecay
    found = fitting(decay(0.1, 7, 0.9), decay(0.1, 7, 0.9, staircase=True))
    self.assertEqual(found, [('staircase', False, True)])

  def test_a_reference_that_tells_no_rates(self):
    asked = AskedSchedule(Schedule([keras.optimizers.SGD(Warmup(0.1, 4))]), lambda n: n, 0)
    self.assertEqual(asked.fitting({}), ())

  def test_two_arguments_at_once_are_none(self):
    decay = schedules.PolynomialDecay
    self.assertEqual(fitting(decay(3e-3, 10), decay(3e-3, 15, 0.0)), [])


if __name__ == '__main__':
  absltest.main()
