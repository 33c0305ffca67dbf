"""A model that reads the global step, and the port's variable for it."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1


def _temperature(step):
  return tf.exp(-0.5 * tf.cast(step, tf.float32))


class _ShimPort(tf.keras.layers.Layer):
  def __init__(self, dtype):
    super().__init__()
    self.steps = tf.Variable(0, dtype=dtype, trainable=False, name='steps')

  @tiny_models.under_shim
  def call(self, inputs, training=False):
    return v1.layers.dense(inputs, 2, name='fc') * _temperature(self.steps)


class _NativePort(keras.Model):
  def __init__(self, dtype):
    super().__init__(name='port')
    self.steps = self.add_weight(
      name='steps', shape=(), dtype=dtype, initializer='zeros', trainable=False
    )
    self.head = keras.layers.Dense(2, name='head')
    self.extra = keras.layers.Dense(2, name='extra')

  def call(self, inputs, training=False):
    return (self.head(inputs) + self.extra(inputs)) * _temperature(self.steps)


class _Annealed(tf2verify.EquivalenceCase, abc.ABC):
  """Outputs that fall with the steps, trained by gradient descent."""

  port = _ShimPort
  dtype = 'int64'
  counted = 1
  reads = True

  def build_tf1_graph(self, inputs, training):
    step = v1.train.get_or_create_global_step()
    net = v1.layers.dense(inputs, 2, name='fc')
    if self.port is _NativePort:
      net += v1.layers.dense(inputs, 2, name='more')
    return net * _temperature(step if self.reads else 0)

  def make_tf2_layer(self):
    return type(self).port(self.dtype)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))

  def make_labels(self):
    return np.ones((4, 2), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_global_step()
    return v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1) if self.port is _NativePort else tf.keras.optimizers.SGD(0.1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    weights = layer.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    layer.steps.assign_add(self.counted)
    return loss


class StepCounterTest(LadderTestCase, parameterized.TestCase):
  @parameterized.parameters(_ShimPort, _NativePort)
  def test_is_paired_and_a_step_that_is_not_counted_fails(self, port_class):
    class Case(_Annealed):
      port = port_class

    verdict = self.assert_passes(Case, 'training_steps')
    pairs = {pair.tf1.name: pair.tf2.name for pair in verdict.stages[1].inventory}
    self.assertIn('steps', pairs['global_step'])

    class Uncounted(Case):
      counted = 0

    self.assert_first_failure(Uncounted, 'training_steps')

  def test_is_paired_in_a_derived_map(self):
    class Case(_Annealed):
      port = _NativePort
      variable_map = 'derive'

    derived = tf2verify.derive_variable_map(Case)
    entries = {entry.tf1: entry for entry in derived.entries}
    self.assertEqual(entries[('global_step',)].tf2, ('port/steps',))

  def test_a_count_that_tf1_does_not_read_is_no_partner(self):
    class Case(_Annealed):
      reads = False

    text = self.assert_first_failure(Case, 'variable_inventory')
    self.assertNotIn('paired with', text)

  def test_what_the_case_leaves_to_the_port_stays_there(self):
    class Case(_Annealed):
      tf2_only_variables = {'steps': 'counts'}

    text = self.assert_first_failure(Case, 'variable_inventory')
    self.assertIn('steps has an effect', text)
    self.assertIn('leave it out of tf2_only_variables: the two are then paired', text)


if __name__ == '__main__':
  absltest.main()
