"""Which loss a step of the port tells, where gradients are known and where they are not."""

import dataclasses

import numpy as np
from absl.testing import absltest

from tests.stages.training.steps.quantities_test import START, run, step
from tf2verify.records.observation import TensorRecord
from tf2verify.stages.training.steps.told_losses import Told, told

NAMES = (('w', 'w'),)
PENALTY = np.asarray(0.5, np.float32)


def both(port_gradient, gradient=(2.0, -1.0)):
  """Returns runs of which the port tells the loss without penalties."""
  records = [
    TensorRecord('w', None if value is None else np.asarray(value, np.float32))
    for value in (gradient, port_gradient)
  ]
  one = run(step(1, gradients=(records[0],), loss=np.asarray(3.5, np.float32)))
  other = run(step(1, gradients=(records[1],), loss=np.asarray(3.0, np.float32)), side='tf2')
  return dataclasses.replace(one, regularization_total=PENALTY), other


class ToldTest(absltest.TestCase):
  def test_penalties_that_are_differentiated(self):
    self.assertIs(told(*both((2.0, -1.0)), NAMES), Told.UNREGULARIZED)

  def test_penalties_that_are_left_out(self):
    factor = 2.0 * float(PENALTY) / float(np.sum(START * START))
    left_out = np.asarray((2.0, -1.0)) - factor * START
    self.assertIs(told(*both(left_out), NAMES), Told.TOTAL)

  def test_penalties_that_are_small_beside_the_gradients(self):
    """Each element rounds in its own way, so that their sum is less than that of all bounds."""
    random = np.random.RandomState(0)
    start = random.standard_normal(10_000).astype(np.float32)
    large = (1e3 * random.standard_normal(start.size)).astype(np.float32)
    rounded = large + np.spacing(large) * random.choice((-1, 1), start.size)
    factor = 2.0 * float(PENALTY) / float(np.sum(start * start))
    for port, expected in ((rounded, Told.UNREGULARIZED), (rounded - factor * start, Told.TOTAL)):
      one, other = both(port.astype(np.float32), large)
      before = (TensorRecord('w', start),)
      one = dataclasses.replace(one, values_before=before)
      with self.subTest(expected=expected):
        self.assertIs(told(one, other, NAMES), expected)

  def test_gradients_that_nobody_knows_show_nothing(self):
    self.assertIs(told(*both(None, None), NAMES), Told.TOTAL)
    self.assertIs(told(*both(None), NAMES), Told.TOTAL)


if __name__ == '__main__':
  absltest.main()
