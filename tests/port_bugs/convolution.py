"""Defaults of slim's layers, padding and strides: B30 to B33."""

import abc

import tensorflow as tf
import tf_slim as slim

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
layers = tf.keras.layers
_STAGE = 'zero_randomness'


def _glorot():
  return v1.glorot_uniform_initializer()


def _keras_names(name):
  return name.replace('weights', 'kernel').replace('biases', 'bias')


class SlimConvolution(tiny_models.OneImageModel, abc.ABC):
  def model(self, inputs, training):
    return slim.conv2d(inputs, 4, 3, scope='conv')

  def variable_names(self, name):
    return _keras_names(name)

  def keras_port(self, activation):
    return tf.keras.Sequential(
      [layers.Conv2D(4, 3, 1, 'same', None, 1, 1, activation, True, _glorot(), name='conv')]
    )


class NoActivation(SlimConvolution):
  def make_tf2_layer(self):
    return self.keras_port(None)


class Relu(SlimConvolution):
  def make_tf2_layer(self):
    return self.keras_port('relu')


class ConvolutionNormActivation(tiny_models.OneImageModel, abc.ABC):
  def model(self, inputs, training):
    return slim.conv2d(
      inputs,
      4,
      3,
      normalizer_fn=slim.batch_norm,
      normalizer_params={'is_training': training},
      scope='conv',
    )

  def variable_names(self, name):
    return _keras_names(name).replace('conv/BatchNorm', 'norm')

  def keras_port(self, before, after):
    return tf.keras.Sequential(
      [
        layers.Conv2D(4, 3, 1, 'same', None, 1, 1, before, False, _glorot(), name='conv'),
        layers.BatchNormalization(momentum=0.999, scale=False, name='norm'),
        layers.Activation(after),
      ]
    )


class ActivationBeforeNorm(ConvolutionNormActivation):
  def make_tf2_layer(self):
    return self.keras_port('relu', None)


class ActivationAfterNorm(ConvolutionNormActivation):
  def make_tf2_layer(self):
    return self.keras_port(None, 'relu')


class Pooled(tiny_models.OneImageModel, abc.ABC):
  def model(self, inputs, training):
    net = slim.conv2d(inputs, 4, 1, scope='conv')
    return slim.max_pool2d(net, 3)

  def variable_names(self, name):
    return _keras_names(name)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 9, 9, 3))

  def keras_port(self, **arguments):
    conv = layers.Conv2D(4, 1, 1, 'same', None, 1, 1, 'relu', True, _glorot(), name='conv')
    return tf.keras.Sequential([conv, layers.MaxPooling2D(3, **arguments)])


class StrideOfThePool(Pooled):
  def make_tf2_layer(self):
    return self.keras_port()


class StrideOfTwo(Pooled):
  def make_tf2_layer(self):
    return self.keras_port(strides=2)


class DefaultPadding(SlimConvolution):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.Conv2D(4, 3, activation='relu', name='conv')])


class SamePadding(Relu):
  pass


class FixedPadding(tiny_models.OneImageModel, abc.ABC):
  """ResNet's way: the same padding on all sides, whatever the size of the image."""

  def model(self, inputs, training):
    padded = tf.pad(inputs, [[0, 0], [1, 1], [1, 1], [0, 0]])
    return v1.layers.conv2d(padded, 2, 3, 2, 'valid', use_bias=False, name='conv')


class SameAtStrideTwo(FixedPadding):
  def make_tf2_layer(self):
    conv = layers.Conv2D(2, 3, 2, padding='same', use_bias=False, name='conv')
    return tf.keras.Sequential([conv])


class PaddedFirst(FixedPadding):
  def make_tf2_layer(self):
    conv = layers.Conv2D(2, 3, 2, padding='valid', use_bias=False, name='conv')
    return tf.keras.Sequential([layers.ZeroPadding2D(1), conv])


PORT_BUGS = (
  PortBug(
    identifier='B30',
    title='activation by default',
    tf1='`slim.conv2d`: the default is `activation_fn=tf.nn.relu`',
    mistake='`Conv2D()`: the default of Keras is no activation',
    stage=_STAGE,
    wrong=NoActivation,
    right=Relu,
    words=('conv', 'relu'),
    causes=('activation',),
  ),
  PortBug(
    identifier='B31',
    title='activation before batch norm',
    tf1='`slim.conv2d`: convolution, normalizer, activation',
    mistake="`Conv2D(activation='relu')`, then `BatchNormalization`",
    stage=_STAGE,
    wrong=ActivationBeforeNorm,
    right=ActivationAfterNorm,
    words=('relu', 'batch norm', 'before'),
    causes=('activation_order',),
  ),
  PortBug(
    identifier='B32',
    title='stride of a pool',
    tf1='`slim.max_pool2d(net, 3)`: the default is a stride of 2',
    mistake='`MaxPooling2D(3)`: the default of Keras is the size of the pool',
    stage=_STAGE,
    wrong=StrideOfThePool,
    right=StrideOfTwo,
    words=('(2, 4, 4, 4)', '(2, 3, 3, 4)', 'strides'),
    causes=('strides',),
  ),
  PortBug(
    identifier='B32',
    title='padding by default',
    tf1="`slim.conv2d`: the default is `padding='SAME'`",
    mistake="`Conv2D()`: the default of Keras is `padding='valid'`",
    stage=_STAGE,
    wrong=DefaultPadding,
    right=SamePadding,
    words=('(2, 6, 6, 4)', '(2, 4, 4, 4)', 'padding', 'SAME', 'VALID'),
    causes=('padding_default',),
  ),
  PortBug(
    identifier='B33',
    title='SAME instead of fixed padding',
    tf1='`tf.pad` by 1 on all sides, then a VALID convolution of stride 2',
    mistake="`padding='same'`: 0 before and 1 after, so that the window is shifted by one pixel",
    stage=_STAGE,
    wrong=SameAtStrideTwo,
    right=PaddedFirst,
    words=('conv', 'padding', 'SAME', 'VALID', 'Pad'),
    causes=('fixed_padding',),
  ),
)
