"""Tests of tf2verify.diagnosis.steps.python_numbers: schedules computed by Python."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tf2verify.records.experiment import Outcome

v1 = tf.compat.v1


class Scheduled(tiny_models.Affine, abc.ABC):
  """Momentum and a decay of weights, at a rate that falls; written by hand in the port."""

  training_modes = (True,)
  training_steps_to_take = 4

  def make_labels(self):
    return np.arange(12, dtype=np.float32).reshape(4, 3) / 12

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.inverse_time_decay(0.2, step, 1, 0.5)
    optimizer = v1.train.MomentumOptimizer(rate, 0.9)
    gradients = optimizer.compute_gradients(loss)
    with tf.control_dependencies([gradient for gradient, _ in gradients]):
      decayed = [one.assign_sub(rate * 0.03 * one) for one in v1.trainable_variables()]
    with tf.control_dependencies(decayed):
      return optimizer.apply_gradients(gradients, global_step=step)

  def make_tf2_optimizer(self):
    return {'step': tf.Variable(0, dtype=tf.int64, trainable=False)}

  def rate(self, step):
    return 0.2 / (1 + 0.5 * step)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    weights = layer.trainable_variables
    rate = self.rate(int(optimizer['step']))
    for number, gradient in enumerate(tape.gradient(loss, weights)):
      one = weights[number]
      if number not in optimizer:
        optimizer[number] = tf.Variable(tf.zeros_like(one), trainable=False)
      one.assign((1 - 0.03 * rate) * one)
      optimizer[number].assign(0.9 * optimizer[number] + gradient)
      one.assign_sub(rate * optimizer[number])
    optimizer['step'].assign_add(1)
    return loss


class PythonNumbersTest(parameterized.TestCase):
  def test_right_port_passes(self):
    verdict = tf2verify.verify(type('Case', (Scheduled,), {}), ['training_steps'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  @parameterized.parameters(
    (lambda step: 0.2 / (1 + 0.3 * step), '0.1538462'),
    (lambda step: 0.2 / (1 + 0.5 * step**2), '0.06666667', 3),
  )
  def test_wrong_schedule(self, rate, own, number=2):
    case = type('Case', (Scheduled,), {'rate': lambda self, step: rate(step)})
    verdict = tf2verify.verify(case, ['training_steps'])
    failed, text = verdict.first_failure, verdict.to_text()
    self.assertEqual(failed.stage, 'training_steps', text)
    [cause] = failed.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, text)
    self.assertIn('the learning rate is ', cause.text)
    self.assertIn(f'the port has the number {own} there at python_numbers_test.py', cause.text)
    self.assertIn('and 1 without 0.03 times that number', cause.text)
    self.assertEqual(failed.diagnosis.run, f'step {number}', text)


if __name__ == '__main__':
  absltest.main()
