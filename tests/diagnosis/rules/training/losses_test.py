import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.training.losses import (
  loss_factor,
  loss_of_next_step,
  penalty_in_gradients,
  regularization_left_out,
  returned_loss,
)

_FORM = Form('sgd', (('learning_rate', 0.1),))


def evidence(tf1, tf2, total=None, trains_alike=False):
  """Of losses; the gradients of the port are others, but where it trains alike."""
  clip = None if trains_alike else lambda found: {n: 3 * g + 1 for n, g in found.items()}
  runs = [
    simulated.with_steps(
      simulated.run(side, _FORM, len(losses), clip=of_side), loss=np.float32(losses)
    )
    for side, losses, of_side in (('tf1', tf1, None), ('tf2', tf2, clip))
  ]
  runs[0] = dataclasses.replace(
    runs[0], regularization_total=None if total is None else np.float32(total)
  )
  return training_evidence(*runs, simulated.PAIRS, 1)


def with_penalty(run, factors, more=0.0):
  """Returns a run whose first gradients have multiples of the variables in them."""
  starts = {record.name: record.value for record in run.values_before}
  first, *others = run.steps
  gradients = tuple(
    dataclasses.replace(
      r, value=(r.value + factors.get(r.name, 0.0) * starts[r.name] + more).astype(np.float32)
    )
    for r in first.gradients
  )
  first = dataclasses.replace(first, gradients=gradients)
  return dataclasses.replace(run, steps=(first, *others))


class PenaltyInGradientsTest(absltest.TestCase):
  def cause(self, factors, port=None, more=0.0):
    one, other = (simulated.run(side, _FORM, 2) for side in ('tf1', 'tf2'))
    one, other = with_penalty(one, factors), with_penalty(other, port or {}, more)
    return penalty_in_gradients(training_evidence(one, other, simulated.PAIRS, 1))

  def test_tf1_alone(self):
    text = self.cause({'kernel': 0.02}).text
    self.assertIn('tf1 adds an extra 0.02 times the variable to the gradient of kernel', text)

  def test_each_adds_its_own(self):
    text = self.cause({'kernel': 0.02}, {'bias': 0.5, 'kernel': 0.02}).text
    self.assertIn('the port adds an extra 0.5 times the variable to the gradient of bias', text)
    self.assertNotIn('kernel', text)

  def test_penalty_that_is_added_after_clipping(self):
    """TF1 clips the gradients with the penalty in them."""
    one, other = (simulated.run(side, _FORM, 2) for side in ('tf1', 'tf2'))
    starts = {record.name: record.value for record in one.values_before}

    def clipped(run, late):
      first, *others = run.steps
      applied = tuple(
        dataclasses.replace(
          r, value=(0.25 * r.value + late * starts[r.name] * (r.name == 'kernel')).astype('f4')
        )
        for r in first.gradients
      )
      first = dataclasses.replace(first, applied_gradients=applied)
      return dataclasses.replace(run, steps=(first, *others))

    one = clipped(with_penalty(one, {'kernel': 0.02}), 0.0)
    late = penalty_in_gradients(
      training_evidence(one, clipped(other, 0.02), simulated.PAIRS, 1)
    ).text
    self.assertStartsWith(late, 'the port adds the gradient of an L2 penalty')
    self.assertIn(
      'tf1 adds, before clipping, 0.02 times the variable to the gradient of kernel', late
    )
    where = np.zeros(starts['bias'].shape, bool)
    where.flat[0] = True  # an element of a variable without the penalty, whose gradient is rounding
    with_less = training_evidence(
      one, clipped(other, 0.02), simulated.PAIRS, 1, rounding_elements={'bias': where}
    )
    self.assertEqual(penalty_in_gradients(with_less).text, late)
    without = penalty_in_gradients(training_evidence(one, clipped(other, 0.0), simulated.PAIRS, 1))
    self.assertIn('tf1 adds an extra 0.02 times the variable', without.text, 'it is nowhere')
    # Too small to be seen in what is clipped.
    least = clipped(with_penalty(simulated.run('tf1', _FORM, 2), {'kernel': 2e-3}), 0.0)
    left_out = training_evidence(least, clipped(other, 0.0), simulated.PAIRS, 1)
    self.assertNotIn('that it has clipped', penalty_in_gradients(left_out).text)

  def test_silent(self):
    self.assertIsNone(self.cause({}))
    self.assertIsNone(self.cause({'kernel': 0.02}, more=0.3))  # something else


class ReturnedLossTest(absltest.TestCase):
  def cause(self, tf1, tf2, total=None):
    return returned_loss(evidence(tf1, tf2, total, trains_alike=True))

  def test_updates_agree(self):
    found = self.cause([3.0, 2.0, 1.0], [3.25, 2.5, 1.2])
    self.assertIn('gradients and updates agree', found.text)
    self.assertIn('is 0.25 greater than that of tf1', found.text)
    self.assertIn('is 0.25 less than', self.cause([3.25, 2.5], [3.0, 2.0]).text)
    self.assertIn('is 3 greater than', self.cause([3.0, 2.0], [6.0, 4.0]).text)

  def test_regularization_that_is_differentiated_and_not_returned(self):
    found = self.cause([3.25, 2.25], [3.0, 2.0], total=0.25)
    self.assertIn('by the sum of the regularization losses', found.text)
    known = evidence([3.25, 2.25], [3.0, 2.0], 0.25, trains_alike=True)
    self.assertIsNone(regularization_left_out(known), 'the step does add them')

  def test_silent(self):
    self.assertIsNone(self.cause([3.0, 2.0], [3.0, 2.5]))  # it begins alike
    self.assertIsNone(self.cause([3.0, 2.0, 1.0], [2.0, 1.0, 0.5]))  # the next step
    found = evidence([3.0, 2.0], [3.1, 2.2])
    other = simulated.run('tf2', Form('sgd', (('learning_rate', 0.2),)), 2)
    other = simulated.with_steps(other, loss=np.float32([3.1, 2.2]))
    self.assertIsNone(returned_loss(training_evidence(found.tf1, other, simulated.PAIRS, 1)))


class LossOfNextStepTest(absltest.TestCase):
  def test_after_the_update_in_the_port(self):
    found = loss_of_next_step(evidence([3.0, 2.0, 1.0], [2.0, 1.0, 0.5]))
    self.assertIn("the port's loss at each step is TF1's of the next step", found.text)

  def test_after_the_update_in_tf1(self):
    found = loss_of_next_step(evidence([2.0, 1.0, 0.5], [3.0, 2.0, 1.0]))
    self.assertIn("TF1's loss at each step is the port's of the next step", found.text)

  def test_others(self):
    for tf1, tf2 in (
      ([3.0, 2.0, 1.0], [3.0, 2.0, 1.0]),
      ([3.0, 3.0, 3.0], [3.0, 3.0, 3.0]),
      ([3.0, 2.0, 1.0], [2.0, 1.1, 0.5]),
      ([3.0], [2.0]),
    ):
      self.assertIsNone(loss_of_next_step(evidence(tf1, tf2)))

  def test_losses_by_example_are_not_looked_at(self):
    found = evidence([3.0, 2.0], [2.0, 1.0])
    tf2 = simulated.with_steps(found.tf2, loss=np.ones((2, 4), np.float32))
    self.assertIsNone(loss_of_next_step(training_evidence(found.tf1, tf2, simulated.PAIRS, 1)))


class RegularizationTest(absltest.TestCase):
  def test_left_out_in_the_port(self):
    found = regularization_left_out(evidence([3.0, 2.0], [2.75, 1.8], total=0.25))
    self.assertIn('0.25, the sum of the regularization losses', found.text)
    self.assertIn('add layer.losses', found.text)

  def test_once_more_in_the_port(self):
    # The losses do not tell whether TF1 leaves them out or the port adds them twice.
    found = regularization_left_out(evidence([3.0, 2.0], [3.25, 2.3], total=0.25))
    self.assertIn("the port's step adds once more than TF1", found.text)

  def test_others(self):
    for tf2, total in (([3.0], 0.25), ([2.5], 0.25), ([2.75], None), ([2.75], 0.0)):
      self.assertIsNone(regularization_left_out(evidence([3.0], tf2, total)))


class LossFactorTest(absltest.TestCase):
  def test_sum_over_the_batch(self):
    found = loss_factor(evidence([0.5], [4.0]))
    self.assertIn('the loss of the port is 8 times that of TF1', found.text)

  def test_mean_over_the_batch(self):
    self.assertIn('the loss of TF1 is 8 times', loss_factor(evidence([4.0], [0.5])).text)

  def test_apart_from_regularization(self):
    found = loss_factor(evidence([0.75], [4.25], total=0.25))
    self.assertIn('apart from the regularization losses, is 8 times', found.text)

  def test_others(self):
    for tf2 in (0.5, 0.6, 1.1, -1.0, 0.0):
      self.assertIsNone(loss_factor(evidence([0.5], [tf2])))


if __name__ == '__main__':
  absltest.main()
