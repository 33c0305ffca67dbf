"""Random numbers that TF1 draws once and reads twice, and the port draws again."""

import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class Noisy(tf.keras.layers.Layer):
  def __init__(self, again):
    super().__init__(name='noisy')
    self.again = again

  def build(self, shape):
    self.kernel = self.add_weight('kernel', [shape[-1], 3])
    self.bias = self.add_weight('bias', [3], initializer='ones')

  def call(self, inputs):
    noise = tf.tanh(tf.random.normal([3]))
    net = inputs @ (self.kernel * noise)
    return net + self.bias * (tf.random.normal([3]) if self.again else noise)


def _case(again):
  class Case(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      with v1.variable_scope('noisy'):
        kernel = v1.get_variable('kernel', [4, 3])
        bias = v1.get_variable('bias', [3], initializer=v1.ones_initializer())
        noise = tf.tanh(v1.random_normal([3]))
        return tf.matmul(inputs, kernel * noise) + bias * noise

    def make_tf2_layer(self):
      return Noisy(again)

    def make_inputs(self):
      return tf2verify.normal_inputs((5, 4))

  return Case


class DrawnAgainTest(absltest.TestCase):
  def test_once(self):
    verdict = tf2verify.verify(_case(False), ['seeded_num_random_ops'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_again(self):
    failed = tf2verify.verify(_case(True), ['seeded_constant']).first_failure
    text = ' '.join(failed.to_text().split())
    self.assertIn('the port draws random numbers of its own on the way to', text)
    self.assertIn('tf1 reads there what it has drawn already', text)
    self.assertNotIn('draws none', text)


if __name__ == '__main__':
  absltest.main()
