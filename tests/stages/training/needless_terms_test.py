"""Terms of an update by hand that TF1 leaves out for some variables."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1


class Decaying(tf2verify.EquivalenceCase, abc.ABC):
  left_out = 'bias'

  def build_tf1_graph(self, inputs, training):
    half = v1.constant_initializer(0.5)
    net = v1.layers.dense(inputs, 3, tf.tanh, bias_initializer=half, name='a')
    return v1.layers.dense(net, 2, bias_initializer=half, name='b')

  def make_tf2_layer(self):
    half = keras.initializers.Constant(0.5)
    first = keras.layers.Dense(3, 'tanh', bias_initializer=half, name='a')
    return keras.Sequential([first, keras.layers.Dense(2, bias_initializer=half, name='b')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 2), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    updates = []
    for gradient, variable in zip(tf.gradients(loss, variables), variables, strict=True):
      update = 0.1 * gradient
      if 'bias' not in variable.name:
        update += 0.01 * tf.sin(variable)
      updates.append(variable.assign_sub(0.5 * update))
    return tf.group(*updates)

  def make_tf2_optimizer(self):
    return tf.Module()  # the step updates by itself

  def tf2_train_step(self, layer, inputs, labels):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    for gradient, variable in zip(tape.gradient(loss, variables), variables, strict=True):
      update = 0.1 * gradient
      if self.left_out not in variable.path:
        update += 0.01 * tf.sin(variable)
      variable.assign_sub(0.5 * update)
    return loss


class NeedlessTermsTest(absltest.TestCase):
  def test_right(self):
    class Right(Decaying):
      pass

    verdict = tf2verify.verify(Right, stages=['training_steps'])
    self.assertTrue(verdict.passed, verdict.to_text())

  def test_a_term_that_tf1_adds_to_kernels_only(self):
    class Wrong(Decaying):
      left_out = 'nothing'

    causes, _ = causes_of(self, Wrong, 'training_steps')
    self.assertIn('update += 0.01 * tf.sin(variable)', causes[0])
    self.assertRegex(
      causes[0], r'the port has .* in front of .*, which tf1 does not have there: it takes'
    )


if __name__ == '__main__':
  absltest.main()
