"""A part that the loss of a training step lacks: its value and its gradients are one mistake."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'training_steps'
LEFT_OUT = "the sum of the regularization losses, which the port's step does not add"


class Port(keras.Model):
  def __init__(self):
    super().__init__()
    penalty = keras.regularizers.L2(0.005)
    self.hidden = keras.layers.Dense(5, 'tanh', name='hidden')
    self.last = keras.layers.Dense(3, name='last', kernel_regularizer=penalty)

  def call(self, inputs):
    return self.last(self.hidden(inputs))


class Clipped(tf2verify.EquivalenceCase, abc.ABC):
  """A penalty beside a clipping of all gradients together."""

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 5, tf.tanh, name='hidden')

    def penalty(weights):
      return 0.01 * tf.nn.l2_loss(weights)

    return v1.layers.dense(net, 3, name='last', kernel_regularizer=penalty)

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 4))

  def make_labels(self):
    return tf2verify.normal_inputs((6, 3), seed=3)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    variables = v1.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
    return v1.train.GradientDescentOptimizer(0.1).apply_gradients(
      zip(gradients, variables, strict=True)
    )

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1, global_clipnorm=0.5)

  def penalties(self, layer):
    return sum(layer.losses)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels) + self.penalties(layer)
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    optimizer.apply(gradients, variables)
    return loss


class LeftOutTest(LadderTestCase):
  def test_right(self):
    class Case(Clipped):
      pass

    self.assert_passes(Case, STAGE)

  def test_left_out(self):
    class Case(Clipped):
      def penalties(self, layer):
        return 0.0

    text = self.assert_first_failure(Case, STAGE, LEFT_OUT)
    self.assertNotIn('cause 1 of', text)
    self.assertNotIn('adds an extra', text)

  def test_left_out_beside_another_mistake(self):
    class Case(Clipped):
      def penalties(self, layer):
        return 0.0

      def make_tf2_optimizer(self):
        return keras.optimizers.SGD(0.2, global_clipnorm=0.5)

    self.assert_first_failure(Case, STAGE, LEFT_OUT, "the port's learning rate is 2 times TF1's")

  def test_a_step_may_tell_the_loss_without_penalties(self):
    class Case(Clipped):
      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs, training=True), labels)
          total = loss + self.penalties(layer)
        variables = layer.trainable_variables
        optimizer.apply(tape.gradient(total, [v.value for v in variables]), variables)
        return loss

    text = self.assert_passes(Case, STAGE).to_text()
    self.assertIn('returns the loss without the regularization losses, which it diff', text)

    class Twice(Case):
      def penalties(self, layer):
        return 2 * sum(layer.losses)

    text = self.assert_first_failure(Twice, STAGE, 'last/kernel')
    self.assertNotIn("the port's step does not add", text)

    class OtherRate(Case):
      def make_tf2_optimizer(self):
        return keras.optimizers.SGD(0.2, global_clipnorm=0.5)

    text = self.assert_first_failure(OtherRate, STAGE, "the port's learning rate is 2 times TF1's")
    self.assertNotIn("the port's step does not add", text)
    self.assertNotIn('loss (total)', text)

  def test_a_decay_of_another_variable_is_another_mistake(self):
    class Case(Clipped):
      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs, training=True), labels)
        variables = layer.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        kernel = layer.hidden.kernel.value
        gradients[0] = gradients[0] + 0.05 * kernel
        optimizer.apply(gradients, variables)
        return loss

    self.assert_first_failure(Case, STAGE, 'hidden/kernel')


class BehindAFailureTest(absltest.TestCase):
  def test_another_multiple_is_seen_whatever_the_model_computes(self):
    class Case(Clipped):
      def make_tf2_layer(self):
        port = Port()
        port.hidden = keras.layers.Dense(5, 'relu', name='hidden')
        return port

      def make_tf2_optimizer(self):
        return keras.optimizers.SGD(0.2, global_clipnorm=0.5)

      def penalties(self, layer):
        return 0.5 * sum(layer.losses)

    verdict = tf2verify.verify(Case, ['zero_randomness', 'gradients', 'loss', STAGE])
    stage = next(one for one in verdict.stages if one.stage == STAGE)
    self.assertIsNotNone(stage.diagnosis, stage.to_text())
    texts = [one.text for one in stage.diagnosis.causes]
    self.assertIn('has 0.5 times the penalty of variables', ' '.join(texts), stage.to_text())
    self.assertIn('rate', ' '.join(texts))


if __name__ == '__main__':
  absltest.main()
