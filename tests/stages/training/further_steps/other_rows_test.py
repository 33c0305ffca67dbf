"""Tests of tf2verify.stages.training.further_steps.other_rows: what a batch does not look up."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'training_steps'
OTHER = 'update of rows without a gradient table'


class Port(keras.layers.Layer):
  def __init__(self):
    super().__init__()
    self.table = keras.layers.Embedding(8, 3, 'zeros', name='table')

  def call(self, inputs):
    return tf.reduce_sum(self.table(inputs), 1)


class Embedded(tf2verify.EquivalenceCase, abc.ABC):
  ids = ((1, 1, 2), (3, 1, 4))

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('table', [8, 3], initializer=v1.zeros_initializer())
    return tf.reduce_sum(tf.nn.embedding_lookup(table, inputs), 1)

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    return np.array(self.ids, np.int32)

  def make_labels(self):
    return np.ones([2, 3], np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss


class Momentum(Embedded, abc.ABC):
  def make_tf1_optimizer(self):
    return v1.train.MomentumOptimizer(0.1, 0.9)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1, momentum=0.9)


class LazyMomentum(Momentum, abc.ABC):
  """A step of its own, which leaves the other rows alone."""

  def make_tf2_optimizer(self):
    return {}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    (table,) = layer.trainable_variables
    gradient = tf.convert_to_tensor(tape.gradient(loss, [table.value])[0])
    sums = optimizer.setdefault('sums', tf.Variable(tf.zeros_like(gradient)))
    used = tf.reduce_any(gradient != 0, axis=1, keepdims=True)
    sums.assign(tf.where(used, 0.9 * sums + gradient, sums))
    table.assign(tf.where(used, table.value - 0.1 * sums, table.value))
    return loss


class BesideEdges(Momentum, abc.ABC):
  """Looked up by examples, with an input that is of no example."""

  def build_tf1_graph(self, inputs, training):
    return super().build_tf1_graph(inputs['ids'], training) + tf.reduce_mean(inputs['edges'])

  def make_tf2_layer(self):
    port = Port()
    call = port.call
    port.call = lambda inputs: call(inputs['ids']) + tf.reduce_mean(inputs['edges'])
    return port

  def make_inputs(self):
    edges = np.linspace(0.0, 1.0, 5, dtype=np.float32)
    return {'ids': super().make_inputs(), 'edges': edges, 'weights': np.ones(2, np.float32)}


class OtherRowsTest(LadderTestCase):
  def test_all_rows_are_moved_on(self):
    case = type('Case', (Momentum,), {})
    words = 'TF1 updates only the rows of the batch', 'the port also updates all other rows'
    self.assert_first_failure(case, STAGE, OTHER, *words)

  def test_rows_of_the_batch_alone(self):
    self.assertNotIn('was not compared', self.assert_passes(LazyMomentum, STAGE).to_text())

  def test_adam_moves_all_rows_on_both_sides(self):
    class Case(Embedded):
      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(0.01, epsilon=1e-3)

      def make_tf2_optimizer(self):
        return keras.optimizers.Adam(0.01, epsilon=1e-3)

    verdict = tf2verify.verify(Case, stages=[STAGE]).stages[-1]
    self.assertNotIn(OTHER, verdict.to_text())

  def test_the_port_alone_is_lazy(self):
    class Case(LazyMomentum):
      def build_tf1_graph(self, inputs, training):
        return super().build_tf1_graph(inputs, training)

      def make_tf1_train_op(self, loss):
        (table,) = v1.trainable_variables()
        gradient = tf.convert_to_tensor(tf.gradients(loss, table)[0])
        sums = v1.get_variable('sums', [8, 3], initializer=v1.zeros_initializer(), trainable=False)
        new = sums.assign(0.9 * sums + gradient)
        return table.assign_sub(0.1 * new)

    # TF1's gradient has rows, and its update is dense.
    self.assert_first_failure(Case, STAGE, OTHER, 'TF1 updates all rows of the table')

  def test_inputs_of_another_length_are_no_examples(self):
    class Case(BesideEdges):
      pass

    self.assert_first_failure(Case, STAGE, OTHER)

  def test_examples_that_look_up_the_same_rows(self):
    case = type('Case', (Momentum,), {'ids': ((1, 2, 3), (3, 2, 1))})
    text = self.assert_passes(case, STAGE).to_text()
    self.assertIn('every example looks up the same rows', text)

  def test_gradients_without_rows(self):
    class Case(Momentum):
      def build_tf1_graph(self, inputs, training):
        table = v1.get_variable('table', [8, 3], initializer=v1.zeros_initializer())
        return tf.reduce_sum(tf.one_hot(inputs, 8) @ table, 1)

    text = self.assert_passes(Case, STAGE).to_text()
    self.assertNotIn('does not look up', text)


if __name__ == '__main__':
  absltest.main()
