"""Tests of tf2verify.stages.passes.training_fill: slots that fit zero alone."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'training_steps'
LAST = 'checkpoint'


class Wide(keras.layers.Layer):
  def __init__(self, start):
    super().__init__()
    self.table = keras.layers.Embedding(8, 1, start, name='table')

  def call(self, inputs):
    return tf.reduce_sum(self.table(inputs), 1)


class Ftrl(tf2verify.EquivalenceCase, abc.ABC):
  """The wide part of a model: a row per feature, of which TF1 updates those of the batch."""

  tf1_start = v1.zeros_initializer()
  start = 'zeros'
  l1 = 0.01

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('table', [8, 1], initializer=self.tf1_start)
    return tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), 1)

  def make_tf2_layer(self):
    return Wide(self.start)

  def make_inputs(self):
    return np.array([[1, 1, 2], [3, 1, 4]], np.int32)

  def make_labels(self):
    return np.ones([2, 1], np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01)

  def make_tf2_optimizer(self):
    return keras.optimizers.Ftrl(0.1, l1_regularization_strength=self.l1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    (table,) = layer.trainable_variables
    (gradient,) = tape.gradient(loss, [table.value])
    optimizer.apply([tf.convert_to_tensor(gradient)], [table])
    return loss


class WholeTableTest(LadderTestCase):
  def test_right(self):
    class Case(Ftrl):
      pass

    self.assert_passes(Case, LAST)

  def test_another_penalty(self):
    class Case(Ftrl):
      l1 = 0.02

    self.assert_first_failure(Case, STAGE, '0.02')

  def test_rows_that_do_not_start_with_zero_are_lost(self):
    class Case(Ftrl):
      tf1_start = v1.random_uniform_initializer(0.5, 1.0)
      start = keras.initializers.RandomUniform(0.5, 1.0)

    self.assert_first_failure(Case, STAGE, 'update table')

  def test_values_that_the_case_declares_stay(self):
    class Case(Ftrl):
      def fill_values(self, name, shape, dtype):
        return np.full(shape, 0.5, dtype)

    self.assert_first_failure(Case, STAGE, 'update table')


if __name__ == '__main__':
  absltest.main()
