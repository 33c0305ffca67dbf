"""Gradients that a class of the port adds up, and applies in every second step by an `if`."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
_EVERY = 2


class _Accumulating:
  def __init__(self, share, resets):
    self.rms = v1.train.RMSPropOptimizer(0.02, epsilon=1e-3)
    self.count = tf.Variable(0, dtype=tf.int64, trainable=False)
    self.share, self.resets = share, resets
    self.sums = None

  def step(self, gradients, variables):
    if self.sums is None:
      self.sums = [tf.Variable(tf.zeros(v.shape), trainable=False) for v in variables]
    for known, gradient in zip(self.sums, gradients, strict=True):
      known.assign_add(gradient * self.share)
    self.count.assign_add(1)
    if self.count % _EVERY == 0:
      clipped = [tf.clip_by_value(known, -0.3, 0.3) for known in self.sums]
      self.rms.apply_gradients(zip(clipped, variables, strict=True))
      if self.resets:
        for known in self.sums:
          known.assign(tf.zeros(known.shape))


class Accumulated(tf2verify.EquivalenceCase, abc.ABC):
  training_modes = (True,)
  training_steps_to_take = 4
  variable_names = {'d/kernel': 'd/kernel', 'd/bias': 'd/bias'}
  share, resets = 1.0 / _EVERY, True

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='d')

  def make_tf2_layer(self):
    return keras.layers.Dense(3, name='d')

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4))

  def make_labels(self):
    return np.ones((5, 3), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    optimizer = v1.train.RMSPropOptimizer(0.02, epsilon=1e-3)
    trained = v1.trainable_variables()
    with v1.variable_scope('accumulated'):
      sums = [
        v1.get_variable(v.op.name.replace('/', '_'), v.shape, initializer=tf.zeros, trainable=False)
        for v in trained
      ]
    adds = [
      v1.assign_add(known, gradient / _EVERY)
      for known, gradient in zip(sums, tf.gradients(loss, trained), strict=True)
    ]

    def apply():
      clipped = [tf.clip_by_value(known.read_value(), -0.3, 0.3) for known in sums]
      applied = optimizer.apply_gradients(zip(clipped, trained, strict=True))
      with tf.control_dependencies([applied]):
        return tf.group(*[v1.assign(known, tf.zeros(known.shape)) for known in sums])

    with tf.control_dependencies([*adds, v1.assign_add(step, 1)]):
      return tf.cond(tf.equal(step.read_value() % _EVERY, 0), apply, tf.no_op)

  def make_tf2_optimizer(self):
    return _Accumulating(self.share, self.resets)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = [one.value for one in layer.trainable_variables]
    optimizer.step(tape.gradient(loss, variables), variables)
    return loss


def _verdict(**hooks):
  return tf2verify.verify(type('Case', (Accumulated,), hooks), ['training_steps'])


class AccumulatedTest(parameterized.TestCase):
  def test_right(self):
    verdict = _verdict()
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_sum_instead_of_the_mean(self):
    failed = _verdict(share=1.0).first_failure
    text = ' '.join(failed.to_text().split())
    self.assertNotIn('cannot be traced', text)
    self.assertTrue(failed.diagnosis.causes[0].is_proven, text)
    self.assertIn('known.assign_add(gradient * self.share)', text)

  def test_never_reset(self):
    failed = _verdict(resets=False).first_failure
    text = ' '.join(failed.to_text().split())
    self.assertIn("of TF1 sets the slots 'accumulated' of its variables back to zero", text)


if __name__ == '__main__':
  absltest.main()
