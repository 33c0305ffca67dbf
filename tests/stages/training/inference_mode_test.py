"""Steps that call the layer as in inference."""

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
_STAGE = 'training_steps'


def _case(**in_step):
  """Returns a case whose step calls the layer with some arguments."""

  class Case(tiny_models.OneModel):
    def model(self, inputs, training):
      net = inputs @ tiny_models.kernel()
      net = v1.nn.dropout(net, rate=0.4) if training else net
      return net + tiny_models.bias()

    def make_labels(self):
      return tf2verify.normal_inputs((4, 3), seed=3)

    def tf1_loss(self, outputs, labels):
      return tf.reduce_mean((outputs - labels) ** 2)

    tf2_loss = tf1_loss

    def make_tf1_train_op(self, loss):
      return v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    def make_tf2_optimizer(self):
      return tf.keras.optimizers.SGD(0.1)

    def tf2_train_step(self, layer, inputs, labels, optimizer):
      with tf.GradientTape() as tape:
        loss = self.tf2_loss(layer(inputs, **in_step), labels)
      variables = layer.trainable_variables
      optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
      return loss

  return Case


class InferenceInStepTest(LadderTestCase):
  def test_a_step_without_dropout(self):
    self.assert_first_failure(
      _case(training=False), _STAGE, 'the step of the port draws no random numbers', 'training=True'
    )

  def test_a_step_with_it(self):
    verdict = tf2verify.verify(_case(training=True), stages=[_STAGE])
    self.assertIs(verdict.stages[-1].status, tf2verify.Status.PASSED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
