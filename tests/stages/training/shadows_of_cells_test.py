"""Averages of the variables of a cell, whose bias the port holds with the forget bias added."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_STAGE = 'training_steps'
_DECAY = 0.9


class Averages:
  """In a dictionary, by the paths of variables."""

  def __init__(self, decay=_DECAY):
    self.of = {}
    self._decay = decay

  def start(self, variables):
    for one in variables:
      self.of.setdefault(one.path, tf.Variable(one.value, trainable=False))

  def update(self, variables, before):
    for one, old in zip(variables, before, strict=True):
      # TF1 reads variables of a cell once, at the start of a step: they have a caching device.
      value = old if 'lstm' in one.path else one.value
      self.of[one.path].assign_sub((1 - self._decay) * (self.of[one.path] - value))


class Recurrent(tf2verify.EquivalenceCase, abc.ABC):
  averages = Averages

  def build_tf1_graph(self, inputs, training):
    _, state = v1.nn.dynamic_rnn(v1.nn.rnn_cell.BasicLSTMCell(4), inputs, dtype=tf.float32)
    return v1.layers.dense(state.h, 1, name='dense')

  def make_tf2_layer(self):
    limit = (6.0 / (3 + 4 + 16)) ** 0.5

    def uniform():
      return keras.initializers.RandomUniform(-limit, limit)

    lstm = keras.layers.LSTM(
      4, kernel_initializer=uniform(), recurrent_initializer=uniform(), name='lstm'
    )
    return keras.Sequential([lstm, keras.layers.Dense(1, name='dense')])

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4, 3))

  def make_labels(self):
    return np.ones((5, 1), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(labels - outputs))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    applied = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    with tf.control_dependencies([applied]):
      return v1.train.ExponentialMovingAverage(_DECAY).apply(v1.trainable_variables())

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1), self.averages()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    descent, averages = optimizer
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, [one.value for one in variables])
    averages.start(variables)
    before = [tf.identity(one.value) for one in variables]
    descent.apply_gradients(zip(gradients, variables, strict=True))
    averages.update(variables, before)
    return loss


class ShadowsOfCellsTest(absltest.TestCase):
  def _found(self, case):
    verdict = tf2verify.verify(case, [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def test_right_port(self):
    found = self._found(type('Case', (Recurrent,), {}))
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  def test_another_decay(self):
    found = self._found(type('Case', (Recurrent,), {'averages': lambda _: Averages(0.5)}))
    self.assertIs(found.status, tf2verify.Status.FAILED)
    text = found.to_text()
    self.assertIn('the decay of the moving averages (EMA) is 0.9 in TF1', text)
    self.assertIn('cause (proven', text)

  def test_averages_of_values_after_the_step(self):
    class After(Averages):
      def update(self, variables, before):
        super().update(variables, [one.value for one in variables])

    found = self._found(type('Case', (Recurrent,), {'averages': After}))
    self.assertIs(found.status, tf2verify.Status.FAILED)
    text = found.to_text()
    self.assertIn('have a caching device', text)
    # The bias of the port has the forget bias added, and so does its average.
    self.assertNotIn('initial values differ', text)


if __name__ == '__main__':
  absltest.main()
