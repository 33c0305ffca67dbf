"""Weight decay of variables that the other side leaves out."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'
_RATE, _DECAY = 0.01, 0.1


class DecayedVariablesTest(absltest.TestCase):
  def _stage(self, decayed, excluded):
    class Case(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training):
        return v1.layers.dense(tf.tanh(v1.layers.dense(inputs, 4, name='one')), 3, name='two')

      def make_tf2_layer(self):
        return keras.Sequential(
          [keras.layers.Dense(4, 'tanh', name='one'), keras.layers.Dense(3, name='two')]
        )

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 5))

      def make_labels(self):
        return np.ones((4, 3), np.float32)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(labels - outputs))

      tf2_loss = tf1_loss

      def make_tf1_train_op(self, loss):
        optimizer = v1.train.AdamOptimizer(_RATE)
        pairs = optimizer.compute_gradients(loss)
        with tf.control_dependencies([gradient for gradient, _ in pairs]):
          decays = [
            v.assign_sub(_RATE * _DECAY * v)
            for v in v1.trainable_variables()
            if any(word in v.op.name for word in decayed)
          ]
        with tf.control_dependencies(decays):
          return optimizer.apply_gradients(pairs)

      def make_tf2_optimizer(self):
        optimizer = keras.optimizers.AdamW(_RATE, weight_decay=_DECAY, epsilon=1e-8)
        optimizer.exclude_from_weight_decay(var_names=excluded)
        return optimizer

    return tf2verify.verify(Case, [_STAGE]).stages[-1]

  def _cause(self, *members):
    found = self._stage(*members)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    assert found.diagnosis is not None
    return found.diagnosis.causes[0].text

  def test_right_port(self):
    found = self._stage(['kernel'], ['bias'])
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_biases_of_the_port(self):
    text = self._cause(['kernel'], [])
    self.assertStartsWith(text, 'one/bias, two/bias: the port decays them')
    self.assertIn('0.001 of the value', text)

  def test_biases_of_tf1(self):
    text = self._cause(['kernel', 'bias'], ['bias'])
    self.assertStartsWith(text, 'one/bias, two/bias: TF1 decays them')


if __name__ == '__main__':
  absltest.main()
