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


def hardest_of_tf1(outputs):
  """The greatest negative product of each row, or its least one where none is negative."""
  products = tf.matmul(outputs, outputs, transpose_b=True)
  negative = tf.cast(products < 0.0, tf.float32)
  least = tf.reduce_min(products, 1, keepdims=True)
  return tf.reduce_mean(tf.reduce_max((products - least) * negative, 1, keepdims=True) + least)


def hardest_of_port(outputs, of_all=False):
  products = tf.matmul(outputs, outputs, transpose_b=True)
  # With the axis alone it would be a row, and not a column.
  least = tf.reduce_min(products) if of_all else tf.reduce_min(products, 1, keepdims=True)
  return tf.reduce_mean(tf.reduce_max(tf.where(products < 0.0, products, least), 1))


def pairs_of_tf1(outputs):
  """The reference unpacks what the port takes out by slices."""
  one, other = tf.unstack(outputs[:, :2], axis=1)
  return tf.reduce_mean(tf.nn.relu(one * 2.0 - other) + tf.square(other))


def pairs_of_port(outputs, backwards=False):
  pairs = outputs[:, :2]
  pairs = pairs[:, ::-1] if backwards else pairs
  one, other = pairs[:, 0], pairs[:, 1]
  return tf.reduce_mean(tf.nn.relu(one + one - other) + other * other)


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

  def test_right_ports(self):
    pairs = (
      (edges_of_tf1, edges_of_port),
      (hardest_of_tf1, hardest_of_port),
      (pairs_of_tf1, pairs_of_port),
    )
    for one, other in pairs:
      verdict = loss_of(one, other)
      self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_another_tensor_before_a_function_that_is_written_otherwise(self):
    text = self.only_cause(edges_of_tf1, lambda x: edges_of_port(x, other_end=True))
    self.assertIn('reads', text)
    self.assertNotIn('Softplus', text)

  def test_an_axis_with_its_shape(self):
    text = self.only_cause(hardest_of_tf1, lambda x: hardest_of_port(x, of_all=True))
    self.assertIn('of Min (Min) is', text)
    self.assertNotIn('Select', text)

  def test_an_operation_too_many(self):
    text = self.only_cause(pairs_of_tf1, lambda x: pairs_of_port(x, backwards=True))
    self.assertIn('the port has StridedSlice[:, ::-1], which tf1 does not have', text)


if __name__ == '__main__':
  absltest.main()
