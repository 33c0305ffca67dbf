"""A gradient that the port stops in a part of the loss that its step adds."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.diagnosis.gradients.step_stops import RULE

v1 = tf.compat.v1


class Penalized(tf2verify.EquivalenceCase, abc.ABC):
  """A penalty of a hidden layer, which both sides write in their own way."""

  training_modes = (True,)

  def variable_names(self, name):
    return f'port/{name}'

  def build_tf1_graph(self, inputs, training):
    self.hidden = v1.layers.dense(inputs, 4, tf.nn.tanh, name='hidden')
    return {'hidden': self.hidden, 'out': v1.layers.dense(self.hidden, 2, name='out')}

  def make_tf2_layer(self):
    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.hidden = keras.layers.Dense(4, 'tanh', name='hidden')
        self.out = keras.layers.Dense(2, name='out')

      def call(self, inputs):
        hidden = self.hidden(inputs)
        return {'hidden': hidden, 'out': self.out(hidden)}

    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 3))

  def make_labels(self):
    return np.ones((5, 2), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs['out'] - labels))

  tf2_loss = tf1_loss

  def tf1_total_loss(self, outputs, labels):
    penalty = 0.3 * tf.reduce_sum(tf.square(outputs['hidden'])) / 2.0
    return self.tf1_loss(outputs, labels) + penalty

  def tf2_total_loss(self, layer, outputs, labels):
    return self.tf2_loss(outputs, labels) + 0.3 * tf.nn.l2_loss(self.passed(outputs['hidden']))

  def passed(self, hidden):
    return hidden

  def make_tf1_train_op(self, loss):
    return v1.train.GradientDescentOptimizer(0.1).minimize(loss)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs, training=True), labels)
    trained = layer.trainable_variables
    gradients = tape.gradient(loss, [one.value for one in trained])
    optimizer.apply_gradients(zip(gradients, trained, strict=True))
    return loss


class StepStopsTest(parameterized.TestCase):
  def test_right(self):
    verdict = tf2verify.verify(type('Case', (Penalized,), {}), ['training_steps'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_stopped(self):
    class Case(Penalized):
      def passed(self, hidden):
        return tf.stop_gradient(hidden)

    failed = tf2verify.verify(Case, ['training_steps']).first_failure
    text = ' '.join(failed.to_text().split())
    self.assertEqual(failed.stage, 'training_steps', text)
    self.assertEqual(failed.diagnosis.causes[0].rule, RULE, text)
    self.assertIn('remove tf.stop_gradient there', text)
    self.assertIn('0.3 * tf.nn.l2_loss(self.passed', text)


if __name__ == '__main__':
  absltest.main()
