import dataclasses

import numpy as np
from absl.testing import absltest

from tests.stages.training.causes import simulated
from tf2verify.numerics.update_rules import Form
from tf2verify.records.difference import Aspect, Difference
from tf2verify.stages.training import causes as training_causes
from tf2verify.stages.training.causes.cause import About

_FORM = Form('sgd', (('learning_rate', 0.1),))
_UPDATE = Difference('update', 'kernel', Aspect.VALUES)


def causes(tf1, tf2):
  return training_causes.causes(tf1, tf2, simulated.PAIRS, 1)


class CausesTest(absltest.TestCase):
  def test_two_faults_are_two_causes(self):
    tf1 = simulated.run('tf1', _FORM)
    tf2 = simulated.run('tf2', _FORM, rates=[0.2] * 3)
    tf1 = dataclasses.replace(tf1, regularization_total=np.float32(0.5))
    losses = [step.loss - np.float32(0.5) for step in tf1.steps]
    known = causes(tf1, simulated.with_steps(tf2, loss=losses))
    self.assertLen(known, 2)
    loss = Difference('loss', '', Aspect.VALUES)
    explained = training_causes.explained(loss, About.LOSS, '', known)
    self.assertIn('regularization', explained.hint)
    rate = Difference('learning rate', '', Aspect.VALUES)
    explained = training_causes.explained(rate, About.LEARNING_RATE, '', known)
    self.assertIn('learning rate', explained.hint)

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
    found = [
      training_causes.explained(_UPDATE, About.UPDATE, name, known).hint for name in simulated.NAMES
    ]
    self.assertEqual(found[0], '')
    self.assertIn('does not move kernel', found[1])

  def test_the_same_runs_have_no_cause(self):
    known = causes(simulated.run('tf1', _FORM), simulated.run('tf2', _FORM))
    self.assertEqual(known, ())
    self.assertEqual(training_causes.explained(_UPDATE, About.UPDATE, 'kernel', known), _UPDATE)


if __name__ == '__main__':
  absltest.main()
