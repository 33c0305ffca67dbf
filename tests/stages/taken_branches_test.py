"""What is wrong in a branch of a condition of tf1, which a run takes."""

import abc

import tensorflow as tf
import tf_keras
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class Conditional(tf2verify.EquivalenceCase, abc.ABC):
  rate = 0.4

  def build_tf1_graph(self, inputs, training):
    is_training = v1.placeholder_with_default(training, [], name='is_training')
    x = v1.layers.dense(inputs, 6, name='a')
    x = tf.cond(is_training, lambda: v1.nn.dropout(x, keep_prob=0.6), lambda: tf.identity(x))
    return v1.layers.dense(x, 2, name='b')

  def make_tf2_layer(self):
    rate = self.rate

    class Net(tf_keras.Model):
      def __init__(self):
        super().__init__()
        self.a = tf_keras.layers.Dense(6, name='a')
        self.b = tf_keras.layers.Dense(2, name='b')

      def call(self, x, training=False):
        x = self.a(x)
        return self.b(tf.nn.dropout(x, rate) if training else x)

    return Net()

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4))


class Switched(Conditional, abc.ABC):
  """Both sides choose by a value of the inputs."""

  def build_tf1_graph(self, inputs, training):
    x = v1.layers.dense(inputs, 6, name='a')
    return tf.cond(tf.reduce_sum(inputs) > -1000.0, lambda: tf.tanh(x) + 1.0, lambda: x)

  def make_tf2_layer(self):
    class Net(tf_keras.Model):
      def __init__(self):
        super().__init__()
        self.a = tf_keras.layers.Dense(6, name='a')

      def call(self, x):
        hidden = self.a(x)
        is_large = tf.reduce_sum(x) > -1000.0
        return tf.cond(is_large, lambda: tf.sigmoid(hidden) + 1.0, lambda: hidden)

    return Net()


class TakenBranchesTest(absltest.TestCase):
  def test_right_port(self):
    verdict = tf2verify.verify(type('Case', (Conditional,), {}), ['seeded_constant'])
    self.assertTrue(verdict.passed, verdict)

  def test_rate_of_a_dropout_in_a_branch(self):
    verdict = tf2verify.verify(type('Case', (Conditional,), {'rate': 0.6}), ['seeded_constant'])
    text = verdict.first_failure.to_text()
    self.assertIn('the dropout drops 0.4 of the elements in tf1 and 0.6 in the port', text)
    self.assertIn('cause (proven', text)
    self.assertIn('taken_branches_test.py:20, in <lambda>', text)

  def test_operation_in_branches_of_both_sides(self):
    verdict = tf2verify.verify(type('Case', (Switched,), {}), ['zero_randomness'])
    text = verdict.first_failure.to_text()
    self.assertIn('cause (proven', text)
    self.assertIn('the port computes Sigmoid, tf1 computes Tanh', text)


if __name__ == '__main__':
  absltest.main()
