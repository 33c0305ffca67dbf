"""Causes of total losses that differ, tried out in the model."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify.records.experiment import Outcome
from tf2verify.records.status import Status


class _TwoParts(tiny_models.Affine, abc.ABC):
  """Two parts of a loss, of which a weight that follows from the step makes one."""

  start, most = 0.1, 0.5

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=5)

  def tf1_loss(self, outputs, labels):
    return {
      'error': tf.reduce_mean(tf.square(outputs - labels)),
      'size': tf.reduce_mean(tf.abs(outputs)),
    }

  tf2_loss = tf1_loss

  def tf1_total_loss(self, outputs, labels):
    parts = self.tf1_loss(outputs, labels)
    weight = tf.minimum(0.5, 0.1 + 0.02 * tf.reduce_mean(tf.stop_gradient(parts['error'])))
    return parts['error'] + weight * parts['size']

  def tf2_total_loss(self, layer, outputs, labels):
    parts = self.tf2_loss(outputs, labels)
    mean = tf.reduce_mean(tf.stop_gradient(parts['error']))
    weight = tf.minimum(self.most, self.start + 0.02 * mean)
    return parts['error'] + weight * parts['size']


class EditedModelTest(absltest.TestCase):
  def failed(self, case):
    [*_, verdict] = tf2verify.verify(case, stages=['loss']).stages
    self.assertIs(verdict.status, Status.FAILED, verdict.to_text())
    return verdict

  def test_right(self):
    class Case(_TwoParts):
      pass

    verdict = tf2verify.verify(Case, stages=['loss'])
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())

  def test_number_of_a_weight(self):
    class Case(_TwoParts):
      start = 0.2

    verdict = self.failed(Case)
    [cause] = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN)
    self.assertRegex(cause.text, r'0\.2\b.* in the port, 0\.1 in tf1')
    # Weights of parts are no regularization.
    self.assertNotIn('regulariz', verdict.to_text())

  def test_operation_that_is_missing(self):
    class Case(_TwoParts):
      def tf2_total_loss(self, layer, outputs, labels):
        parts = self.tf2_loss(outputs, labels)
        mean = tf.reduce_mean(tf.stop_gradient(parts['error']))
        return parts['error'] + tf.minimum(0.5, 0.02 * mean) * parts['size']

    verdict = self.failed(Case)
    [cause] = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN)
    self.assertIn('0.1', cause.text)

  def test_two_numbers(self):
    class Case(_TwoParts):
      start, most = 0.2, 0.05

    verdict = self.failed(Case)
    text = ' '.join(cause.text for cause in verdict.diagnosis.causes)
    for number in ('0.2', '0.1', '0.5', '0.05'):
      self.assertIn(number, text)


if __name__ == '__main__':
  absltest.main()
