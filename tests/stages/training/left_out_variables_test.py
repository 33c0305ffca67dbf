"""Variables that the port does not give to its optimizer: one cause, and no innocent line."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


def _dice(x, alpha):
  share = tf.sigmoid(x)
  return alpha * (1.0 - share) * x + share * x


class _Port(keras.Model):
  def __init__(self):
    super().__init__(name='port')
    self.first, self.second = keras.layers.Dense(4, name='one'), keras.layers.Dense(3, name='two')
    self.alpha_1 = self.add_weight(shape=(4,), initializer='zeros', name='alpha_1')
    self.alpha_2 = self.add_weight(shape=(3,), initializer='zeros', name='alpha_2')

  def call(self, inputs):
    hidden = _dice(self.first(inputs), tf.convert_to_tensor(self.alpha_1))
    return _dice(self.second(hidden), tf.convert_to_tensor(self.alpha_2))


class LeftOutVariablesTest(absltest.TestCase):
  def test_left_out_of_the_step(self):
    class Case(tf2verify.EquivalenceCase):
      def variable_names(self, name):
        return f'port/{name}'

      def build_tf1_graph(self, inputs, training):
        net = inputs
        for units, name in ((4, 'one'), (3, 'two')):
          net = v1.layers.dense(net, units, name=name)
          number = 1 if name == 'one' else 2
          net = _dice(net, v1.get_variable(f'alpha_{number}', [units], initializer=tf.zeros))
        return net

      def make_tf2_layer(self):
        return _Port()

      def make_inputs(self):
        return tf2verify.normal_inputs((5, 3))

      def make_labels(self):
        return np.zeros((5, 3), np.float32)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs - labels - 1.0))

      tf2_loss = tf1_loss

      def make_tf1_train_op(self, loss):
        pairs = v1.train.AdagradOptimizer(0.1).compute_gradients(loss)
        clipped = [(tf.clip_by_norm(gradient, 0.5), variable) for gradient, variable in pairs]
        return v1.train.AdagradOptimizer(0.1).apply_gradients(clipped)

      def make_tf2_optimizer(self):
        return keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.1, epsilon=0.0)

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs, training=True), labels)
        trained = [one for one in layer.trainable_variables if 'alpha' not in one.path]
        gradients = tape.gradient(loss, [one.value for one in trained])
        clipped = [tf.clip_by_norm(gradient, 0.5) for gradient in gradients]
        optimizer.apply_gradients(zip(clipped, trained, strict=True))
        return loss

    failed = tf2verify.verify(Case, ['training_steps']).first_failure
    text = ' '.join(failed.to_text().split())
    self.assertEqual(failed.stage, 'training_steps', text)
    self.assertIn('the step of TF1 updates alpha_1, alpha_2, that of the port does not', text)
    self.assertNotIn('cause 1 of', text)
    self.assertNotIn('first divergence', text)


if __name__ == '__main__':
  absltest.main()
