"""Maps of cells that norm each gate, of heads in one layer, and of kernels that read the state."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'zero_randomness'
WIDTH, UNITS, STEPS, ACTIONS = 4, 3, 2, 2


def _norm(net, scope):
  with v1.variable_scope(scope):
    gamma, beta = (v1.get_variable(name, [UNITS]) for name in ('gamma', 'beta'))
  mean, variance = tf.nn.moments(net, [-1], keepdims=True)
  return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-6)


class Cell(keras.layers.Layer):
  def __init__(self, exchanged, **settings):
    super().__init__(**settings)
    self.state_size, self.output_size = [UNITS, UNITS], UNITS
    names = ('input', 'forget', 'cell', 'output')
    self.norms = [keras.layers.LayerNormalization(epsilon=1e-6, name=f'ln_{n}') for n in names]
    self.exchanged = exchanged

  def build(self, shape):
    self.kernel = self.add_weight((shape[-1], 4 * UNITS), name='kernel')
    self.recurrent = self.add_weight((UNITS, 4 * UNITS), name='recurrent_kernel')
    for norm in self.norms:
      norm.build((None, UNITS))

  def call(self, x, states):
    h, c = states
    parts = keras.ops.split(x @ self.kernel + h @ self.recurrent, 4, axis=-1)
    norms = list(self.norms)
    if self.exchanged:
      norms[0], norms[1] = norms[1], norms[0]
    i, f, j, o = (norm(part) for norm, part in zip(norms, parts, strict=True))
    c = keras.ops.sigmoid(f + 1.0) * c + keras.ops.sigmoid(i) * keras.ops.tanh(j)
    h = keras.ops.tanh(c) * keras.ops.sigmoid(o)
    return h, [h, c]


class Port(keras.Model):
  def __init__(self, exchanged):
    super().__init__(name='port')
    cell = Cell(exchanged, name='cell')
    self.rnn = keras.layers.RNN(cell, return_sequences=True, unroll=True, name='rnn')
    self.heads = keras.layers.Dense(ACTIONS + 1, name='heads')

  def call(self, inputs):
    net = self.heads(self.rnn(inputs))
    return {'policy': net[..., :ACTIONS], 'value': net[..., ACTIONS]}


class Actor(tf2verify.EquivalenceCase, abc.ABC):
  """TF1: one kernel for inputs and state, gates i j f o, a norm each; two heads."""

  variable_map = 'derive'
  exchanged = False

  def build_tf1_graph(self, inputs, training):
    kernel = v1.get_variable('lstm/kernel', [WIDTH + UNITS, 4 * UNITS])
    c = h = tf.zeros([tf.shape(inputs)[0], UNITS])
    found = []
    for step in range(STEPS):
      with v1.variable_scope('lstm', reuse=v1.AUTO_REUSE):
        parts = tf.split(tf.matmul(tf.concat([inputs[:, step], h], 1), kernel), 4, 1)
        names = ('input', 'transform', 'forget', 'output')
        i, j, f, o = (_norm(part, name) for part, name in zip(parts, names, strict=True))
      c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
      h = tf.tanh(c) * tf.sigmoid(o)
      found.append(h)
    net = tf.stack(found, 1)
    policy = v1.layers.dense(net, ACTIONS, name='pi')
    return {'policy': policy, 'value': v1.layers.dense(net, 1, name='v')[..., 0]}

  def make_tf2_layer(self):
    return Port(self.exchanged)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, STEPS, WIDTH))


class Gated(keras.Model):
  """A minimal gated unit, which reads inputs before the state."""

  def __init__(self):
    super().__init__(name='port')

  def build(self, shape):
    self.kernel = self.add_weight((WIDTH + UNITS, 2 * UNITS), name='kernel')
    self.bias = self.add_weight((2 * UNITS,), name='bias')

  def call(self, inputs):
    h = keras.ops.zeros((keras.ops.shape(inputs)[0], UNITS))
    for step in range(STEPS):
      x = inputs[:, step]
      f = keras.ops.concatenate([x, h], 1) @ self.kernel[:, :UNITS] + self.bias[:UNITS]
      f = keras.ops.sigmoid(f)
      n = keras.ops.concatenate([x, f * h], 1) @ self.kernel[:, UNITS:] + self.bias[UNITS:]
      h = (1.0 - f) * h + f * keras.ops.tanh(n)
    return h


class StateFirst(tf2verify.EquivalenceCase, abc.ABC):
  """TF1 reads the state before the inputs, and has a layer for gate and candidate each."""

  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    h = tf.zeros([tf.shape(inputs)[0], UNITS])
    for step in range(STEPS):
      with v1.variable_scope('mgu', reuse=v1.AUTO_REUSE):
        net = tf.concat([h, inputs[:, step]], 1)
        f = tf.sigmoid(v1.layers.dense(net, UNITS, name='gate'))
        net = tf.concat([f * h, inputs[:, step]], 1)
        h = (1.0 - f) * h + f * tf.tanh(v1.layers.dense(net, UNITS, name='candidate'))
    return h

  def make_tf2_layer(self):
    return Gated()

  def make_inputs(self):
    return tf2verify.normal_inputs((5, STEPS, WIDTH))


class NormsOfGatesTest(LadderTestCase):
  def test_a_norm_for_each_gate_and_two_heads_in_one(self):
    self.assert_passes(type('Case', (Actor,), {}), STAGE)

  def test_norms_of_two_gates_exchanged_stay_a_finding(self):
    case = type('Case', (Actor,), {'exchanged': True})
    verdict = tf2verify.verify(case, stages=[STAGE])
    self.assertFalse(verdict.passed, verdict.to_text())

  def test_state_above_the_inputs(self):
    self.assert_passes(type('Case', (StateFirst,), {}), STAGE)


if __name__ == '__main__':
  absltest.main()
