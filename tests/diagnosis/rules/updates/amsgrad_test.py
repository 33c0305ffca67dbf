import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.updates.amsgrad import amsgrad
from tf2verify.records.training import Slot

_FORM = Form('sgd', (('learning_rate', 0.1),))


def run(side, greatest=None, moment=0.5):
  """Returns a run whose kernel has a second moment, and the greatest one so far."""
  values = {'second moment': moment, 'greatest second moment': greatest}
  slots = tuple(
    Slot(role, 'kernel', f'kernel/{role}', np.full((3, 2), value, np.float32))
    for role, value in values.items()
    if value is not None
  )
  return simulated.with_steps(simulated.run(side, _FORM), slots=[slots] * 3)


def cause(tf1, tf2):
  return amsgrad(training_evidence(tf1, tf2, simulated.PAIRS, 2))


class AmsGradTest(absltest.TestCase):
  def test_in_the_port(self):
    found = cause(run('tf1'), run('tf2', greatest=0.6))
    self.assertIn('the port is AMSGrad', found.text)
    self.assertIn('amsgrad=False', found.text)
    self.assertEqual(found.variables, ('kernel',))

  def test_in_tf1(self):
    self.assertIn('pass amsgrad=True', cause(run('tf1', greatest=0.6), run('tf2')).text)

  def test_moments_that_only_grow_explain_nothing(self):
    self.assertIsNone(cause(run('tf1'), run('tf2', greatest=0.5)))

  def test_on_both_sides_or_on_none(self):
    self.assertIsNone(cause(run('tf1', greatest=0.6), run('tf2', greatest=0.6)))
    self.assertIsNone(cause(run('tf1'), run('tf2')))


if __name__ == '__main__':
  absltest.main()
