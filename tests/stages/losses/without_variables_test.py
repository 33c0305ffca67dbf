"""Gradients of losses by outputs that no variable is behind."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'loss'


class Masked(tiny_models.OneModel, abc.ABC):
  """Outputs with the weights of the loss, which are made of the inputs alone."""

  factor = 1.0

  def model(self, inputs, training):
    kernel = v1.get_variable('kernel', [3, 2])
    weights = tf.cast(inputs[:, 0] > 0.0, tf.float32)
    return {'logits': tf.matmul(inputs, kernel), 'weights': self.weights(weights, kernel)}

  def weights(self, weights, kernel):
    return weights

  def tf1_loss(self, outputs, labels):
    return tf.reduce_sum(tf.reduce_sum(outputs['logits'] ** 2, -1) * outputs['weights'])

  def tf2_loss(self, outputs, labels):
    # The same number, and no number for its gradient by a weight of 0.
    weights = tf.sqrt(outputs['weights']) ** 2
    each = tf.reduce_sum(outputs['logits'] ** 2, -1) * weights
    return self.factor * tf.reduce_sum(each)

  def make_labels(self):
    return tf2verify.normal_inputs((4,))


class Learned(Masked, abc.ABC):
  """Whose weights a variable has made, in part."""

  def weights(self, weights, kernel):
    return weights * tf.sigmoid(kernel[0, 0])

  def tf2_loss(self, outputs, labels):
    weights = tf.stop_gradient(outputs['weights'])
    return tf.reduce_sum(tf.reduce_sum(outputs['logits'] ** 2, -1) * weights)


class OtherFactor(Masked, abc.ABC):
  factor = 2.0


class WithoutVariablesTest(LadderTestCase):
  def stage(self, case):
    return tf2verify.verify(type('Case', (case,), {}), stages=[STAGE]).stages[-1]

  def test_a_mask(self):
    stage = self.stage(Masked)
    self.assertIs(stage.status, tf2verify.Status.PASSED, stage.to_text())
    self.assertIn("outputs['weights'] were not compared", ' '.join(stage.notes))

  def test_what_a_variable_has_made(self):
    stage = self.stage(Learned)
    self.assertIs(stage.status, tf2verify.Status.FAILED)
    self.assertTrue(any('weights' in d.subject for d in stage.differences), stage.to_text())

  def test_other_mistakes(self):
    stage = self.stage(OtherFactor)
    self.assertIs(stage.status, tf2verify.Status.FAILED)
    self.assertTrue(any('logits' in d.subject for d in stage.differences), stage.to_text())


if __name__ == '__main__':
  absltest.main()
