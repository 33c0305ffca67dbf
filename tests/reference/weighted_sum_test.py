"""Tests of the default loss."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.reference.weighted_sum import weighted_sum

v1 = tf.compat.v1


class WeightedSumTest(absltest.TestCase):
  def test_every_element_of_every_output_has_its_own_weight(self):
    one, other = tf.zeros([40, 50]), tf.zeros([2000])
    with tf.GradientTape() as tape:
      tape.watch([one, other])
      loss = weighted_sum({'one': one, 'other': other})
    weights = np.concatenate([np.ravel(g) for g in tape.gradient(loss, [one, other])])
    self.assertLen(np.unique(weights), 4000)
    self.assertBetween(np.mean(weights > 0), 0.45, 0.55)
    scaled = np.abs(weights) * np.sqrt(2000)
    self.assertGreaterEqual(scaled.min(), 0.499)
    self.assertLessEqual(scaled.max(), 1.001)

  def test_graph_and_eager_agree_bit_for_bit(self):
    values = np.random.RandomState(0).standard_normal((37, 11)).astype(np.float32)
    eager = weighted_sum([tf.constant(values)])
    with tf.Graph().as_default():
      fed = v1.placeholder(tf.float32, [None, None])
      loss = weighted_sum([fed])
      with v1.Session() as session:
        graph = session.run(loss, {fed: values})
    self.assertEqual(np.float32(eager).tobytes(), np.float32(graph).tobytes())

  def test_integer_outputs_have_no_part(self):
    self.assertIsNone(weighted_sum({'ids': tf.constant([1, 2]), 'none': None}))

  def test_a_float64_output_makes_the_loss_float64(self):
    loss = weighted_sum([tf.zeros([2]), tf.zeros([2], tf.float64)])
    self.assertEqual(loss.dtype, tf.float64)

  def test_an_empty_output_is_zero(self):
    self.assertEqual(float(weighted_sum(tf.zeros([0, 3]))), 0.0)


if __name__ == '__main__':
  absltest.main()
