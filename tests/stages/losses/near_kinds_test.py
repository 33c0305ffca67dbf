"""Losses of which one operation is another one, where the rest is written with other signs."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import kernel


class Surrogate(tiny_models.OneModel, abc.ABC):
  """The clipped surrogate of a policy: TF1 negates both terms, and the port what comes of them."""

  pick = staticmethod(tf.minimum)

  def model(self, inputs, training):
    return tf.reduce_sum(tf.matmul(inputs, kernel()), 1)

  def make_labels(self):
    return tf2verify.normal_inputs((4,), seed=2)

  def tf1_loss(self, outputs, labels):
    ratio = tf.exp(0.5 * outputs)
    first, second = -labels * ratio, -labels * tf.clip_by_value(ratio, 0.8, 1.2)
    return tf.reduce_mean(tf.maximum(first, second))

  def tf2_loss(self, outputs, labels):
    ratio = tf.exp(0.5 * outputs)
    return -tf.reduce_mean(self.pick(labels * ratio, labels * tf.clip_by_value(ratio, 0.8, 1.2)))


class NearKindsTest(LadderTestCase):
  def test_the_same_with_other_signs(self):
    self.assert_passes(type('Case', (Surrogate,), {}), 'loss')

  def test_a_maximum_for_a_minimum(self):
    case = type('Case', (Surrogate,), {'pick': staticmethod(tf.maximum)})
    text = self.assert_first_failure(case, 'loss', 'with Minimum it yields what tf1 does')
    self.assertIn('proven', text)
    self.assertNotIn('lacks Neg', text)


if __name__ == '__main__':
  absltest.main()
