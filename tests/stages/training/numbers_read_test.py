"""Steps in which Python reads numbers: `if int(step) % 2 == 0`, `float(norm)`."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.losses.loss_lines_test import line_of

v1 = tf.compat.v1
_RATE, _CLIP, _BETA = 0.05, 0.2, 0.9


class ReadsNumbers(tf2verify.EquivalenceCase, abc.ABC):
  """Adam without moments of its own, at a rate that decays, with gradients that are clipped."""

  training_modes = (True,)
  training_steps_to_take = 3
  variable_names = {'kernel': 'port/kernel'}
  relate_graphs = True

  def build_tf1_graph(self, inputs, training):
    return tf.tanh(inputs @ v1.get_variable('kernel', (3, 2)))

  def make_tf2_layer(self):
    class Port(keras.layers.Layer):
      def build(self, shape):
        self.kernel = self.add_weight(shape=(3, 2), name='kernel')

      def call(self, inputs):
        return tf.tanh(inputs @ self.kernel)

    return Port(name='port')

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 2), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = _RATE / (1.0 + 0.5 * tf.cast(step, tf.float32))
    optimizer = v1.train.GradientDescentOptimizer(rate)
    pairs = optimizer.compute_gradients(loss)
    pairs = [(tf.clip_by_norm(gradient, _CLIP), variable) for gradient, variable in pairs]
    return optimizer.apply_gradients(pairs, global_step=step)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(_RATE)

  def loss_of(self, outputs, labels):
    return self.tf2_loss(outputs, labels)

  def clipped(self, gradient):
    return tf.clip_by_norm(gradient, _CLIP)

  def rate_at(self, step):
    return _RATE / (1.0 + 0.5 * step)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.loss_of(layer(inputs), labels)
    if not np.isfinite(loss.numpy()):
      return None
    gradients = [self.clipped(one) for one in tape.gradient(loss, layer.trainable_variables)]
    optimizer.learning_rate = float(self.rate_at(int(optimizer.iterations)))
    optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
    return float(loss)


class RightTest(absltest.TestCase):
  def test_a_right_port_passes_and_is_not_called_proven(self):
    verdict = tf2verify.verify(ReadsNumbers, stages=['training_steps']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertFalse(verdict.proven.is_whole)
    reason = verdict.proven.reason
    self.assertIn('Python reads numbers of the step', reason)
    for text in ('isfinite', 'int('):
      line = line_of(ReadsNumbers.tf2_train_step, text)
      self.assertIn(f'numbers_read_test.py:{line}', reason)

  def test_a_rate_that_python_computes_is_not_compared_at_later_counts(self):
    class Case(ReadsNumbers):
      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
        gradients = [self.clipped(one) for one in tape.gradient(loss, layer.trainable_variables)]
        rate = self.rate_at(int(optimizer.count))
        for variable, gradient in zip(layer.trainable_variables, gradients, strict=True):
          variable.assign_sub(rate * gradient)
        optimizer.count.assign_add(1)
        return loss

      def make_tf2_optimizer(self):
        class Counts(tf.Module):
          def __init__(self):
            self.count = tf.Variable(0, dtype=tf.int64)

        return Counts()

    verdict = tf2verify.verify(Case, stages=['training_steps']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertIn('Python reads numbers of the step', verdict.proven.reason)


class WrongTest(absltest.TestCase):
  def _diagnosed(self, case):
    verdict = tf2verify.verify(case, stages=['training_steps']).stages[-1]
    text = verdict.to_text()
    self.assertIs(verdict.status, tf2verify.Status.FAILED, text)
    self.assertNotIn('cannot be traced', text)
    return verdict.diagnosis, text

  def test_another_clipping(self):
    class Case(ReadsNumbers):
      def clipped(self, gradient):
        return tf.clip_by_norm(gradient, 0.1)

    diagnosis, text = self._diagnosed(Case)
    self.assertTrue(diagnosis.causes[0].is_proven, text)
    self.assertIn('0.1', diagnosis.causes[0].text)

  def test_the_loss_that_is_returned_as_a_number(self):
    class Case(ReadsNumbers):
      def loss_of(self, outputs, labels):
        return tf.reduce_mean(tf.abs(outputs - labels))

    diagnosis, text = self._diagnosed(Case)
    self.assertEqual(diagnosis.sources[0].tf2_source.line, line_of(Case.loss_of, 'tf.abs'), text)

  def test_another_rate_is_a_number_on_both_sides(self):
    class Case(ReadsNumbers):
      def rate_at(self, step):
        return 0.04 / (1.0 + 0.5 * step)

    _, text = self._diagnosed(Case)
    self.assertIn('0.04', text)
    self.assertIn('cause', text)


if __name__ == '__main__':
  absltest.main()
