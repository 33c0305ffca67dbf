"""Tests of gradients that are exactly zero in TF1 and rounding in the port."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify import Status

v1 = tf.compat.v1


class Ranked(tiny_models.OneModel, abc.ABC):
  """A loss of differences of two scores, which TF1 computes one by one and the port at once."""

  def score(self, inputs):
    net = v1.layers.dense(inputs, 7, tf.nn.sigmoid, name='hidden')
    with v1.variable_scope('score'):
      weights = v1.get_variable('weights', [7])
      bias = v1.get_variable('bias', [3])
    return tf.linalg.matvec(net, weights)[:, None] * tf.constant([0.7, 1.3, -0.4]) + bias

  def model(self, inputs, training):
    with v1.variable_scope('net', reuse=v1.AUTO_REUSE):
      return self.score(inputs[:, 0]) - self.score(inputs[:, 1])

  def port(self, inputs, training):
    with v1.variable_scope('net', reuse=v1.AUTO_REUSE):
      both = self.score(tf.concat([inputs[:, 0], inputs[:, 1]], axis=0))
    return both[:5] - both[5:]

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 2, 4))

  def make_labels(self):
    return np.random.RandomState(3).uniform(0.1, 2.0, (5, 3)).astype(np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(labels * tf.nn.softplus(-outputs))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.MomentumOptimizer(0.1, 0.9)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1, momentum=0.9)


class ZeroGradientsTest(absltest.TestCase):
  def found(self, **hooks):
    case = type('Case', (Ranked,), {'other_sizes': (), **hooks})
    return tf2verify.verify(case, ['training_steps']).stages[-1]

  def test_rounding_of_zero(self):
    found = self.found()
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_rounding_of_zero_that_adam_scales_up(self):
    def tf1(case):
      return v1.train.AdamOptimizer(0.01)

    def tf2(case):
      return tf.keras.optimizers.Adam(0.01, epsilon=1e-8)

    found = self.found(make_tf1_optimizer=tf1, make_tf2_optimizer=tf2)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertIn('of net/score/bias were left out: their gradient is zero', found.to_text())

  def test_adam_scales_up_a_small_gradient(self):
    def step(case, layer, inputs, labels, optimizer):
      with tf.GradientTape() as tape:
        loss = case.tf2_loss(layer(inputs, training=True), labels)
        (bias,) = (one for one in layer.trainable_variables if 'score/bias' in one.name)
        total = loss + 1e-5 * tf.reduce_sum(tf.square(bias))
      gradients = tape.gradient(total, layer.trainable_variables)
      optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
      return loss

    def tf1(case):
      return v1.train.AdamOptimizer(0.01)

    def tf2(case):
      return tf.keras.optimizers.Adam(0.01, epsilon=1e-8)

    found = self.found(make_tf1_optimizer=tf1, make_tf2_optimizer=tf2, tf2_train_step=step)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertIn('gradient net/score/bias', found.to_text())

  def test_a_small_gradient_is_none_of_rounding(self):
    def step(case, layer, inputs, labels, optimizer):
      with tf.GradientTape() as tape:
        loss = case.tf2_loss(layer(inputs, training=True), labels)
        (bias,) = (one for one in layer.trainable_variables if 'score/bias' in one.name)
        total = loss + 1e-4 * tf.reduce_sum(bias)
      gradients = tape.gradient(total, layer.trainable_variables)
      optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
      return loss

    found = self.found(tf2_train_step=step)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertIn('gradient net/score/bias', found.to_text())


if __name__ == '__main__':
  absltest.main()
