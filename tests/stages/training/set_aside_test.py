"""Training steps whose arrays are set aside, as those of a large model are."""

import abc
from unittest import mock

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify.numerics import set_aside

v1 = tf.compat.v1
_STAGE = 'training_steps'


class Trained(tiny_models.Affine, abc.ABC):
  rate = 0.1

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.1)

  def make_tf2_optimizer(self):
    return v1.train.AdamOptimizer(self.rate, beta2=self.beta2)

  beta2 = 0.999


class SetAsideTest(absltest.TestCase):
  def _stage(self, **settings):
    """Returns the stage as it is, and with every array in a file, which it was."""
    case = type('Case', (Trained,), settings)
    usual = tf2verify.verify(case, [_STAGE]).stages[-1]
    with (
      mock.patch.object(set_aside, '_LEAST_BYTES', 1),
      mock.patch.object(set_aside, '_WORTH_BYTES', 1),
      mock.patch.object(set_aside, '_in_file', wraps=set_aside._in_file) as in_file,
    ):
      aside = tf2verify.verify(case, [_STAGE]).stages[-1]
    self.assertGreater(sum(len(list(call.args[0])) for call in in_file.call_args_list), 0)
    return usual, aside

  def test_steps_that_agree(self):
    usual, aside = self._stage()
    self.assertIs(aside.status, tf2verify.Status.PASSED, aside.to_text())
    self.assertEqual(aside.compared, usual.compared)

  def test_steps_that_differ_have_the_same_report(self):
    for settings in ({'rate': 0.2}, {'beta2': 0.9}):
      usual, aside = self._stage(**settings)
      self.assertIs(aside.status, tf2verify.Status.FAILED, aside.to_text())
      # All but the first line, which has the seconds.
      texts = [stage.to_text().split('\n', 1)[1] for stage in (usual, aside)]
      self.assertIn('cause', texts[0])
      self.assertEqual(*texts)


if __name__ == '__main__':
  absltest.main()
