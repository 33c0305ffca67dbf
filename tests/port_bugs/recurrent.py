"""Mistakes in ports of recurrent networks."""

import abc

import numpy as np
import tensorflow as tf

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
_ZERO = 'zero_randomness'


class SequenceModel(tiny_models.OneModel, abc.ABC):
  def make_inputs(self):
    return tf2verify.normal_inputs((2, 4, 3))


class LstmPort(tf.keras.layers.Layer):
  """Keeps TF1's one kernel for inputs and state; `gates` is the order of its blocks."""

  def __init__(self, gates, forget_bias):
    super().__init__()
    self.gates = gates
    self.forget_bias = forget_bias

  def build(self, shape):
    self.kernel = self.add_weight('kernel', [shape[-1] + 3, 12])
    self.bias = self.add_weight('bias', [12], initializer='zeros')

  def call(self, inputs):
    hidden = memory = tf.zeros([tf.shape(inputs)[0], 3])
    for step in tf.unstack(inputs, axis=1):
      blocks = tf.concat([step, hidden], 1) @ self.kernel + self.bias
      gate = dict(zip(self.gates, tf.split(blocks, 4, axis=1), strict=True))
      keep = tf.sigmoid(gate['f'] + self.forget_bias)
      memory = keep * memory + tf.sigmoid(gate['i']) * tf.tanh(gate['c'])
      hidden = tf.sigmoid(gate['o']) * tf.tanh(memory)
    return hidden


class Lstm(SequenceModel):
  gates, forget_bias = 'icfo', 1.0
  variable_names = {
    'rnn/basic_lstm_cell/kernel': 'lstm_port/kernel',
    'rnn/basic_lstm_cell/bias': 'lstm_port/bias',
  }

  def model(self, inputs, training):
    cell = v1.nn.rnn_cell.BasicLSTMCell(3)
    return v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[1].h

  def make_tf2_layer(self):
    return LstmPort(self.gates, self.forget_bias)


class LstmWithGatesOfKeras(Lstm):
  gates = 'ifco'


class LstmWithoutForgetBias(Lstm):
  forget_bias = 0.0


class KerasLstm(SequenceModel):
  activation = 'hard_sigmoid'

  def model(self, inputs, training):
    return v1.keras.layers.LSTM(3, name='lstm')(inputs)

  def make_tf2_layer(self):
    lstm = tf.keras.layers.LSTM(3, recurrent_activation=self.activation, name='lstm')
    return tf.keras.Sequential([lstm])

  def make_inputs(self):
    return 2 * tf2verify.normal_inputs((2, 4, 3))


class KerasLstmWithSigmoid(KerasLstm):
  activation = 'sigmoid'  # the default since TF 2.0


def keras_3_hard_sigmoid(net):
  return tf.nn.relu6(net + 3.0) / 6.0


class HardSigmoid(tiny_models.OneModel):
  activation = 'hard_sigmoid'

  def model(self, inputs, training):
    return v1.layers.dense(inputs, 3, tf.keras.activations.hard_sigmoid, name='gate')

  def make_tf2_layer(self):
    return tf.keras.Sequential([tf.keras.layers.Dense(3, self.activation, name='gate')])


class HardSigmoidOfKeras3(HardSigmoid):
  @staticmethod
  def activation(net):
    return keras_3_hard_sigmoid(net)


class Gru(SequenceModel):
  options = {'reset_after': False}

  def model(self, inputs, training):
    return v1.keras.layers.GRU(3, name='gru')(inputs)

  def make_tf2_layer(self):
    gru = tf.keras.layers.GRU(3, recurrent_activation='hard_sigmoid', name='gru', **self.options)
    return tf.keras.Sequential([gru])


class GruWithResetAfter(Gru):
  options = {}


class RaggedSequenceModel(tiny_models.OneModel, abc.ABC):
  """Sequences of 4 and 2 steps."""

  def make_inputs(self):
    return {'steps': tf2verify.normal_inputs((2, 4, 3)), 'lengths': np.array([4, 2], np.int32)}


class MaskedPort(tf.keras.layers.Layer):
  def __init__(self, **options):
    super().__init__(name='port')
    cell = tf.keras.layers.LSTMCell(3)
    self.rnn = tf.keras.layers.RNN(cell, return_sequences=True, name='rnn', **options)

  def call(self, inputs):
    return self.rnn(
      inputs['steps'], mask=tf.sequence_mask(inputs['lengths'], tf.shape(inputs['steps'])[1])
    )


class SequenceLength(RaggedSequenceModel):
  options = {'zero_output_for_mask': True}

  def model(self, inputs, training):
    cell = tf.keras.layers.LSTMCell(3)
    return v1.nn.dynamic_rnn(cell, inputs['steps'], inputs['lengths'], dtype=tf.float32)[0]

  def make_tf2_layer(self):
    return MaskedPort(**self.options)

  def variable_names(self, name):
    return f'port/rnn/{name}'


class SequenceLengthAsMask(SequenceLength):
  options = {}


class BidirectionalPort(tf.keras.layers.Layer):
  def __init__(self, masked):
    super().__init__(name='port')
    self.masked = masked
    lstm = tf.keras.layers.LSTM(3, return_sequences=True)
    self.both = tf.keras.layers.Bidirectional(lstm, name='both')

  def call(self, inputs):
    mask = tf.sequence_mask(inputs['lengths'], tf.shape(inputs['steps'])[1])
    net = self.both(inputs['steps'], mask=mask if self.masked else None)
    return net * tf.cast(mask[:, :, tf.newaxis], tf.float32)


class Bidirectional(RaggedSequenceModel):
  masked = True

  def model(self, inputs, training):
    cells = [tf.keras.layers.LSTMCell(3, name=name) for name in ('fw', 'bw')]
    steps, lengths = inputs['steps'], inputs['lengths']
    outputs, _ = v1.nn.bidirectional_dynamic_rnn(*cells, steps, lengths, dtype=tf.float32)
    return tf.concat(outputs, 2)

  def make_tf2_layer(self):
    return BidirectionalPort(self.masked)

  def variable_names(self, name):
    direction, _, kind = name.partition('/')
    direction = {'fw': 'forward', 'bw': 'backward'}[direction]
    return f'port/both/{direction}_lstm/lstm_cell/{kind}'


class BidirectionalWithoutMask(Bidirectional):
  masked = False


PORT_BUGS = (
  PortBug(
    'B36',
    'order of LSTM gates',
    tf1='the columns of an LSTM cell are (i, j, f, o)',
    mistake='reads them in the order of Keras, (i, f, c, o)',
    stage=_ZERO,
    wrong=LstmWithGatesOfKeras,
    right=Lstm,
    words=('order of the gates', 'kernel'),
    causes=('lstm_gate_order',),
  ),
  PortBug(
    'B37',
    'forget bias of an LSTM',
    tf1='BasicLSTMCell adds forget_bias=1.0 to the forget gate at every step',
    mistake="copies the bias as it is, as if the 1.0 were in it (Keras' unit_forget_bias is)",
    stage=_ZERO,
    wrong=LstmWithoutForgetBias,
    right=Lstm,
    words=('forget', '1.0'),
    causes=('lstm_forget_bias',),
  ),
  PortBug(
    'B38',
    'recurrent activation',
    tf1='keras.layers.LSTM of TF1 gates with hard_sigmoid',
    mistake='takes the default of TF2, sigmoid',
    stage=_ZERO,
    wrong=KerasLstmWithSigmoid,
    right=KerasLstm,
    words=('hard_sigmoid', 'recurrent_activation'),
    causes=('recurrent_activation',),
  ),
  PortBug(
    'B39',
    'hard_sigmoid of Keras 3',
    tf1='hard_sigmoid is 0.2 x + 0.5, clipped',
    mistake='takes that of Keras 3, relu6(x + 3) / 6 (written out here)',
    stage=_ZERO,
    wrong=HardSigmoidOfKeras3,
    right=HardSigmoid,
    words=('hard_sigmoid', 'Keras 3'),
    causes=('hard_sigmoid_slope',),
  ),
  PortBug(
    'B40',
    'variant of the GRU',
    tf1='keras.layers.GRU of TF1 (and GRUCell) resets before the product: one bias vector',
    mistake='takes the default of TF2, reset_after=True, with a bias of (2, 3 units)',
    stage='variable_inventory',
    wrong=GruWithResetAfter,
    right=Gru,
    words=('gru/gru_cell/bias', '(2, 9)', 'reset_after=False'),
  ),
  PortBug(
    'B41',
    'outputs after the end of a sequence',
    tf1='dynamic_rnn(sequence_length=) returns zeros after the end',
    mistake='masks a Keras RNN, which repeats the last output',
    stage=_ZERO,
    wrong=SequenceLengthAsMask,
    right=SequenceLength,
    words=('zero_output_for_mask',),
    causes=('sequence_end',),
  ),
  PortBug(
    'B42',
    'backward direction without lengths',
    tf1='bidirectional_dynamic_rnn(sequence_length=) reverses each sequence within its length',
    mistake='Bidirectional without a mask reverses the padding, too; the output is masked later',
    stage=_ZERO,
    wrong=BidirectionalWithoutMask,
    right=Bidirectional,
    words=('ReverseSequence', 'mask'),
    causes=('reversed_padding',),
  ),
)
