"""Tests of tf2verify.stages.training.turns: variables that are updated in some steps only."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.sides.trained_sides import RATE, Trained

v1 = tf.compat.v1
STAGE = 'training_steps'


class Delayed(Trained, abc.ABC):
  """The bias is updated in every second step, as the actor of TD3."""

  training_steps_to_take = 3
  phase = 0

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    optimizer = v1.train.GradientDescentOptimizer(RATE)
    kernel, bias = sorted(v1.trainable_variables(), key=lambda v: -len(v.shape))
    gradients = tf.gradients(loss, [kernel, bias])
    is_due = tf.equal(step % 2, 0)
    first = optimizer.apply_gradients([(gradients[0], kernel)])
    factor = tf.cond(is_due, lambda: tf.constant(1.0), lambda: tf.constant(0.0))
    second = optimizer.apply_gradients([(factor * gradients[1], bias)])
    with tf.control_dependencies([first, second]):
      return v1.assign_add(step, 1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    kernel, bias = sorted(layer.trainable_variables, key=lambda v: -len(v.shape))
    optimizer.build([kernel, bias])
    gradients = tape.gradient(loss, [kernel, bias])
    is_due = int(optimizer.iterations) % 2 == self.phase
    optimizer.apply_gradients([(gradients[0], kernel), (gradients[1], bias)][: 1 + is_due])
    return loss


class OtherPhase(Delayed, abc.ABC):
  phase = 1


class Always(Delayed, abc.ABC):
  """Does not wait, as a port without the condition."""

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    variables = layer.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


def _verdict(case):
  return tf2verify.verify(type('Case', (case,), {}), [STAGE])


class TurnsTest(absltest.TestCase):
  def test_the_same_steps(self):
    verdict = _verdict(Delayed)
    self.assertIs(verdict.stages[-1].status, tf2verify.Status.PASSED, verdict.to_text())

  def test_other_steps(self):
    text = ' '.join(_verdict(OtherPhase).to_text().split())
    self.assertIn('step 1 of the port does not update bias, that of TF1 does', text)
    self.assertIn('compare the conditions on the count of steps', text)
    self.assertNotIn('leaves them out of apply_gradients', text)

  def test_every_step(self):
    text = ' '.join(_verdict(Always).to_text().split())
    self.assertIn('applied gradient bias [step 2]', text)
    self.assertNotIn('session.run runs only what is fetched', text)


if __name__ == '__main__':
  absltest.main()
