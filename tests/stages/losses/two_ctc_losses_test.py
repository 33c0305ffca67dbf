"""Tests of the two CTC losses of TensorFlow: one kernel, and a loop with functions of its own."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class CorrectCase(tf2verify.EquivalenceCase):
  training_modes = (False,)
  stages = tf2verify.all_stages_except(
    checkpoint='not about the loss', execution_modes='not about TF1', determinism='not about TF1'
  )

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 5, name='classes')

  def make_tf2_layer(self):
    return tf.keras.layers.Dense(5, name='classes')

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 9, 4))

  def make_labels(self):
    ids = np.array([[0, 1, 1, 3], [2, 0, -1, -1], [3, 3, 1, -1]], np.int32)
    return {'ids': ids, 'length': np.array([9, 6, 7], np.int32)}

  def tf1_loss(self, outputs, labels):
    ids = labels['ids']
    where = tf.where(ids >= 0)
    sparse = tf.SparseTensor(where, tf.gather_nd(ids, where), tf.shape(ids, out_type=tf.int64))
    return tf.reduce_mean(v1.nn.ctc_loss(sparse, outputs, labels['length'], time_major=False))

  def tf2_loss(self, outputs, labels):
    ids, length = labels['ids'], self.frames(outputs, labels)
    counts = tf.reduce_sum(tf.cast(ids >= 0, tf.int32), 1)
    ids = tf.maximum(ids, 0)
    each = tf.nn.ctc_loss(ids, outputs, counts, length, logits_time_major=False, blank_index=-1)
    return tf.reduce_mean(each)

  def frames(self, outputs, labels):
    return labels['length']


def _all_frames():
  class Case(CorrectCase):
    def frames(self, outputs, labels):
      return tf.fill([tf.shape(outputs)[0]], tf.shape(outputs)[1])

  return Case


class TwoCtcLossesTest(absltest.TestCase):
  def test_rounding_of_the_kernel_fails_no_correct_port(self):
    verdict = tf2verify.verify(CorrectCase, stages=['loss'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())

  def test_lengths_that_the_port_does_not_read(self):
    failure = tf2verify.verify(_all_frames(), stages=['loss']).first_failure
    self.assertIsNotNone(failure)
    text = failure.to_text()
    self.assertIn("missing in tf2: the input labels['length']", text)
    self.assertNotIn('abandoned', text)


if __name__ == '__main__':
  absltest.main()
