"""Tests of losses with weights that are small."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.tiny_models import Affine

_SAID = 'where one side divides by a sum of labels'


class Weighted(Affine, abc.ABC):
  """A mean of squares by weights."""

  def make_labels(self):
    weights = np.array([1, 0, 1, 1], np.float32)
    return {'wanted': tf2verify.normal_inputs((4, 3), seed=1), 'weights': weights}

  def sums(self, outputs, labels):
    weights = tf.cast(labels['weights'], tf.float32)
    each = tf.reduce_sum(tf.square(outputs - labels['wanted']), 1)
    return tf.reduce_sum(each * weights), tf.reduce_sum(weights)

  def tf1_loss(self, outputs, labels):
    total, count = self.sums(outputs, labels)
    return total / (count + 1e-7)


class SmallWeightsTest(absltest.TestCase):
  def spots(self, case):
    verdict = tf2verify.verify(case, stages=['loss'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())
    return [spot for spot in verdict.stages[-1].blind_spots if _SAID in spot]

  def test_epsilon_that_the_port_leaves_out(self):
    class Case(Weighted):
      def tf2_loss(self, outputs, labels):
        return tf.math.divide_no_nan(*self.sums(outputs, labels))

    (spot,) = self.spots(Case)
    self.assertIn("labels['weights'] times ", spot)
    self.assertIn('return total / (count + 1e-7) in tf1 and ', spot)
    self.assertIn('divide_no_nan(*self.sums(outputs, labels)) in the port (', spot)

  def test_other_spellings(self):
    class Case(Weighted):
      def tf2_loss(self, outputs, labels):
        total, count = self.sums(outputs, labels)
        return tf.reduce_mean(total) * tf.math.reciprocal(1e-7 + count)

    self.assertEmpty(self.spots(Case))


if __name__ == '__main__':
  absltest.main()
