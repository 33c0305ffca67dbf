"""Calls that normalize by statistics before they count their inputs, and after it."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify.diagnosis.steps.read_times import RULE

v1 = tf.compat.v1
_SHARE = 0.1


class Filter(tf.Module):
  """Subtracts a running mean; counts the inputs into it before or after that."""

  def __init__(self, counts_first):
    super().__init__('filter')
    self.counts_first = counts_first
    self.mean = tf.Variable(tf.zeros([3]), name='mean', trainable=False)
    self.kernel = tf.Variable(tf.ones([3, 2]), name='kernel')

  def count(self, inputs):
    self.mean.assign_add(_SHARE * (tf.reduce_mean(inputs, 0) - self.mean))

  def __call__(self, inputs, training):
    if training and self.counts_first:
      self.count(inputs)
    centered = tf.clip_by_value(inputs - self.mean, -2.0, 2.0)
    if training and not self.counts_first:
      self.count(inputs)
    return tf.tanh(centered @ self.kernel)


class FilterCase(tf2verify.EquivalenceCase, abc.ABC):
  tf1_counts_first = tf2_counts_first = False

  def build_tf1_graph(self, inputs, training):
    mean = v1.get_variable('mean', [3], initializer=v1.zeros_initializer(), trainable=False)
    kernel = v1.get_variable('kernel', [3, 2], initializer=v1.ones_initializer())
    now = mean
    if training and self.tf1_counts_first:
      now = self.counted(mean, inputs)
    centered = tf.maximum(tf.minimum(inputs - now, 2.0), -2.0)
    if training and not self.tf1_counts_first:
      with tf.control_dependencies([centered]):
        self.counted(mean, inputs)
    return tf.tanh(tf.matmul(centered, kernel))

  def counted(self, mean, inputs):
    known = (1.0 - _SHARE) * mean.read_value() + _SHARE * tf.reduce_mean(inputs, 0)
    update = mean.assign(known, read_value=False)
    v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
    with tf.control_dependencies([update]):
      return mean.read_value()

  def make_tf2_layer(self):
    return Filter(self.tf2_counts_first)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 3)) + 1.0


def _failure(**hooks):
  verdict = tf2verify.verify(type('Case', (FilterCase,), hooks))
  return next((one for one in verdict.stages if one.diagnosis is not None), None)


class StatisticsReadLateTest(absltest.TestCase):
  def _assert_proven(self, failed, line):
    cause, *others = failed.diagnosis.causes
    self.assertEqual(cause.rule, RULE)
    self.assertEqual([], others)
    self.assertTrue(cause.is_proven)
    self.assertIn('mean after the update of the same call', cause.text)
    (source,) = failed.diagnosis.sources
    self.assertTrue(source.rewired)
    self.assertIn(line, source.tf2_source.code)

  def test_the_port_counts_before_it_normalizes(self):
    failed = _failure(tf2_counts_first=True)
    self._assert_proven(failed, 'inputs - self.mean')
    self.assertIn('from the values before the update', failed.diagnosis.causes[0].text)

  def test_tf1_counts_before_it_normalizes(self):
    failed = _failure(tf1_counts_first=True)
    self._assert_proven(failed, 'inputs - self.mean')
    self.assertIn('from the values after the update', failed.diagnosis.causes[0].text)

  def test_both_count_at_the_same_time(self):
    self.assertIsNone(_failure())
    self.assertIsNone(_failure(tf1_counts_first=True, tf2_counts_first=True))


if __name__ == '__main__':
  absltest.main()
