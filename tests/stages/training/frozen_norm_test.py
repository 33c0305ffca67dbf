"""A batch norm that is frozen in the training step: in Keras it runs in inference mode then."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class OfHead(tf2verify.EquivalenceCase, abc.ABC):
  """The first stage of a detector, in which the backbone is not trained."""

  freezes = False

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 4, use_bias=False, name='stem')
    net = v1.layers.batch_normalization(net, training=training, name='norm')
    return v1.layers.dense(tf.tanh(net), 2, name='head')

  def make_tf2_layer(self):
    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.stem = keras.layers.Dense(4, use_bias=False, name='stem')
        self.norm = keras.layers.BatchNormalization(name='norm')
        self.head = keras.layers.Dense(2, name='head')

      def call(self, inputs, training=False):
        return self.head(keras.ops.tanh(self.norm(self.stem(inputs), training=training)))

    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 5))

  def make_labels(self):
    return tf2verify.normal_inputs((6, 2), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
      head = v1.trainable_variables('head')
      return v1.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=head)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    if self.freezes:
      layer.norm.trainable = False
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    head = layer.head.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, head), head, strict=True))
    return loss


class FrozenNormTest(absltest.TestCase):
  def test_it_runs_in_inference_mode(self):
    case = type('Case', (OfHead,), {'freezes': True})
    failure = tf2verify.verify(case, stages=['training_steps']).first_failure
    self.assertEqual(failure.stage, 'training_steps', failure.to_text())
    cause, *_ = failure.diagnosis.causes
    self.assertEqual(cause.rule, 'batch_norm_mode', failure.to_text())
    self.assertIn('trainable=False, which in Keras', cause.text)

  def test_the_right_step(self):
    verdict = tf2verify.verify(type('Case', (OfHead,), {}), stages=['training_steps'])
    self.assertTrue(verdict.passed, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
