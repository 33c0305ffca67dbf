"""What a stage proves of a port whose variables lie in another layout, and of its cells."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


def _uniform(rows, columns):
  limit = (6.0 / (rows + columns)) ** 0.5
  return keras.initializers.RandomUniform(-limit, limit)


class _Split(keras.layers.Layer):
  """A kernel for each of two inputs, where tf1 has one for both."""

  def build(self, _):
    self.first = self.add_weight(name='first', shape=(3, 16), initializer=_uniform(7, 16))
    self.second = self.add_weight(name='second', shape=(4, 16), initializer=_uniform(7, 16))

  def call(self, inputs):
    return inputs[0] @ self.first + inputs[1] @ self.second


class Split(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(tf.concat(inputs, 1), 16, use_bias=False, name='both')

  def make_tf2_layer(self):
    return _Split()

  def make_inputs(self):
    return [tf2verify.normal_inputs((5, 3)), tf2verify.normal_inputs((5, 4))]

  def make_labels(self):
    return np.ones((5, 16), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    return v1.train.GradientDescentOptimizer(0.1).minimize(loss)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1)


class Turned(Split, abc.ABC):
  """A kernel that the port keeps the other way round."""

  def make_tf2_layer(self):
    class Layer(keras.layers.Layer):
      def build(self, _):
        self.w = self.add_weight(name='w', shape=(16, 7), initializer=_uniform(7, 16))

      def call(self, inputs):
        return keras.ops.matmul(keras.ops.concatenate(inputs, 1), keras.ops.transpose(self.w))

    return Layer()


class Recurrent(Split, abc.ABC):
  cell = v1.nn.rnn_cell.BasicLSTMCell

  def build_tf1_graph(self, inputs, training):
    outputs, _ = v1.nn.dynamic_rnn(self.cell(8), inputs, dtype=tf.float32)
    return v1.layers.dense(outputs[:, -1], 16, name='out')

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 6, 4))

  def make_tf2_layer(self):
    known = {'kernel_initializer': _uniform(12, 32), 'recurrent_initializer': _uniform(12, 32)}
    return keras.Sequential([keras.layers.LSTM(8, **known), keras.layers.Dense(16)])


class Gated(Recurrent, abc.ABC):
  cell = v1.nn.rnn_cell.GRUCell

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.GRU(8, reset_after=False), keras.layers.Dense(16)])


class Lengths(Recurrent, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    cell = v1.nn.rnn_cell.BasicLSTMCell(8)
    _, state = v1.nn.dynamic_rnn(cell, inputs['steps'], inputs['lengths'], dtype=tf.float32)
    return v1.layers.dense(state.h, 16, name='out')

  def make_inputs(self):
    lengths = np.array([1, 3, 6, 2, 5], np.int32)
    return {'steps': tf2verify.normal_inputs((5, 6, 4)), 'lengths': lengths}

  def make_tf2_layer(self):
    class Masked(keras.Model):
      def __init__(self):
        super().__init__()
        known = {'kernel_initializer': _uniform(12, 32), 'recurrent_initializer': _uniform(12, 32)}
        self.lstm, self.out = keras.layers.LSTM(8, **known), keras.layers.Dense(16)

      def call(self, inputs):
        steps = inputs['steps']
        mask = tf.sequence_mask(inputs['lengths'], tf.shape(steps)[1])
        return self.out(self.lstm(steps, mask=mask))

    return Masked()


def _proven(case, stage):
  verdict = tf2verify.verify(type('Case', (case,), {}), [stage])
  return next(one for one in verdict.stages if one.stage == stage).proven


class ProvenLayoutsTest(absltest.TestCase):
  def test_forward_pass(self):
    for case in (Split, Turned, Recurrent, Gated, Lengths):
      with self.subTest(case.__name__):
        found = _proven(case, 'zero_randomness')
        self.assertTrue(found.is_whole, found)

  def test_losses(self):
    for case in (Split, Recurrent):
      with self.subTest(case.__name__):
        found = _proven(case, 'loss')
        self.assertTrue(found.is_whole, found)

  def test_training_steps(self):
    found = _proven(Turned, 'training_steps')
    self.assertTrue(found.is_whole, found)

  def test_loss_of_a_step_with_parts(self):
    found = _proven(Split, 'training_steps')
    open_targets = [name for region in found.regions for name in region.targets]
    self.assertNotIn('loss (total)', open_targets)


if __name__ == '__main__':
  absltest.main()
