"""A weight that the port's loss has in another term than TF1, which spells both otherwise."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tf2verify.records.experiment import Outcome

v1 = tf.compat.v1


class Weighted(tiny_models.Affine, abc.ABC):
  """Misses cost three times what false alarms do."""

  def make_labels(self):
    return np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 0, 1]], np.float32)

  def tf1_loss(self, outputs, labels):
    probabilities = tf.nn.sigmoid(outputs)
    weights = 1.0 + 2.0 * labels
    each = tf.square(labels - probabilities) * weights
    return tf.reduce_sum(each)

  def tf2_loss(self, outputs, labels):
    missed = 3.0 * labels * tf.square(tf.sigmoid(-outputs))
    alarms = (1.0 - labels) * tf.square(tf.sigmoid(outputs))
    return tf.reduce_sum(missed + alarms)


class OtherLine(Weighted, abc.ABC):
  def tf2_loss(self, outputs, labels):
    missed = labels * tf.square(tf.sigmoid(-outputs))
    alarms = 3.0 * (1.0 - labels) * tf.square(tf.sigmoid(outputs))
    return tf.reduce_sum(missed + alarms)


class SameLine(Weighted, abc.ABC):
  def tf2_loss(self, outputs, labels):
    squares = tf.square(tf.sigmoid(-outputs)), tf.square(tf.sigmoid(outputs))
    return tf.reduce_sum(labels * squares[0] + (1.0 - labels) * 3.0 * squares[1])


class OtherTermsTest(parameterized.TestCase):
  def test_right_port_passes(self):
    verdict = tf2verify.verify(type('Case', (Weighted,), {}), ['loss'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  @parameterized.parameters(OtherLine, SameLine)
  def test_weight_of_the_other_term(self, fault):
    verdict = tf2verify.verify(type('Case', (fault,), {}), ['loss'])
    failed, text = verdict.first_failure, verdict.to_text()
    self.assertEqual(failed.stage, 'loss', text)
    [cause] = failed.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, text)
    self.assertRegex(cause.text, r'the port computes Mul\(3\) \(\S+\) after \S+, tf1 after \S+')


if __name__ == '__main__':
  absltest.main()
