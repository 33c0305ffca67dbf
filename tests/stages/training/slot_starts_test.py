"""Slots that an optimizer gives values once made, and averages that start as the weights."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.training.further_steps.other_gradients_test import Trained
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'


class _FromOnes(keras.optimizers.RMSprop):
  """Squares start with ones, as those of TF1."""

  def build(self, variables):
    super().build(variables)
    for square in self._velocities:
      square.assign(keras.ops.ones_like(square))


class _Steps:
  """Keeps averages of the weights, which start as these in the first step."""

  def __init__(self, rho, decay):
    self.optimizer = _FromOnes(0.01, rho=rho, momentum=0.9, epsilon=1e-5)
    self.decay = decay
    self.averages = None

  def take(self, loss_of, weights):
    if self.averages is None:
      self.averages = [tf.Variable(w.numpy(), trainable=False) for w in weights]
    with tf.GradientTape() as tape:
      loss = loss_of()
    self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    for average, weight in zip(self.averages, weights, strict=True):
      average.assign(self.decay * average + (1.0 - self.decay) * weight)
    return loss


class _Averaged(Trained, abc.ABC):
  training_steps_to_take = 3
  make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer
  rho, decay = 0.95, 0.98

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    optimizer = v1.train.RMSPropOptimizer(0.01, decay=0.95, momentum=0.9, epsilon=1e-5)
    with tf.control_dependencies([optimizer.minimize(loss, step)]):
      return tf.train.ExponentialMovingAverage(0.98).apply(v1.trainable_variables())

  def make_tf2_optimizer(self):
    return _Steps(self.rho, self.decay)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    def loss_of():
      return self.tf2_loss(layer(inputs), labels)

    return optimizer.take(loss_of, layer.trainable_variables)


class SlotStartsTest(absltest.TestCase):
  def found(self, **hooks):
    return tf2verify.verify(type('Case', (_Averaged,), hooks), [_STAGE]).stages[-1]

  def test_right_port(self):
    found = self.found()
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertNotIn('cannot be traced', found.to_text())

  def test_decay_of_squares(self):
    text = self.found(rho=0.9).to_text()
    self.assertIn('decay is 0.95 in TF1 and 0.9 in the port', text)

  def test_decay_of_averages(self):
    found = self.found(decay=0.9)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    text = found.to_text()
    self.assertNotIn('cannot be traced', text)
    self.assertRegex(text, r'0\.98? (in|for)')


if __name__ == '__main__':
  absltest.main()
