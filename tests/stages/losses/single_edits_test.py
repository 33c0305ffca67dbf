"""Mistakes of one operation among others that are only written differently."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify.records.experiment import Outcome


def edges_of_tf1(outputs):
  """Log-likelihoods at the ends of an interval, as softplus."""
  plus, minus = 2.0 * (outputs + 0.3), 2.0 * (outputs - 0.3)
  inner = tf.math.log(tf.maximum(tf.sigmoid(plus) - tf.sigmoid(minus), 1e-12))
  upper = tf.where(outputs > 0.5, -tf.nn.softplus(minus), inner)
  return tf.reduce_mean(tf.where(outputs < -0.5, plus - tf.nn.softplus(plus), upper))


def edges_of_port(outputs, other_end=False):
  plus, minus = 2.0 * (outputs + 0.3), 2.0 * (outputs - 0.3)
  inner = tf.math.log(tf.maximum(tf.sigmoid(plus) - tf.sigmoid(minus), 1e-12))
  end = plus if other_end else minus
  upper = tf.where(outputs > 0.5, tf.math.log_sigmoid(-end), inner)
  return tf.reduce_mean(tf.where(outputs < -0.5, tf.math.log_sigmoid(plus), upper))


class _Case(tiny_models.Affine, abc.ABC):
  def tf1_loss(self, outputs, labels):
    return self.reference(outputs)

  def tf2_loss(self, outputs, labels):
    return self.written_otherwise(outputs)


def loss_of(one, other):
  parts = {'reference': staticmethod(one), 'written_otherwise': staticmethod(other)}
  return tf2verify.verify(type('Case', (_Case,), parts), stages=['loss']).stages[-1]


class SingleEditsTest(absltest.TestCase):
  def only_cause(self, one, other):
    verdict = loss_of(one, other)
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
    self.assertLen(verdict.diagnosis.causes, 1, verdict.to_text())
    [cause] = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, verdict.to_text())
    return cause.text

  def test_right_port(self):
    verdict = loss_of(edges_of_tf1, edges_of_port)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_another_tensor_before_a_function_that_is_written_otherwise(self):
    text = self.only_cause(edges_of_tf1, lambda x: edges_of_port(x, other_end=True))
    self.assertIn('reads', text)
    self.assertNotIn('Softplus', text)


if __name__ == '__main__':
  absltest.main()
