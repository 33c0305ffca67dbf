"""A variable that is given to the other one of two optimizers."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'


class OtherOptimizerTest(absltest.TestCase):
  def _stage(self, moved=''):
    class Case(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training):
        wide, deep = (v1.layers.dense(inputs, 3, name=name) for name in ('wide', 'deep'))
        return wide + tf.tanh(deep)

      def make_tf2_layer(self):
        given = keras.Input((5,))
        wide, deep = (keras.layers.Dense(3, name=name)(given) for name in ('wide', 'deep'))
        return keras.Model(given, wide + keras.ops.tanh(deep))

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 5))

      def make_labels(self):
        return np.ones((4, 3), np.float32)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(labels - outputs))

      tf2_loss = tf1_loss

      def make_tf1_train_op(self, loss):
        moves = [
          optimizer.minimize(loss, var_list=v1.trainable_variables(scope))
          for scope, optimizer in (
            ('wide', v1.train.FtrlOptimizer(0.1, l2_regularization_strength=0.01)),
            ('deep', v1.train.AdagradOptimizer(0.05)),
          )
        ]
        return tf.group(*moves)

      def make_tf2_optimizer(self):
        ftrl = v1.train.FtrlOptimizer(0.1, l2_regularization_strength=0.01)
        return ftrl, v1.train.AdagradOptimizer(0.05)

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
        variables = [(v.path, v.value) for v in layer.trainable_variables]
        gradients = tape.gradient(loss, [v for _, v in variables])
        pairs = [(n, (g, v)) for (n, v), g in zip(variables, gradients, strict=True)]
        is_wide = {n: n.startswith('wide') and n != moved for n, _ in pairs}
        optimizer[0].apply_gradients([pair for n, pair in pairs if is_wide[n]])
        optimizer[1].apply_gradients([pair for n, pair in pairs if not is_wide[n]])
        return loss

    return tf2verify.verify(Case, [_STAGE]).stages[-1]

  def test_right_port(self):
    found = self._stage()
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_a_bias(self):
    found = self._stage('wide/bias')
    self.assertIs(found.status, Status.FAILED)
    assert found.diagnosis is not None
    text = found.diagnosis.causes[0].text
    self.assertStartsWith(text, 'wide/bias: TF1 updates it with the optimizer of wide/kernel')
    self.assertIn('the port with that of deep/', text)


if __name__ == '__main__':
  absltest.main()
