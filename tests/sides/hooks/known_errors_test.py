"""What is said of errors of TensorFlow and Keras that name no fix."""

import abc

import keras
import tensorflow as tf
import tf_keras
from absl.testing import absltest

import tf2verify
from tf2verify.sides.hooks import known_errors

v1 = tf.compat.v1


class Model(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='logits')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='logits')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss


class OwnPlaceholder(Model, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    keep = v1.placeholder(tf.float32, name='keep_prob')
    return keep * super().build_tf1_graph(inputs, training)


class EagerVariable(Model, abc.ABC):
  weights = tf.Variable(tf.ones([5, 3]))

  def build_tf1_graph(self, inputs, training):
    return inputs @ self.weights


class OtherOptimizer(Model, abc.ABC):
  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(0.1)

  def make_tf2_optimizer(self):
    return tf_keras.optimizers.SGD(0.1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    variables = layer.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


class KnownErrorsTest(absltest.TestCase):
  def test_a_fix_is_said(self):
    for case, stage, said in (
      (OwnPlaceholder, 'zero_randomness', "the placeholder 'keep_prob' is made by the code of the"),
      (EagerVariable, 'variable_inventory', 'a variable or a tensor that was made outside of the'),
      (OtherOptimizer, 'training_steps', 'the optimizer is one of tf-keras (Keras 2), and the'),
    ):
      verdict = tf2verify.verify(type('Case', (case,), {}), stages=[stage])
      with self.subTest(case=case.__name__):
        self.assertEqual(verdict.first_failure.status.value, 'ERROR')
        self.assertIn(said, verdict.first_failure.error.summary)

  def test_placeholders_of_a_module(self):
    with self.assertRaisesRegex(RuntimeError, 'not compatible with eager') as raised:
      v1.placeholder(tf.float32)
    self.assertIn('it was called where no graph is built', known_errors.hint(str(raised.exception)))

  def test_others_get_none(self):
    self.assertEqual(known_errors.hint('shapes are incompatible'), '')


if __name__ == '__main__':
  absltest.main()
