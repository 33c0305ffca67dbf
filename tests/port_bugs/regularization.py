"""Mistakes in regularization losses."""

import tensorflow as tf
import tf_slim as slim

from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
_ZERO = 'zero_randomness'
_DECAY = 0.1


def decayed(factor=0.5):
  """L2 of Keras; half of it is the weight decay of TF1."""
  return tf.keras.regularizers.L2(factor * _DECAY)


class Decayed(tiny_models.OneModel):
  factor = 0.5

  def model(self, inputs, training):
    return v1.layers.dense(inputs, 3, kernel_regularizer=slim.l2_regularizer(_DECAY), name='fc')

  def make_tf2_layer(self):
    dense = tf.keras.layers.Dense(3, kernel_regularizer=decayed(self.factor), name='fc')
    return tf.keras.Sequential([dense])


class DecayedTwice(Decayed):
  factor = 1.0


class ConvNet(tiny_models.OneImageModel):
  """Weight decay on the convolution alone."""

  fc_regularizer = None
  variable_names = {
    'conv/weights': 'conv/kernel',
    'conv/biases': 'conv/bias',
    'fc/weights': 'fc/kernel',
    'fc/biases': 'fc/bias',
  }

  def model(self, inputs, training):
    with slim.arg_scope([slim.conv2d], weights_regularizer=slim.l2_regularizer(_DECAY)):
      net = slim.conv2d(inputs, 2, 3, scope='conv')
      return slim.fully_connected(slim.flatten(net), 3, activation_fn=None, scope='fc')

  def make_tf2_layer(self):
    start = {'kernel_initializer': slim.xavier_initializer()}
    conv = tf.keras.layers.Conv2D(
      2, 3, padding='same', activation='relu', kernel_regularizer=decayed(), name='conv', **start
    )
    fc = tf.keras.layers.Dense(3, kernel_regularizer=self.fc_regularizer, name='fc', **start)
    return tf.keras.Sequential([conv, tf.keras.layers.Flatten(), fc])


class ConvNetDecayedEverywhere(ConvNet):
  fc_regularizer = decayed()


class Separable(tiny_models.OneImageModel):
  """A separable convolution, both of whose kernels decay."""

  regularizers = ('depthwise_regularizer', 'pointwise_regularizer')
  variable_names = {
    'conv/depthwise_weights': 'conv/depthwise_kernel',
    'conv/pointwise_weights': 'conv/pointwise_kernel',
    'conv/biases': 'conv/bias',
  }

  def model(self, inputs, training):
    decay = slim.l2_regularizer(_DECAY)
    return slim.separable_conv2d(inputs, 4, 3, 1, weights_regularizer=decay, scope='conv')

  def make_tf2_layer(self):
    conv = tf.keras.layers.SeparableConv2D(
      4,
      3,
      padding='same',
      activation='relu',
      depthwise_initializer=slim.xavier_initializer(),
      pointwise_initializer=slim.xavier_initializer(),
      name='conv',
      **{name: decayed() for name in self.regularizers},
    )
    return tf.keras.Sequential([conv])


class SeparableWithIgnoredRegularizer(Separable):
  regularizers = ('kernel_regularizer',)


class Collected(tiny_models.OneModel):
  """A TF1-style function under the shim, on both sides."""

  def model(self, inputs, training):
    regularizer = slim.l2_regularizer(_DECAY)
    return inputs @ v1.get_variable('kernel', [3, 3], regularizer=regularizer)


class CollectedEagerly(Collected):
  def tf2_regularization_losses(self, layer):
    return v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)


PORT_BUGS = (
  PortBug(
    'B56a',
    'factor 2 in the weight decay',
    tf1='slim.l2_regularizer(s) is s · sum(w²) / 2',
    mistake='keras.regularizers.L2(s) is s · sum(w²)',
    stage=_ZERO,
    wrong=DecayedTwice,
    right=Decayed,
    words=('fc/kernel', '2 times', 'L2'),
    causes=('weight_decay_factor',),
  ),
  PortBug(
    'B56c',
    'layers that an arg_scope leaves out',
    tf1='arg_scope([slim.conv2d], weights_regularizer=) leaves the dense layer without one',
    mistake='regularizes every layer',
    stage=_ZERO,
    wrong=ConvNetDecayedEverywhere,
    right=ConvNet,
    words=('fc/weights', 'the port regularizes a variable that tf1 does not'),
  ),
  PortBug(
    'B56d',
    'regularizer of a separable convolution',
    tf1='slim.separable_conv2d(weights_regularizer=) regularizes both kernels',
    mistake='SeparableConv2D(kernel_regularizer=) accepts the argument and ignores it',
    stage=_ZERO,
    wrong=SeparableWithIgnoredRegularizer,
    right=Separable,
    words=('conv/depthwise_weights', 'depthwise_regularizer'),
    causes=('depthwise_regularizer',),
  ),
  PortBug(
    'B56e',
    'collections in eager mode',
    tf1='get_collection(REGULARIZATION_LOSSES) holds the losses',
    mistake='the same call returns an empty list in eager mode',
    stage=_ZERO,
    wrong=CollectedEagerly,
    right=Collected,
    words=('kernel', 'collection', 'eager'),
  ),
)
