"""Causes that a case accepts explain a difference whole, or not at all."""

from absl.testing import absltest, parameterized

import tf2verify
from tests import accepting_cases
from tests.port_bugs import (
  arithmetic,
  batch_norm,
  losses,
  normalization,
  optimizers,
  recurrent,
  regularization,
)
from tf2verify.acceptance import declared_causes
from tf2verify.diagnosis.rules import RULES
from tf2verify.errors import CaseDefinitionError
from tf2verify.records import verdict_json
from tf2verify.report.junit import junit_text
from tf2verify.report.report_dir import summary_text


def accepting(base, *names):
  """Returns the case of a wrong port, with causes that it accepts."""
  return type(
    f'Accepting{base.__name__}',
    (base,),
    {'accepted_causes': dict.fromkeys(names, accepting_cases.WHY)},
  )


def climbed(case, last):
  return tf2verify.verify(case, stages=[last])


_PREDICTED = (
  (batch_norm.BiasedVariance, 'biased_variance', 'seeded_constant'),
  (batch_norm.DefaultEpsilon, 'normalization_epsilon', 'seeded_constant'),
  (normalization.KerasEpsilon, 'normalization_epsilon', 'seeded_constant'),
  (arithmetic.LeakyReluByDefault, 'leaky_relu_slope', 'seeded_constant'),
  (regularization.DecayedTwice, 'weight_decay_factor', 'seeded_constant'),
  (recurrent.LstmWithoutForgetBias, 'lstm_forget_bias', 'gradients'),
  (losses.WeightedByKeras, 'loss_denominator', 'loss'),
  (optimizers.AdamWithEpsilonOfKeras, 'optimizer_epsilon', 'training_steps'),
  (accepting_cases.FasterRate, 'learning_rate', 'training_steps'),
)


class AcceptedTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (f'_{cause}_{number}', case, cause, last)
    for number, (case, cause, last) in enumerate(_PREDICTED)
  )
  def test_what_it_explains_whole_passes(self, case, cause, last):
    verdict = climbed(accepting(case, cause), last)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    accepted = [one for stage in verdict.stages for one in stage.accepted]
    self.assertEqual({one.name for one in accepted}, {cause})
    self.assertGreater(accepted[0].differences, 0)
    self.assertIn(accepting_cases.WHY, verdict.to_text())

  def test_each_cause_that_is_predicted_is_tried_here(self):
    able = {rule.name for rule in RULES if rule.predicted_by}
    self.assertEqual(able, {cause for _, cause, _ in _PREDICTED})

  @parameterized.parameters(
    (accepting_cases.VarianceOnePercentOff, 'seeded_constant', 'moving_variance'),
    (accepting_cases.MeanOnePercentOff, 'seeded_constant', 'moving_mean'),
    (accepting_cases.OutputsOnePercentOff, 'seeded_constant', 'output'),
    (accepting_cases.AnotherEpsilon, 'zero_randomness', 'epsilon'),
    (accepting_cases.AnotherRate, 'training_steps', '0.101'),
    (accepting_cases.AnotherLoss, 'loss', '1.01'),
  )
  def test_a_fault_on_top_fails(self, case, stage, words):
    verdict = climbed(case, stage)
    self.assertEqual(verdict.first_failure.stage, stage, verdict.to_text())
    self.assertIs(verdict.first_failure.status, tf2verify.Status.FAILED)
    self.assertIn(words, verdict.to_text())

  def test_what_is_left_over_is_what_fails(self):
    failed = climbed(accepting_cases.MeanOnePercentOff, 'seeded_constant').first_failure
    self.assertEqual({one.subject for one in failed.differences}, {'norm/moving_mean'})
    self.assertEqual([one.name for one in failed.accepted], ['biased_variance'])
    self.assertIn('these differences remain', failed.to_text())

  def test_another_difference_that_comes_first_stays_with_what_is_accepted(self):
    failed = climbed(accepting_cases.OtherStart, 'seeded_constant').first_failure
    self.assertEqual({one.quantity for one in failed.differences}, {'initial value'})
    self.assertEqual([one.name for one in failed.accepted], ['biased_variance'])
    text = ' '.join(failed.to_text().split())
    self.assertIn('conv/kernel starts with 2 times the values of tf1', text)
    self.assertIn('these differences remain with the accepted causes: biased_variance', text)
    self.assertIn('accepted cause weight_decay_factor was not tried', text)

  def test_several_causes_explain_together_and_training_goes_on_from_them(self):
    verdict = tf2verify.verify(
      accepting_cases.BothAccepted, stages=['training_steps', 'checkpoint']
    )
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    trained = next(stage for stage in verdict.stages if stage.stage == 'training_steps')
    self.assertEqual(
      {one.name for one in trained.accepted}, {'biased_variance', 'normalization_epsilon'}
    )
    self.assertIn('compared with TF1 run with', trained.to_text())

  def test_an_average_that_shows_it_in_training_alone(self):
    verdict = climbed(accepting_cases.SmallShare, 'training_steps')
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    (accepted,) = verdict.stages[-1].accepted
    self.assertIn('biased variance', accepted.changed)

  def test_an_average_that_shows_it_in_training_alone_is_named(self):
    failed = climbed(accepting_cases.SmallShareUnnamed, 'training_steps').first_failure
    self.assertEqual(failed.stage, 'training_steps')
    first = failed.diagnosis.causes[0]
    self.assertEqual(first.rule, 'biased_variance_in_steps', failed.to_text())
    self.assertIn("accepted_causes = {'biased_variance': 'the reason'}", first.text)

  def test_another_momentum_is_not_named_so(self):
    failed = climbed(accepting_cases.SmallShareOfAnotherMomentum, 'training_steps').first_failure
    self.assertNotIn('biased_variance_in_steps', {one.rule for one in failed.diagnosis.causes})

  def test_a_fault_of_a_later_step_is_compared_with_what_is_accepted(self):
    failed = climbed(accepting_cases.SmallShareAndLaterRate, 'training_steps').first_failure
    text = ' '.join(failed.to_text().split())
    self.assertEqual({one.run for one in failed.differences}, {'step 2'}, text)
    self.assertEqual([one.name for one in failed.accepted], ['biased_variance'])
    self.assertIn('these differences remain with the accepted causes: biased_variance', text)
    self.assertNotIn('not the cause', text)

  def test_a_fault_that_shows_in_training_alone(self):
    verdict = climbed(accepting_cases.SmallShareOfAnotherMomentum, 'training_steps')
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())

  def test_numbers_of_each_place_are_told(self):
    verdict = climbed(accepting_cases.TwoSlopes, 'seeded_constant')
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    (accepted,) = verdict.stages[-1].accepted
    self.assertIn('0.3 in place of 0.2 (1 place), 0.01 in place of 0.2 (1 pl', accepted.changed)

  def test_a_cause_that_does_not_occur_is_a_note(self):
    said = 'accepted cause biased_variance no longer occurs'
    # A step may show what a single call does not.
    self.assertNotIn(said, climbed(accepting_cases.Unbiased, 'seeded_constant').to_text())
    verdict = climbed(accepting_cases.Unbiased, 'training_steps')
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertIn(said, verdict.to_text())
    self.assertEqual([stage.accepted for stage in verdict.stages], [()] * len(verdict.stages))
    untrained = tf2verify.verify(
      accepting_cases.UnbiasedUntrained, ['seeded_constant', 'training_steps']
    )
    self.assertIn(said, untrained.to_text())


class ReportsTest(absltest.TestCase):
  def test_every_report_shows_it(self):
    verdict = climbed(accepting_cases.BiasedVariance, 'seeded_constant')
    said = 'Keras 3 has it so'
    for text in (
      verdict.to_text(),
      verdict.to_json(),
      summary_text([verdict]),
      junit_text([verdict]),
    ):
      self.assertIn(said, text)
    for text in (repr(verdict), repr(verdict.stages[3]), verdict._repr_html_()):
      self.assertIn('1 accepted cause', text)
    again = verdict_json.case_from_json(verdict.to_json())
    self.assertEqual(again.stages[3].accepted, verdict.stages[3].accepted)


class RefusedTest(parameterized.TestCase):
  @parameterized.parameters(
    ({'biased_varianse': 'why'}, "did you mean 'biased_variance'"),
    ({'stop_gradient': 'why'}, 'does not predict the numbers'),
    ({'biased_variance': ' '}, 'which is not a reason'),
    ('biased_variance', 'it must be a mapping'),
  )
  def test_with_the_reason_and_what_can_be_accepted(self, declared, words):
    with self.assertRaisesRegex(CaseDefinitionError, words) as caught:
      declared_causes(declared, is_recorded=False)
    self.assertIn('biased_variance', str(caught.exception))

  def test_a_recording_cannot_be_run_with_a_change(self):
    with self.assertRaisesRegex(CaseDefinitionError, 'tf1_recording'):
      declared_causes({'biased_variance': 'why'}, is_recorded=True)

  def test_before_anything_is_compared(self):
    class Unknown(accepting_cases.BiasedVariance):
      accepted_causes = {'unknown': 'why'}

    verdict = tf2verify.verify(Unknown, stages=['no_new_variables'])
    self.assertIs(verdict.status, tf2verify.Status.ERROR)
    self.assertIn('causes that can be accepted', verdict.to_text())


if __name__ == '__main__':
  absltest.main()
