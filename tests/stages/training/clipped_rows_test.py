"""Gradients of lookups with repeated rows, which TF1 clips before these are added up."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1


class Clipped(tf2verify.EquivalenceCase, abc.ABC):
  dense_first = False

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('words', [6, 3], initializer=v1.random_normal_initializer())
    return tf.reduce_sum(tf.nn.embedding_lookup(table, inputs) ** 2, 1)

  def make_tf2_layer(self):
    small = keras.initializers.RandomNormal(stddev=1.0)
    words = keras.layers.Embedding(6, 3, embeddings_initializer=small, name='words')
    return keras.Sequential([words, keras.layers.Lambda(lambda net: tf.reduce_sum(net**2, 1))])

  def make_inputs(self):
    return np.array([[1, 1, 1, 2], [2, 1, 3, 3]], np.int32)

  def make_labels(self):
    return tf2verify.normal_inputs((2, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.AdagradOptimizer(0.1)
    pairs = optimizer.compute_gradients(loss)
    return optimizer.apply_gradients([(tf.clip_by_norm(g, 0.1), v) for g, v in pairs])

  def make_tf2_optimizer(self):
    return keras.optimizers.Adagrad(0.1, epsilon=0.0)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    (gradient,) = tape.gradient(loss, layer.trainable_variables)
    if self.dense_first:
      clipped = tf.clip_by_norm(tf.convert_to_tensor(gradient), 0.1)
    else:
      clipped = tf.convert_to_tensor(tf.clip_by_norm(gradient, 0.1))
    optimizer.apply([clipped], layer.trainable_variables)
    return loss


class ClippedRowsTest(absltest.TestCase):
  def test_right(self):
    causes, text = causes_of(self, Clipped, 'training_steps')
    self.assertEmpty(causes, text)

  def test_made_dense_before_it_is_clipped(self):
    causes, text = causes_of(self, Clipped, 'training_steps', dense_first=True)
    self.assertRegex('; '.join(causes), 'TF1 clips it by the norm of its rows as they are', text)
    self.assertNotRegex('; '.join(causes), 'squares each row', text)


if __name__ == '__main__':
  absltest.main()
