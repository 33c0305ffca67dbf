"""State in lists that are not in the order of the layer's variables."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'training_steps'
RATE, BETA_1, BETA_2, EPSILON = 0.1, 0.9, 0.999, 1e-3


class Adam:
  """State in lists, in the order of the variables of the first call."""

  beta_2 = BETA_2

  def __init__(self):
    self.t = tf.Variable(0, dtype=tf.int64)
    self.m, self.v = [], []

  def apply(self, gradients, variables):
    if not self.m:
      self.m = [tf.Variable(tf.zeros(w.shape)) for w in variables]
      self.v = [tf.Variable(tf.zeros(w.shape)) for w in variables]
    self.t.assign_add(1)
    t = tf.cast(self.t, tf.float32)
    rate = RATE * tf.sqrt(1.0 - BETA_2**t) / (1.0 - BETA_1**t)
    for g, w, m, v in zip(gradients, variables, self.m, self.v, strict=True):
      m.assign(BETA_1 * m + (1.0 - BETA_1) * g)
      v.assign(self.beta_2 * v + (1.0 - self.beta_2) * tf.square(g))
      w.assign_sub(rate * m / (tf.sqrt(v) + EPSILON))


class Own(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 3, tf.tanh, name='a')
    net = v1.layers.dense(net, 3, tf.tanh, name='b')
    return v1.layers.dense(net, 3, name='c')

  def make_tf2_layer(self):
    layers = [
      keras.layers.Dense(3, act, name=n)
      for n, act in zip('abc', ('tanh', 'tanh', None), strict=True)
    ]
    return keras.Sequential([keras.Input((3,)), *layers])

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 3))

  def make_labels(self):
    return tf2verify.normal_inputs((6, 3), seed=3)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(RATE, BETA_1, BETA_2, EPSILON)

  def make_tf2_optimizer(self):
    return Adam()

  def ordered(self, variables):
    return variables[::-1]

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    variables = self.ordered([variable.value for variable in layer.trainable_variables])
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss


class OrderTest(LadderTestCase):
  def test_another_order(self):
    class Case(Own):
      pass

    self.assert_passes(Case, STAGE)

    class OneMoved(Own):
      def ordered(self, variables):
        return [*variables[2:], *variables[:2]]

    self.assert_passes(OneMoved, STAGE)

  def test_a_moment_that_differs_is_seen_in_another_order(self):
    class Case(Own):
      def make_tf2_optimizer(self):
        made = Adam()
        made.beta_2 = 0.99
        return made

    text = self.assert_first_failure(Case, STAGE, 'second moment')
    self.assertNotIn('slot first moment', text)

  def test_state_that_is_exchanged_at_the_second_step(self):
    class Exchanging(Adam):
      def apply(self, gradients, variables):
        if self.m:
          self.m[0], self.m[2] = self.m[2], self.m[0]
        super().apply(gradients, variables)

    class Case(Own):
      def make_tf2_optimizer(self):
        return Exchanging()

    self.assert_first_failure(Case, STAGE, 'b/bias')


if __name__ == '__main__':
  absltest.main()
