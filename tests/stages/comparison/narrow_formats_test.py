"""Models that compute in bfloat16: rounding is that of the format, not that of their weights."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
keras = tf.keras
STAGE = 'training_steps'
WELL = (tf2verify.Status.PASSED, tf2verify.Status.INCONCLUSIVE)


def narrow(value):
  return tf.cast(value, tf.bfloat16)


class Port(tf.Module):
  """Means as sums that are divided: the same numbers, rounded elsewhere."""

  def __init__(self):
    super().__init__()
    start = keras.initializers.GlorotNormal()
    self.kernel = tf.Variable(lambda: start([16, 16]), name='kernel')
    self.bias = tf.Variable(lambda: tf.zeros([16]), name='bias')

  def __call__(self, inputs):
    net = tf.einsum('bi,ij->bj', narrow(inputs), narrow(self.kernel))
    net = tf.nn.relu(tf.nn.bias_add(net, narrow(self.bias)))
    return tf.cast(net - tf.reduce_sum(net, 1, keepdims=True) / 16, tf.float32)


class Narrow(tf2verify.EquivalenceCase, abc.ABC):
  rate = 0.01

  def build_tf1_graph(self, inputs, training):
    kernel = v1.get_variable('kernel', [16, 16], initializer=v1.glorot_normal_initializer())
    bias = v1.get_variable('bias', [16], initializer=v1.zeros_initializer())
    net = tf.nn.relu(tf.matmul(narrow(inputs), narrow(kernel)) + narrow(bias))
    return tf.cast(net - tf.reduce_mean(net, 1, keepdims=True), tf.float32)

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 16))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(self.rate, epsilon=1e-8)


class NarrowFormatsTest(absltest.TestCase):
  def test_a_right_port_is_not_blamed(self):
    class Case(Narrow):
      pass

    verdict = tf2verify.verify(Case)
    for stage in verdict.stages:
      self.assertNotEqual(stage.status, tf2verify.Status.FAILED, stage.to_text())
    steps = verdict.stages[7]
    self.assertIn(steps.status, WELL)
    self.assertIn('computes with 8 significant bits in places', steps.to_text())

  def test_a_loss_of_another_size(self):
    class Case(Narrow):
      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
          larger = 1.1 * loss
        variables = [layer.kernel, layer.bias]
        optimizer.apply_gradients(zip(tape.gradient(larger, variables), variables, strict=True))
        return loss

    self.assert_steps_fail(Case, 'gradient')

  def test_another_rate(self):
    class Case(Narrow):
      rate = 0.0101

    self.assert_steps_fail(Case, 'learning rate')

  def assert_steps_fail(self, case, words):
    """Asserts that the steps are the first to fail: bfloat16 of 2.16 leaves earlier stages open."""
    verdict = tf2verify.verify(case, stages=['1-8'])
    text = verdict.to_text()
    failed = [stage for stage in verdict.stages if stage.status is tf2verify.Status.FAILED]
    self.assertEqual(failed[0].stage, STAGE, text)
    self.assertIn(words, failed[0].to_text())


if __name__ == '__main__':
  absltest.main()
