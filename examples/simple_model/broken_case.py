"""Fails on purpose, at `training_steps`: the port's learning rate never changes."""

import tf2verify
from examples.simple_model import equivalence_test, port


class FrozenScheduleCase(equivalence_test.SimpleModelCase):
  def make_tf2_optimizer(self):
    return port.frozen_sgd(self.decay_steps)


if __name__ == '__main__':
  tf2verify.main()
