"""Tests of mistakes in the body of a loop, seen by the ladder: line and proven cause."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.losses.loss_lines_test import line_of
from tf2verify.records.experiment import Outcome

v1 = tf.compat.v1
_UNITS, _LENGTHS = 3, np.array([5, 3, 1], np.int32)


def _tf1(inputs, training):
  del training
  with v1.variable_scope('m'):
    cell = v1.nn.rnn_cell.GRUCell(_UNITS)
    states, last = v1.nn.dynamic_rnn(
      cell, inputs['x'], sequence_length=inputs['lengths'], dtype=tf.float32
    )
    return {'last': v1.layers.dense(last, 2, name='out'), 'mean': tf.reduce_mean(states, [1, 2])}


class _Cell(keras.layers.Layer):
  """TF1's GRU cell by hand, with a mistake."""

  def __init__(self, mistake, **kwargs):
    super().__init__(**kwargs)
    self.mistake = mistake
    self.state_size = self.output_size = _UNITS

  def build(self, shape):
    size = shape[-1] + _UNITS
    self.gates = self.add_weight(shape=(size, 2 * _UNITS), name='gates_kernel')
    self.gates_bias = self.add_weight(shape=(2 * _UNITS,), initializer='ones', name='gates_bias')
    self.candidate = self.add_weight(shape=(size, _UNITS), name='candidate_kernel')
    self.candidate_bias = self.add_weight(shape=(_UNITS,), name='candidate_bias')

  def call(self, inputs, states):
    (h,) = states
    both = keras.ops.concatenate([inputs, h], -1)
    gates = keras.ops.sigmoid(keras.ops.matmul(both, self.gates) + self.gates_bias)
    reset, update = keras.ops.split(gates, 2, -1)
    if self.mistake == 'swapped':
      reset, update = update, reset
    both = keras.ops.concatenate([inputs, reset * h], -1)
    net = keras.ops.matmul(both, self.candidate) + self.candidate_bias
    new = keras.ops.relu(net) if self.mistake == 'relu' else keras.ops.tanh(net)
    if self.mistake == 'constant':
      h = update * h + (0.9 - update) * new
    else:
      h = update * h + (1.0 - update) * new
    return h, [h]


class _Model(keras.Model):
  def __init__(self, mistake):
    super().__init__(name='m')
    self.rnn = keras.layers.RNN(
      _Cell(mistake, name='cell'),
      return_sequences=True,
      return_state=True,
      zero_output_for_mask=True,
    )
    self.out = keras.layers.Dense(2, name='out')

  def call(self, inputs, training=False):
    x, lengths = inputs['x'], inputs['lengths']
    mask = keras.ops.arange(x.shape[1])[None] < lengths[:, None]
    states, last = self.rnn(x, mask=mask)
    return {'last': self.out(last), 'mean': keras.ops.mean(states, [1, 2])}


_NAMES = {
  'm/rnn/gru_cell/gates/kernel': 'm/rnn/cell/gates_kernel',
  'm/rnn/gru_cell/gates/bias': 'm/rnn/cell/gates_bias',
  'm/rnn/gru_cell/candidate/kernel': 'm/rnn/cell/candidate_kernel',
  'm/rnn/gru_cell/candidate/bias': 'm/rnn/cell/candidate_bias',
}


def _case(planted):
  class Case(tf2verify.EquivalenceCase):
    variable_names = _NAMES
    training_modes = (False,)

    def build_tf1_graph(self, inputs, training):
      return _tf1(inputs, training)

    def make_tf2_layer(self):
      return _Model(planted)

    def make_inputs(self):
      x = np.random.RandomState(0).randn(3, 5, 2).astype(np.float32)
      return {'x': x, 'lengths': _LENGTHS}

  return Case


class _Native(keras.Model):
  """`keras.layers.LSTM`, whose gates lie in another order, with a mistake in front or inside."""

  def __init__(self, mistake):
    super().__init__(name='m')
    self.mistake = mistake
    activation = 'softsign' if mistake == 'softsign' else 'tanh'
    self.rnn = keras.layers.LSTM(_UNITS, activation=activation, return_sequences=True, name='rnn')
    self.out = keras.layers.Dense(2, name='out')

  def call(self, inputs, training=False):
    x, lengths = inputs['x'], inputs['lengths']
    mask = keras.ops.arange(x.shape[1])[None] < lengths[:, None]
    if self.mistake == 'shifted':
      x = x + 0.1
    states = self.rnn(x, mask=mask)
    states = keras.ops.where(mask[:, :, None], states, 0.0)
    return self.out(keras.ops.sum(states, 1))


def _native_case(planted):
  class Case(tf2verify.EquivalenceCase):
    variable_map = 'derive'
    training_modes = (False,)

    def build_tf1_graph(self, inputs, training):
      with v1.variable_scope('m'):
        cell = v1.nn.rnn_cell.LSTMCell(_UNITS)
        lengths = inputs['lengths']
        states, _ = v1.nn.dynamic_rnn(cell, inputs['x'], lengths, dtype=tf.float32)
        return v1.layers.dense(tf.reduce_sum(states, 1), 2, name='out')

    def make_tf2_layer(self):
      return _Native(planted)

    def make_inputs(self):
      x = np.random.RandomState(0).randn(3, 5, 2).astype(np.float32)
      return {'x': x, 'lengths': _LENGTHS}

  return Case


class LoopsTest(absltest.TestCase):
  def failure(self, mistake, case=_case):
    verdict = tf2verify.verify(case(mistake), stages=('variable_inventory', 'zero_randomness'))
    failure = verdict.first_failure
    self.assertIsNotNone(failure, verdict.to_text())
    self.assertEqual(failure.stage, 'zero_randomness', verdict.to_text())
    return failure.diagnosis, failure.to_text()

  def test_right_ports_pass(self):
    for case in (_case, _native_case):
      verdict = tf2verify.verify(case(''), stages=('variable_inventory', 'zero_randomness'))
      self.assertIsNone(verdict.first_failure, verdict.to_text())

  def test_gates_in_another_order_are_no_divergence(self):
    said = {
      'softsign': ('Softsign', 'Tanh', _Native.call, 'states = self.rnn'),
      'shifted': ('AddV2(y=0.1)', '', _Native.call, 'x = x + 0.1'),
    }
    for mistake, (port, tf1, function, code) in said.items():
      with self.subTest(mistake):
        diagnosis, text = self.failure(mistake, _native_case)
        (cause,) = diagnosis.causes
        self.assertEqual(cause.experiment.outcome, Outcome.PROVEN, text)
        self.assertIn(port, cause.text)
        self.assertIn(tf1, cause.text)
        source = diagnosis.sources[0]
        known = {source.tf2_source.line, *(line.line for line in source.tf2_lines)}
        self.assertIn(line_of(function, code), known, text)

  def test_constant_activation_and_order_in_the_body_are_proven_once(self):
    lines = {
      'constant': 'h = update * h + (0.9',
      'relu': 'new = keras.ops.relu',
      'swapped': 'reset, update = keras',
    }
    said = {
      'constant': ('0.9', '1'),
      'relu': ('Relu', 'Tanh'),
      'swapped': ('split, output 0', 'split, output 1'),
    }
    for mistake, code in lines.items():
      with self.subTest(mistake):
        diagnosis, text = self.failure(mistake)
        (cause,) = diagnosis.causes
        self.assertEqual(cause.experiment.outcome, Outcome.PROVEN, text)
        for word in said[mistake]:
          self.assertIn(word, cause.text)
        source = diagnosis.sources[0]
        known = {source.tf2_source.line, *(line.line for line in source.tf2_lines)}
        self.assertIn(line_of(_Cell.call, code), known, text)
        self.assertIn('/round_', source.tf1_op)


if __name__ == '__main__':
  absltest.main()
