"""Zeros in the port for a variable that the loss does not depend on, where TF1 has no gradient."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'


class UnconnectedTest(absltest.TestCase):
  def _verdict(self, make, shift=0.0):
    class Case(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training):
        return {name: v1.layers.dense(inputs, 3, name=name) for name in ('main', 'aux')}

      def make_tf2_layer(self):
        class Port(keras.Model):
          def __init__(self):
            super().__init__(name='port')
            self.main = keras.layers.Dense(3, name='main')
            self.aux = keras.layers.Dense(3, name='aux')

          def call(self, inputs):
            return {'main': self.main(inputs), 'aux': self.aux(inputs)}

        return Port()

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 5))

      def make_labels(self):
        return np.ones((4, 3), np.float32)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(labels - outputs['main']))

      tf2_loss = tf1_loss

      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(0.01)

      def make_tf2_optimizer(self):
        return make()

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
        variables = layer.trainable_variables
        zero = tf.UnconnectedGradients.ZERO
        sources = [v.value for v in variables]
        gradients = tape.gradient(loss, sources, unconnected_gradients=zero)
        pairs = list(zip(gradients, variables, strict=True))
        optimizer.apply_gradients([(g + shift, v) if 'aux' in v.path else (g, v) for g, v in pairs])
        return loss

    return tf2verify.verify(Case, [_STAGE]).stages[-1]

  def test_an_optimizer_that_moves_nothing(self):
    found = self._verdict(lambda: keras.optimizers.Adam(0.01, epsilon=1e-8))
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_weight_decay(self):
    make = keras.optimizers.AdamW
    found = self._verdict(lambda: make(0.01, epsilon=1e-8, weight_decay=0.1))
    self.assertIs(found.status, Status.FAILED)
    self.assertIn('aux', found.to_text())

  def test_no_zeros(self):
    found = self._verdict(lambda: keras.optimizers.Adam(0.01, epsilon=1e-8), shift=1e-3)
    self.assertIs(found.status, Status.FAILED)
    self.assertIn('gradient aux', found.to_text())


if __name__ == '__main__':
  absltest.main()
