"""Settings that are spelled in another way than TF1's, beside a mistake of the same step."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class _Adam:
  """Adam, whose 1 - beta2 is formed by Python: 1.3e-5 apart from what TF1 forms in float32."""

  def __init__(self, corrected):
    self.corrected = corrected
    self.t = tf.Variable(0.0, trainable=False)
    self.m, self.v = [], []

  def apply(self, gradients, variables):
    if not self.m:
      for slots, name in ((self.m, 'm'), (self.v, 'v')):
        slots += [tf.Variable(tf.zeros(v.shape), name=name, trainable=False) for v in variables]
    self.t.assign_add(1.0)
    rate = 0.01 * tf.sqrt(1.0 - 0.999**self.t) / (1.0 - self.corrected**self.t)
    for gradient, m, v, weights in zip(gradients, self.m, self.v, variables, strict=True):
      m.assign(0.9 * m + (1.0 - 0.9) * gradient)
      v.assign(0.999 * v + (1.0 - 0.999) * gradient * gradient)
      weights.assign_sub(rate * m / (tf.sqrt(v) + 1e-8))


class OfOwnAdam(tf2verify.EquivalenceCase, abc.ABC):
  """A dense layer, trained by an Adam of the port's own."""

  training_modes = (True,)
  training_steps_to_take = 2
  corrected = 0.9  # by the power of which the first moment is corrected

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='logits')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='logits')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def make_labels(self):
    return np.full((4, 3), 0.5, np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return _Adam(self.corrected)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    weights = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, weights), weights)
    return loss


def _training(**hooks):
  verdict = tf2verify.verify(type('Case', (OfOwnAdam,), hooks), ['training_steps'])
  return next(one for one in verdict.stages if one.stage == 'training_steps')


class SpelledSettingsTest(absltest.TestCase):
  def test_right_port(self):
    stage = _training()
    self.assertTrue(stage.passed, stage.to_text())

  def test_no_note_beside_a_mistake(self):
    stage = _training(corrected=0.999)
    self.assertFalse(stage.passed)
    self.assertNotIn('without effect', ' '.join(stage.to_text().split()))


if __name__ == '__main__':
  absltest.main()
