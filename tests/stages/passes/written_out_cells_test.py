"""Ports to `keras.layers.LSTM` of cells that TF1 writes out, round by round, in Python."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.records.experiment import Outcome

v1 = tf.compat.v1
UNITS, WIDTH, STEPS = 3, 2, 4
_GATES = tuple(dict.fromkeys('icfo', UNITS).items())
_MAP = tf2verify.VariableMap(
  (
    tf2verify.MapEntry(
      ('cell/kernel',),
      ('lstm/lstm_cell/kernel', 'lstm/lstm_cell/recurrent_kernel'),
      '(x+h) (i+c+f+o) -> x (i+f+c+o), h (i+f+c+o)',
      (('x', WIDTH), ('h', UNITS), *_GATES),
    ),
    tf2verify.MapEntry(('cell/bias',), ('lstm/lstm_cell/bias',), '(i+c+f+o) -> (i+f+c+o)', _GATES),
  )
)


class Cell(tf2verify.EquivalenceCase, abc.ABC):
  """An LSTM with one kernel for inputs and state."""

  def kernels(self, x, h):
    kernel = v1.get_variable('kernel', [WIDTH + UNITS, 4 * UNITS])
    return tf.matmul(tf.concat([x, h], 1), kernel)

  def build_tf1_graph(self, inputs, training):
    del training
    h = c = tf.zeros([tf.shape(inputs)[0], UNITS])
    for t in range(STEPS):
      with v1.variable_scope('cell', reuse=v1.AUTO_REUSE):
        bias = v1.get_variable('bias', [4 * UNITS], initializer=v1.zeros_initializer())
        i, j, f, o = tf.split(self.kernels(inputs[:, t], h) + bias, 4, 1)
      c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
      h = tf.sigmoid(o) * tf.tanh(c)
    return h

  def make_tf2_layer(self):
    return keras.layers.LSTM(UNITS, name='lstm')

  def make_inputs(self):
    return tf2verify.normal_inputs((2, STEPS, WIDTH))


class StateFirst(Cell, abc.ABC):
  def kernels(self, x, h):
    kernel = v1.get_variable('kernel', [WIDTH + UNITS, 4 * UNITS])
    return tf.matmul(tf.concat([h, x], 1), kernel)


class WrittenOutTest(parameterized.TestCase):
  @parameterized.parameters(Cell, StateFirst)
  def test_right_port_passes_without_a_map(self, base):
    case = type('Case', (base,), {'other_sizes': tuple})
    stages = ['no_new_variables', 'variable_inventory', 'zero_randomness']
    verdict = tf2verify.verify(case, stages=stages)
    self.assertIsNone(verdict.first_failure, verdict.to_text())
    self.assertEqual(verdict.stages[-1].status, tf2verify.Status.PASSED, verdict.to_text())

  def test_forget_bias_that_the_map_does_not_add_is_proven(self):
    """The port's gates lie in another order, and its rounds are those of a loop of the graph."""

    class Case(Cell):
      variable_map = _MAP
      other_sizes = ()

    found = tf2verify.verify(Case, stages=['zero_randomness']).first_failure
    (cause,) = found.diagnosis.causes
    self.assertTrue(cause.is_proven, found.to_text())
    self.assertIn('(add c=1): correct the map', cause.text)
    self.assertIn('missing in tf2: AddV2(y=1)', found.to_text())
    first = found.diagnosis.sources[0]
    self.assertIn('tf.sigmoid(f + 1.0)', first.tf1_source.code, found.to_text())
    # Gates in another order are no difference.
    self.assertNotIn('in a different order', found.to_text())


class NormOfLayers(tf2verify.EquivalenceCase, abc.ABC):
  """Three layers with batch norm, which the port writes with other operations."""

  outside = False

  def build_tf1_graph(self, inputs, training):
    del training
    x = inputs
    for n in range(3):
      with v1.variable_scope(f'layer_{n}'):
        x = tf.matmul(x, v1.get_variable('kernel', [4, 4]))
        one, zero = v1.ones_initializer(), v1.zeros_initializer()
        gamma = v1.get_variable('gamma', [4], initializer=one)
        beta = v1.get_variable('beta', [4], initializer=zero)
        mean = v1.get_variable('mean', [4], initializer=zero, trainable=False)
        variance = v1.get_variable('variance', [4], initializer=one, trainable=False)
        x = tf.nn.relu(tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3))
    return x

  def make_tf2_layer(self):
    return Stack(self.outside)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 4))


class Layer(keras.layers.Layer):
  def __init__(self, outside, name):
    super().__init__(name=name)
    self.outside = outside
    self.kernel = self.add_weight(shape=(4, 4), name='kernel')
    self.gamma = self.add_weight(shape=(4,), initializer='ones', name='gamma')
    self.beta = self.add_weight(shape=(4,), initializer='zeros', name='beta')
    self.mean = self.add_weight(shape=(4,), initializer='zeros', trainable=False, name='mean')
    self.variance = self.add_weight(
      shape=(4,), initializer='ones', trainable=False, name='variance'
    )

  def call(self, x):
    x = x @ self.kernel
    root = tf.sqrt(self.variance) + 1e-3 if self.outside else tf.sqrt(self.variance + 1e-3)
    return tf.nn.relu(self.gamma * ((x - self.mean) / root) + self.beta)


class Stack(keras.layers.Layer):
  def __init__(self, outside):
    super().__init__(name='stack')
    self.parts = [Layer(outside, f'layer_{n}') for n in range(3)]

  def call(self, x):
    for part in self.parts:
      x = part(x)
    return x


class OneLineInEveryLayerTest(absltest.TestCase):
  def test_epsilon_outside_of_the_root_is_one_mistake_of_three_places(self):
    class Case(NormOfLayers):
      outside = True

    found = tf2verify.verify(Case, stages=['zero_randomness']).first_failure
    (cause,) = found.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, found.to_text())
    self.assertEqual((cause.experiment.number, cause.experiment.mistakes), (1, 1))
    self.assertRegex(cause.text, 'the port computes Sqrt .* before .*add, tf1 after')
    self.assertNotIn('times 0.9', found.to_text())
    self.assertIn('if self.outside else', found.diagnosis.sources[0].tf2_source.code)

  def test_right_port_passes(self):
    verdict = tf2verify.verify(type('Case', (NormOfLayers,), {}), stages=['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())


class Weighed(tf2verify.EquivalenceCase, abc.ABC):
  """A softmax along an axis of three."""

  axes = (0, 1)

  def build_tf1_graph(self, inputs, training):
    del training
    with v1.variable_scope('dense'):
      kernel = v1.get_variable('kernel', [4, 4])
    x = tf.einsum('abc,cd->abd', inputs, kernel)
    return x * tf.nn.softmax(x, axis=self.axes[0])

  def make_tf2_layer(self):
    axis = self.axes[1]

    class Port(keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(4, use_bias=False, name='dense')

      def call(self, inputs):
        x = self.dense(inputs)
        return x * tf.nn.softmax(x, axis=axis)

    return Port()

  def make_inputs(self):
    return np.random.RandomState(2).normal(size=(2, 3, 4)).astype(np.float32)


class SoftmaxAxisTest(parameterized.TestCase):
  @parameterized.parameters((0, -1), (-1, 1), (-1, 0))
  def test_axis_is_named(self, tf1, tf2):
    case = type('Case', (Weighed,), {'axes': (tf1, tf2), 'other_sizes': tuple})
    found = tf2verify.verify(case, stages=['zero_randomness']).first_failure
    (cause,) = found.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, found.to_text())
    words = f'(Softmax) is {tf2 % 3} in the port, {tf1 % 3} in tf1'
    self.assertIn(words, cause.text)


if __name__ == '__main__':
  absltest.main()
