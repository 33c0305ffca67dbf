"""Fails on purpose, at `training_steps`: Keras' RMSprop starts its mean of squares at zero."""

import tf2verify
from examples.slim_rmsprop_ema import equivalence_test, port


class PlainRmspropCase(equivalence_test.SlimRmspropEmaCase):
  def make_tf2_optimizer(self):
    return port.plain_rmsprop()


if __name__ == '__main__':
  tf2verify.main()
