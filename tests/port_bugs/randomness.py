"""Mistakes in dropout, noise and the order of random ops."""

import tensorflow as tf
import tf_slim as slim

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
_CONSTANT = 'seeded_constant'
_NUM_RANDOM_OPS = 'seeded_num_random_ops'


class KeepProb(tiny_models.OneModel):
  rate = 0.2

  def model(self, inputs, training):
    net = v1.layers.dense(inputs, 8, name='fc')
    return slim.dropout(net, 0.8, is_training=training)

  def make_tf2_layer(self):
    dense = tf.keras.layers.Dense(8, name='fc')
    return tf.keras.Sequential([dense, tf.keras.layers.Dropout(self.rate)])


class KeepProbAsRate(KeepProb):
  rate = 0.8


class InactiveDropout(tiny_models.OneModel):
  """A dropout that TF1 never switches on, since nobody passes `training`."""

  rate = 0.0

  def model(self, inputs, training):
    return v1.layers.dropout(v1.layers.dense(inputs, 8, name='fc'), 0.5)

  def make_tf2_layer(self):
    dense = tf.keras.layers.Dense(8, name='fc')
    return tf.keras.Sequential([dense, tf.keras.layers.Dropout(self.rate)])


class InactiveDropoutSwitchedOn(InactiveDropout):
  rate = 0.5


class NoisePort(tf.keras.layers.Layer):
  def __init__(self):
    super().__init__(name='port')
    self.encoder = tf.keras.layers.Dense(3, name='encoder')

  def noise(self):
    return tf.random.normal([4, 3])

  def call(self, inputs, training=False):
    return self.encoder(inputs + self.noise() if training else inputs)


class CachedNoisePort(NoisePort):
  def __init__(self):
    super().__init__()
    self.cached_noise = tf.random.normal([4, 3])

  def noise(self):
    return self.cached_noise


class Noise(tiny_models.OneModel):
  """A denoising encoder."""

  port_class = NoisePort

  def model(self, inputs, training):
    noisy = inputs + v1.random_normal([4, 3]) if training else inputs
    return v1.layers.dense(noisy, 3, name='encoder')

  def make_tf2_layer(self):
    return self.port_class()

  def variable_names(self, name):
    return f'port/{name}'


class NoiseDrawnOnce(Noise):
  port_class = CachedNoisePort


class RecurrentDropout(tiny_models.OneModel):
  """Drops inputs of an unrolled network."""

  def run(self, steps, cell):
    return v1.nn.static_rnn(cell, steps, dtype=tf.float32)[0][-1]

  def model(self, inputs, training):
    cell = v1.nn.rnn_cell.BasicRNNCell(3)
    if training:
      cell = v1.nn.rnn_cell.DropoutWrapper(cell, input_keep_prob=0.5)
    return self.run(tf.unstack(inputs, axis=1), cell)

  def port(self, inputs, training):
    steps = tf.unstack(inputs, axis=1)
    if training:
      steps = [tf.nn.dropout(step, 0.5) for step in steps]
    return self.run(steps, v1.nn.rnn_cell.BasicRNNCell(3))

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3, 3))


class RecurrentDropoutOfKeras(RecurrentDropout):
  def port(self, inputs, training):
    if training:
      inputs *= tf.nn.dropout(tf.ones_like(inputs[:, 0]), 0.5)[:, tf.newaxis]
    return self.run(tf.unstack(inputs, axis=1), v1.nn.rnn_cell.BasicRNNCell(3))


class Perceptron(tiny_models.OneModel):
  """Creates all its weights before it uses the first, as TF1 tutorials do."""

  start = staticmethod(v1.truncated_normal_initializer(stddev=0.5))
  exchanged = False

  def model(self, inputs, training):
    names = ('hidden', 'output')
    weights = {name: v1.get_variable(name, [3, 3], initializer=self.start) for name in names}
    noise = v1.random_normal([4, 3])
    net = inputs @ weights['hidden'] + noise
    return net @ weights['output'] + v1.random_normal([4, 3])

  def make_tf2_layer(self):
    return PerceptronPort(self.start, self.exchanged)

  def variable_names(self, name):
    return f'port/{name}/kernel'


class PerceptronPort(tf.keras.layers.Layer):
  """Its layers make their kernels when they are called first."""

  def __init__(self, start, exchanged):
    super().__init__(name='port')
    options = {'use_bias': False, 'kernel_initializer': start}
    self.hidden = tf.keras.layers.Dense(3, name='hidden', **options)
    self.out = tf.keras.layers.Dense(3, name='output', **options)
    self.exchanged = exchanged

  def call(self, inputs):
    if self.exchanged:
      last, noise = tf.random.normal([4, 3]), tf.random.normal([4, 3])
      return self.out(self.hidden(inputs) + noise) + last
    net = self.hidden(inputs) + tf.random.normal([4, 3])
    return self.out(net) + tf.random.normal([4, 3])


class PerceptronDrawingInAnotherOrder(Perceptron):
  exchanged = True


class Negatives(tiny_models.OneModel):
  """Scores of negatives, sampled in training as frequent words are."""

  sampler = staticmethod(tf.random.log_uniform_candidate_sampler)

  def model(self, inputs, training, sampler=tf.random.log_uniform_candidate_sampler):
    net = v1.layers.dense(inputs, 3, name='fc')
    table = v1.get_variable('table', [20, 3])
    if training:
      table = tf.gather(table, sampler(tf.constant([[1], [4]], tf.int64), 1, 6, True, 20)[0])
    return tf.matmul(net, table, transpose_b=True)

  def port(self, inputs, training):
    return self.model(inputs, training, self.sampler)


class NegativesOfOneFrequency(Negatives):
  sampler = staticmethod(tf.random.uniform_candidate_sampler)


PORT_BUGS = (
  PortBug(
    'B74',
    'keep_prob and rate',
    tf1='dropout takes the fraction that it keeps',
    mistake='passes that number as the rate, the fraction that is dropped',
    stage=_CONSTANT,
    wrong=KeepProbAsRate,
    right=KeepProb,
    words=('dropout', 'rate', '0.8', '0.2'),
    causes=('dropout_rate',),
  ),
  PortBug(
    'B75',
    'dropout that was never active',
    tf1='tf.layers.dropout without training= keeps everything',
    mistake='a Keras Dropout is active in training',
    stage=_CONSTANT,
    wrong=InactiveDropoutSwitchedOn,
    right=InactiveDropout,
    words=('dropout', 'only in the port'),
    causes=('dropout_presence',),
  ),
  PortBug(
    'B77c',
    'noise drawn once',
    tf1='random_normal draws at every run',
    mistake='draws in __init__ and keeps the tensor',
    stage=_NUM_RANDOM_OPS,
    wrong=NoiseDrawnOnce,
    right=Noise,
    words=('RandomStandardNormal (4, 3)', 'make_tf2_layer', 'every call'),
  ),
  PortBug(
    'B77d',
    'recurrent dropout',
    tf1='DropoutWrapper draws a mask per step',
    mistake='draws one for all steps, as the dropout of a Keras RNN (written out here)',
    stage=_NUM_RANDOM_OPS,
    wrong=RecurrentDropoutOfKeras,
    right=RecurrentDropout,
    words=('mask', 'per step'),
  ),
  PortBug(
    'B77e',
    'order of random ops',
    tf1='draws the noise of the hidden layer, then that of the output',
    mistake='draws that of the output first',
    stage=_NUM_RANDOM_OPS,
    wrong=PerceptronDrawingInAnotherOrder,
    right=Perceptron,
    words=('two of a kind have changed places',),
  ),
  PortBug(
    'B77f',
    'another distribution',
    tf1='nce_loss and sampled_softmax_loss sample by log_uniform_candidate_sampler',
    mistake='samples by uniform_candidate_sampler',
    stage=_CONSTANT,
    wrong=NegativesOfOneFrequency,
    right=Negatives,
    words=('another distribution', 'uniform_candidate_sampler', 'log_uniform_candidate_sampler'),
    causes=('other_draw',),
  ),
)
