"""Objects of the user's that train well and raise when they are asked about themselves."""

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.sides.trained_sides import Trained
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
keras = tf.keras.optimizers
STAGE = 'training_steps'
RATE = 0.05


class Schedule(keras.schedules.LearningRateSchedule):
  """Without a `get_config`."""

  def __init__(self, rate=RATE):
    self.rate = rate

  def __call__(self, step):
    return self.rate * 0.5 ** tf.cast(step, tf.float32)


class NoConfig(keras.SGD):
  def get_config(self):
    raise ValueError('not for this one')


class NoConfigLegacy(keras.legacy.SGD):
  def get_config(self):
    raise OSError('not for this one')


class HiddenRate(v1.train.GradientDescentOptimizer):
  @property
  def learning_rate(self):
    raise RuntimeError('not for this one')

  @property
  def _lr(self):
    raise KeyError('nor this')


class RaisingObjectsTest(LadderTestCase):
  def case(self, make, rate):
    class Case(Trained):
      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(rate())

      def make_tf2_optimizer(self):
        return make()

    return Case

  def test_schedule_without_config(self):
    def decayed():
      step = tf.cast(v1.train.get_or_create_global_step(), tf.float32)
      return RATE * 0.5**step

    for make in (keras.SGD, keras.legacy.SGD):
      self.assert_passes(self.case(lambda m=make: m(Schedule()), decayed), STAGE)
      wrong = self.case(lambda m=make: m(Schedule(2 * RATE)), decayed)
      self.assert_first_failure(wrong, STAGE, 'learning rate')

  def test_optimizers_that_tell_nothing(self):
    for make in (NoConfig, NoConfigLegacy, HiddenRate):
      right = self.case(lambda m=make: m(RATE), lambda: RATE)
      self.assert_passes(right, STAGE)
      wrong = tf2verify.verify(self.case(lambda m=make: m(2 * RATE), lambda: RATE), stages=[STAGE])
      self.assertIs(wrong.stages[-1].status, tf2verify.Status.FAILED, wrong.to_text())


if __name__ == '__main__':
  absltest.main()
