"""Mistakes in element-wise functions, axes and integer arithmetic."""

import abc
import math

import numpy as np
import tensorflow as tf

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
_ZERO = 'zero_randomness'


class LeakyRelu(tiny_models.OneModel):
  options = {'alpha': 0.2}

  def model(self, inputs, training):
    return tf.nn.leaky_relu(v1.layers.dense(inputs, 3, name='fc'))

  def make_tf2_layer(self):
    dense = tf.keras.layers.Dense(3, name='fc')
    return tf.keras.Sequential([dense, tf.keras.layers.LeakyReLU(**self.options)])


class LeakyReluByDefault(LeakyRelu):
  options = {}


def bert_gelu(net):
  cdf = 0.5 * (1.0 + tf.tanh(math.sqrt(2.0 / math.pi) * (net + 0.044715 * tf.pow(net, 3))))
  return net * cdf


class Gelu(tiny_models.OneModel):
  approximate = True

  def model(self, inputs, training):
    return v1.layers.dense(inputs, 3, bert_gelu, name='intermediate')

  def make_tf2_layer(self):
    dense = tf.keras.layers.Dense(3, self.activation, name='intermediate')
    return tf.keras.Sequential([dense])

  def activation(self, net):
    return tf.keras.activations.gelu(net, approximate=self.approximate)


class GeluByErf(Gelu):
  approximate = False


class Flattened(tiny_models.OneImageModel):
  in_between = (tf.keras.layers.Permute, (3, 1, 2))

  def model(self, inputs, training):
    net = v1.layers.conv2d(inputs, 2, 3, name='conv')
    net = tf.transpose(net, [0, 3, 1, 2])  # channels first, as on a GPU
    return v1.layers.dense(v1.layers.flatten(net), 3, name='fc')

  def make_tf2_layer(self):
    layer, *arguments = self.in_between
    return tf.keras.Sequential(
      [
        tf.keras.layers.Conv2D(2, 3, name='conv'),
        layer(*arguments),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(3, name='fc'),
      ]
    )


class FlattenedChannelsLast(Flattened):
  in_between = (tf.keras.layers.Activation, 'linear')


class Predicted(tiny_models.OneModel):
  def model(self, inputs, training):
    logits = v1.layers.dense(inputs, 3, name='logits')
    return logits, v1.argmax(logits)

  def predicted(self, logits):
    return tf.argmax(logits)

  def make_tf2_layer(self):
    inputs = tf.keras.Input([3])
    logits = tf.keras.layers.Dense(3, name='logits')(inputs)
    return tf.keras.Model(inputs, [logits, tf.keras.layers.Lambda(self.predicted)(logits)])


class PredictedAlongTheLastAxis(Predicted):
  def predicted(self, logits):
    return tf.keras.backend.argmax(logits)


class Buckets(tiny_models.OneModel, abc.ABC):
  """Two relative positions share a bucket, negative ones too."""

  def make_inputs(self):
    return np.array([-7, -2, 0, 3], np.int32)

  def weighted(self, buckets):
    return tf.cast(buckets, tf.float32)[:, tf.newaxis] * v1.get_variable('slope', [3])

  def model(self, inputs, training):
    return self.weighted(v1.div(inputs, 2))


class FlooredBuckets(Buckets):
  def port(self, inputs, training):
    return self.weighted(inputs // 2)


class DividedBuckets(Buckets):
  def port(self, inputs, training):
    return self.weighted(inputs / 2)


class AssertedGain(tiny_models.OneModel):
  """An assert on which nothing depends; as it stands, it is wrong."""

  asserted = False

  def model(self, inputs, training, asserted=True):
    initializer = v1.ones_initializer()
    gain = v1.get_variable('gain', [8], initializer=initializer)
    if asserted:
      v1.assert_less_equal(gain, 1.0, message='the gain has grown')
    return inputs * gain

  def port(self, inputs, training):
    return self.model(inputs, training, self.asserted)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 8))


class AssertedGainThatRuns(AssertedGain):
  asserted = True


PORT_BUGS = (
  PortBug(
    'B43',
    'slope of leaky_relu',
    tf1='tf.nn.leaky_relu has alpha 0.2',
    mistake='keras.layers.LeakyReLU has 0.3',
    stage=_ZERO,
    wrong=LeakyReluByDefault,
    right=LeakyRelu,
    words=('alpha', '0.2', '0.3'),
    causes=('leaky_relu_slope',),
  ),
  PortBug(
    'B44',
    'formula of gelu',
    tf1='BERT and GPT-2 write gelu with tanh',
    mistake="Keras' 'gelu' uses erf",
    stage=_ZERO,
    wrong=GeluByErf,
    right=Gelu,
    words=('gelu', 'approximate=True'),
    causes=('gelu_formula',),
  ),
  PortBug(
    'B45',
    'order of flattened elements',
    tf1='flattens channels first',
    mistake='flattens channels last, with the same dense kernel',
    stage=_ZERO,
    wrong=FlattenedChannelsLast,
    right=Flattened,
    words=('Transpose', '[0, 3, 1, 2]'),
    causes=('flatten_order',),
  ),
  PortBug(
    'B46',
    'axis of argmax',
    tf1='tf.argmax runs over axis 0 by default',
    mistake='keras.backend.argmax runs over the last axis',
    stage=_ZERO,
    wrong=PredictedAlongTheLastAxis,
    right=Predicted,
    words=('ArgMax', 'axis', '-1'),
    causes=('arg_axis',),
  ),
  PortBug(
    'B47',
    'division of integers',
    tf1='tf.div (and / in Python 2) floors integers',
    mistake='/ converts them to floats',
    stage=_ZERO,
    wrong=DividedBuckets,
    right=FlooredBuckets,
    words=('FloorDiv', 'RealDiv', '//'),
    causes=('integer_division',),
  ),
  PortBug(
    'B90',
    'assert on which nothing depends',
    tf1='the assert is in the graph, but no fetched tensor depends on it: it never runs',
    mistake='the same line runs eagerly, and fails',
    stage=_ZERO,
    wrong=AssertedGainThatRuns,
    right=AssertedGain,
    words=('the gain has grown', 'never runs in tf1'),
    status=tf2verify.Status.ERROR,
  ),
)
