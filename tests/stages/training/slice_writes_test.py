"""Steps of a port that write a part of a variable: the row of the padding, say."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
_SIZES = (7, 3)


class _Port(tf.Module):
  def __init__(self):
    super().__init__(name='port')
    self.table = tf.Variable(keras.initializers.GlorotUniform()(_SIZES), name='table')

  def __call__(self, inputs):
    return tf.reduce_sum(tf.gather(self.table, inputs), axis=1)


class PaddedCase(tf2verify.EquivalenceCase, abc.ABC):
  training_modes = (True,)
  rows = slice(0, 1)  # that the port sets to zero
  rate = 0.1

  def build_tf1_graph(self, inputs, training):
    self.table = v1.get_variable('table', _SIZES)
    return tf.reduce_sum(tf.nn.embedding_lookup(self.table, inputs), axis=1)

  def make_tf2_layer(self):
    return _Port()

  def make_inputs(self):
    return np.array([[1, 0, 3], [6, 2, 0], [4, 5, 1]], np.int32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - 1.0))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    count = v1.train.get_or_create_global_step()
    (gradient,) = tf.gradients(loss, [self.table])
    update = self.table.assign_sub(0.1 * tf.convert_to_tensor(gradient))
    with tf.control_dependencies([update]):
      masked = self.table.read_value() * np.array([[0.0]] + [[1.0]] * 6, np.float32)
      zeroed = self.table.assign(masked)
    with tf.control_dependencies([zeroed]):
      return count.assign_add(1)

  def make_tf2_optimizer(self):
    return {}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    (table,) = layer.trainable_variables
    table.assign_sub(self.rate * tf.convert_to_tensor(tape.gradient(loss, table)))
    table[self.rows].assign(tf.zeros((1, _SIZES[1])))
    return loss


def _training(**hooks):
  verdict = tf2verify.verify(type('Case', (PaddedCase,), hooks), ['training_steps'])
  return next(one for one in verdict.stages if one.stage == 'training_steps')


class SliceWritesTest(parameterized.TestCase):
  def test_right_port(self):
    stage = _training()
    self.assertTrue(stage.passed, stage.to_text())

  def test_a_wrong_rate_is_proven(self):
    stage = _training(rate=0.2)
    causes = stage.diagnosis.causes
    self.assertTrue(causes and causes[0].is_proven, stage.to_text())
    self.assertIn('0.2', causes[0].text)

  def test_another_row_is_at_its_line(self):
    stage = _training(rows=slice(1, 2))
    self.assertFalse(stage.passed)
    text = ' '.join(stage.to_text().split())
    self.assertNotIn('cannot be traced', text)
    self.assertIn('table[self.rows].assign(tf.zeros((1, _SIZES[1])))', text)


if __name__ == '__main__':
  absltest.main()
