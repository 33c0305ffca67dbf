import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import StepPair, VariableStep, training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form

_FORM = Form('sgd', (('learning_rate', 0.1),))


class EvidenceTest(absltest.TestCase):
  def evidence(self, number=1, **fields):
    tf1, tf2 = (simulated.run(side, _FORM) for side in ('tf1', 'tf2'))
    return training_evidence(tf1, simulated.with_steps(tf2, **fields), simulated.PAIRS, number)

  def test_moves_are_those_of_the_step(self):
    for number in (1, 2):
      for pair in self.evidence(number).moves:
        np.testing.assert_allclose(pair.tf1.update, -0.1 * pair.tf1.gradient, atol=1e-6)
        self.assertFalse(pair.differs)

  def test_only_trained_variables_move(self):
    gradients = [step.gradients[:1] for step in self.evidence().tf1.steps]
    tf1 = simulated.with_steps(
      self.evidence().tf1, gradients=gradients, applied_gradients=gradients
    )
    found = training_evidence(tf1, tf1, simulated.PAIRS, 1)
    self.assertEqual([pair.name for pair in found.moves], ['bias'])

  def test_slots_are_those_before_the_step(self):
    form = Form('momentum', (('momentum', 0.9),))
    tf1 = simulated.run('tf1', form)
    self.assertEqual(training_evidence(tf1, tf1, simulated.PAIRS, 1).moves[0].tf1.slots, {})
    second = training_evidence(tf1, tf1, simulated.PAIRS, 2).moves[0].tf1
    np.testing.assert_array_equal(second.slots['momentum'], tf1.steps[0].gradients[0].value)

  def test_learning_rates(self):
    self.assertEqual(self.evidence().learning_rates(), ([0.1] * 3, [0.1] * 3))
    self.assertIsNone(self.evidence(learning_rate=[0.1, None, 0.1]).learning_rates())


class ExplainsTest(absltest.TestCase):
  pair = StepPair(
    'kernel',
    VariableStep(np.ones(2, np.float32), np.float32([1.001, 1.001]), None, {}),
    VariableStep(np.ones(2, np.float32), np.float32([1.002, 1.001]), None, {}),
  )

  def test_all_of_the_difference(self):
    self.assertTrue(self.pair.explains(np.array([2e-3, 1e-3]), self.pair.tf2.update))

  def test_within_the_rounding_of_the_variable(self):
    self.assertTrue(self.pair.explains(np.array([2e-3, 1e-3 + 5e-7]), self.pair.tf2.update))

  def test_half_of_the_difference_is_none(self):
    self.assertFalse(self.pair.explains(np.array([1.5e-3, 1e-3]), self.pair.tf2.update))

  def test_an_element_that_agreed_has_to_agree(self):
    self.assertFalse(self.pair.explains(np.array([2e-3, 1.1e-3]), self.pair.tf2.update))

  def test_what_is_not_finite_explains_nothing(self):
    self.assertFalse(self.pair.explains(np.array([2e-3, np.nan]), self.pair.tf2.update))


if __name__ == '__main__':
  absltest.main()
