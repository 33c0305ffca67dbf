"""Steps that TF1 counts in a variable of its own, given to the optimizer as the global step."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class Halving(keras.optimizers.schedules.LearningRateSchedule):
  def __init__(self, first):
    self.first = first

  def __call__(self, step):
    return 0.1 * 0.5 ** (keras.ops.cast(step, 'float32') + self.first)


class Counting(tf2verify.EquivalenceCase, abc.ABC):
  first = 0.0

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='out')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='out')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    updates = v1.Variable(0, name='updates', trainable=False)
    rate = 0.1 * 0.5 ** tf.cast(updates, tf.float32)
    optimizer = v1.train.GradientDescentOptimizer(rate)
    return optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=updates)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(Halving(self.first))


class OwnCountersTest(absltest.TestCase):
  def test_right(self):
    class Right(Counting):
      pass

    verdict = tf2verify.verify(Right, stages=['training_steps'])
    self.assertTrue(verdict.passed, verdict.to_text())
    self.assertNotRegex(verdict.to_text(), 'does not depend on a step count|not compared')

  def test_a_count_that_is_a_float_in_tf1(self):
    class Floating(Counting):
      def make_tf1_train_op(self, loss):
        step = v1.Variable(1.0, name='global_step', trainable=False)
        optimizer = v1.train.MomentumOptimizer(0.1 * 0.5 ** (step - 1.0), 0.9)
        with tf.control_dependencies([optimizer.minimize(loss)]):
          return step.assign_add(1.0)

      def make_tf2_optimizer(self):
        return keras.optimizers.SGD(Halving(0.0), momentum=0.9)

    failure = tf2verify.verify(Floating, stages=['training_steps']).first_failure
    self.assertNotIn('abandoned', failure.to_text())
    self.assertIn('they agree until the learning rate changes', failure.to_text())

  def test_a_counter_beside_the_global_step_is_compared(self):
    """As in a model of two optimizers, each with a counter."""

    class Both(Counting):
      def make_tf1_train_op(self, loss):
        step = v1.train.get_or_create_global_step()
        with tf.control_dependencies([super().make_tf1_train_op(loss)]):
          return step.assign_add(2)

    verdict = tf2verify.verify(Both, stages=['training_steps'])
    # The optimizer's own counter is no longer taken for the count: somebody has to look at it.
    self.assertRegex(verdict.to_text(), 'updates')

  def test_a_schedule_that_is_a_step_ahead(self):
    class Wrong(Counting):
      first = 1.0

    verdict = tf2verify.verify(Wrong, stages=['training_steps'])
    self.assertIs(verdict.first_failure.status, tf2verify.Status.FAILED)
    self.assertRegex(verdict.to_text(), 'one step later|count')


if __name__ == '__main__':
  absltest.main()
