"""Losses that hand no gradient to an output of the model, on one side."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.losses.loss_experiments_test import loss_of

v1 = tf.compat.v1


class Rewards(tf2verify.EquivalenceCase, abc.ABC):
  """Values of a state, and of the next one, which the loss takes as given."""

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 4, name='q')
    return {'q': net, 'next': v1.layers.dense(-inputs, 4, name='next')}

  def make_tf2_layer(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__(name='port')
        self.q = tf.keras.layers.Dense(4, name='q')
        self.next = tf.keras.layers.Dense(4, name='next')

      def call(self, inputs):
        return {'q': self.q(inputs), 'next': self.next(-inputs)}

    return Port()

  def variable_names(self, name):
    return 'port/' + name

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))

  def make_labels(self):
    return np.array([1.0, -0.5, 0.25, 2.0], np.float32)

  def tf1_loss(self, outputs, labels):
    goal = tf.stop_gradient(labels + 0.9 * tf.reduce_max(outputs['next'], 1))
    return tf.reduce_mean(tf.square(goal - tf.reduce_max(outputs['q'], 1)))


class StoppedOutputsTest(absltest.TestCase):
  def cause(self, tf2_loss, tf1_loss=Rewards.tf1_loss):
    hooks = {'tf2_loss': tf2_loss, 'tf1_loss': tf1_loss}
    self.verdict = loss_of(type('Case', (Rewards,), hooks))
    self.assertIs(self.verdict.status, tf2verify.Status.FAILED)
    (cause,) = self.verdict.diagnosis.causes
    self.assertEqual(self.verdict.to_text().count(cause.text[:20]), 1)
    return cause

  def test_gradient_that_the_port_does_not_stop(self):
    def tf2_loss(self, outputs, labels):
      goal = labels + 0.9 * tf.reduce_max(outputs['next'], 1)
      return tf.reduce_mean(tf.square(goal - tf.reduce_max(outputs['q'], 1)))

    cause = self.cause(tf2_loss)
    self.assertTrue(cause.is_proven)
    self.assertRegex(
      cause.text,
      r"^the loss of tf1 stops the gradient of outputs\['next'\] \(read at "
      r'stopped_gradients_test\.py:\d+\), that of the port lets it pass: put tf\.stop_gradient',
    )

  def test_gradient_that_the_port_alone_stops(self):
    def tf1_loss(self, outputs, labels):
      return tf.reduce_mean(tf.square(outputs['next'] - outputs['q']))

    def tf2_loss(self, outputs, labels):
      return tf.reduce_mean(tf.square(outputs['next'] - tf.stop_gradient(outputs['q'])))

    cause = self.cause(tf2_loss, tf1_loss)
    self.assertTrue(cause.is_proven)
    self.assertIn("the port stops the gradient of outputs['q'] (read at stopped_grad", cause.text)
    self.assertIn('that of tf1 lets it pass: remove tf.stop_gradient there', cause.text)

  def test_gradient_that_is_stopped_at_the_other_output(self):
    def tf1_loss(self, outputs, labels):
      return tf.reduce_mean(tf.square(outputs['q'] - tf.stop_gradient(outputs['next'])))

    def tf2_loss(self, outputs, labels):
      return tf.reduce_mean(tf.square(tf.stop_gradient(outputs['q']) - outputs['next']))

    cause = self.cause(tf2_loss, tf1_loss)
    self.assertTrue(cause.is_proven)
    self.assertRegex(
      cause.text, r"tf1 stops .*\['next'\] .* the port stops .*\['q'\] .*: stop it where"
    )

  def test_rounding_stops_it_as_well(self):
    def tf1_loss(self, outputs, labels):
      return tf.reduce_mean(tf.square(outputs['next']) + tf.round(outputs['q']))

    def tf2_loss(self, outputs, labels):
      rounded = outputs['q'] + tf.stop_gradient(tf.round(outputs['q']) - outputs['q'])
      return tf.reduce_mean(tf.square(outputs['next']) + rounded)

    cause = self.cause(tf2_loss, tf1_loss)
    self.assertIn("the loss of tf1 stops the gradient of outputs['q']", cause.text)

  def test_values_that_differ_as_well_are_not_said_to_agree(self):
    def tf2_loss(self, outputs, labels):
      goal = labels + 0.8 * tf.reduce_max(outputs['next'], 1)
      return tf.reduce_mean(tf.square(goal - tf.reduce_max(outputs['q'], 1)))

    verdict = loss_of(type('Case', (Rewards,), {'tf2_loss': tf2_loss}))
    self.assertNotIn('nothing else of the losses', verdict.to_text())
    self.assertIn('0.8', verdict.to_text())


class OtherOutputTest(absltest.TestCase):
  def test_output_that_the_port_does_not_read_is_no_size_that_it_depends_on(self):
    """Of outputs that one side alone reads, the first example is not made."""

    def tf1_loss(self, outputs, labels):
      best = tf.argmax(outputs['q'], 1)  # another one than in the next state, of some examples
      return tf.reduce_mean(tf.gather(outputs['next'], best, axis=1, batch_dims=1) * labels)

    def tf2_loss(self, outputs, labels):
      best = tf.argmax(outputs['next'], 1)
      return tf.reduce_mean(tf.gather(outputs['next'], best, axis=1, batch_dims=1) * labels)

    def make_inputs(self):
      return tf2verify.normal_inputs((4, 3), seed=5)

    hooks = {'tf1_loss': tf1_loss, 'tf2_loss': tf2_loss, 'make_inputs': make_inputs}
    verdict = loss_of(type('Case', (Rewards,), hooks))
    self.assertIs(verdict.status, tf2verify.Status.FAILED)
    self.assertNotIn('is written into tf2_loss', verdict.to_text())
    self.assertIn("outputs['q']", verdict.to_text())


if __name__ == '__main__':
  absltest.main()
