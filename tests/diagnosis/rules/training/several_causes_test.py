import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.records.diagnosis import About

_FORM = Form('sgd', (('learning_rate', 0.1),))


def causes(tf1, tf2):
  return tuple(causes_of(training_evidence(tf1, tf2, simulated.PAIRS, 1)))


def hint(known, about, variable=''):
  """Returns what the first cause says from which a difference follows."""
  return next((cause.text for cause in known if cause.accounts_for(about, variable)), '')


class CausesTest(absltest.TestCase):
  def test_two_faults_are_two_causes(self):
    tf1 = simulated.run('tf1', _FORM)
    tf2 = simulated.run('tf2', _FORM, rates=[0.2] * 3)
    tf1 = dataclasses.replace(tf1, regularization_total=np.float32(0.5))
    losses = [step.loss - np.float32(0.5) for step in tf1.steps]
    known = causes(tf1, simulated.with_steps(tf2, loss=losses))
    self.assertLen(known, 2)
    self.assertIn('regularization', hint(known, About.LOSS))
    self.assertIn('learning rate', hint(known, About.LEARNING_RATE))

  def test_a_cause_of_one_variable_is_not_that_of_another(self):
    def frozen(gradients):
      return gradients | {'kernel': 0 * gradients['kernel']}

    tf1 = simulated.run('tf1', _FORM, clip=frozen)
    given = [
      tuple(record for record in step.applied_gradients if record.name != 'kernel')
      for step in tf1.steps
    ]
    tf1 = simulated.with_steps(tf1, applied_gradients=given)
    known = causes(tf1, simulated.run('tf2', _FORM))
    found = [hint(known, About.UPDATE, name) for name in simulated.NAMES]
    self.assertEqual(found[0], '')
    self.assertIn('does not update kernel', found[1])

  def test_the_same_runs_have_no_cause(self):
    known = causes(simulated.run('tf1', _FORM), simulated.run('tf2', _FORM))
    self.assertEqual(known, ())


if __name__ == '__main__':
  absltest.main()
