"""Layer norm and instance norm: B28, B29."""

import abc

import tensorflow as tf
import tf_slim as slim

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
layers = tf.keras.layers
_STAGE = 'zero_randomness'


class LayerNorm(tiny_models.OneImageModel, abc.ABC):
  """slim: statistics over height, width and channels; gamma and beta per channel."""

  def model(self, inputs, training):
    return slim.layer_norm(inputs, scope='norm')


class LastAxisOnly(LayerNorm):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.LayerNormalization(epsilon=1e-12, name='norm')])


class AllAxes(LayerNorm):
  def port(self, inputs, training):
    mean, variance = tf.nn.moments(inputs, [1, 2, 3], keepdims=True)
    with v1.variable_scope('norm'):
      beta = v1.get_variable('beta', [3], initializer=v1.zeros_initializer())
      gamma = v1.get_variable('gamma', [3], initializer=v1.ones_initializer())
    return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


class LayerNormOfRows(LayerNorm, abc.ABC):
  def make_inputs(self):
    return 0.1 * tf2verify.normal_inputs((4, 3))


class KerasEpsilon(LayerNormOfRows):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.LayerNormalization(name='norm')])


class SlimEpsilon(LayerNormOfRows):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.LayerNormalization(epsilon=1e-12, name='norm')])


class InstanceNorm(tiny_models.OneImageModel, abc.ABC):
  def model(self, inputs, training):
    return slim.instance_norm(inputs, scope='norm')


class GroupNormEpsilon(InstanceNorm):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.GroupNormalization(-1, name='norm')])


class InstanceNormEpsilon(InstanceNorm):
  def make_tf2_layer(self):
    return tf.keras.Sequential([layers.GroupNormalization(-1, epsilon=1e-6, name='norm')])


PORT_BUGS = (
  PortBug(
    identifier='B28',
    title='layer norm over the last axis only',
    tf1='`slim.layer_norm`: `begin_norm_axis=1`, all axes except the batch axis',
    mistake='`LayerNormalization()`: the default of Keras is `axis=-1`',
    stage=_STAGE,
    wrong=LastAxisOnly,
    right=AllAxes,
    words=('axes', '1, 2, 3'),
    causes=('reduction_axes',),
  ),
  PortBug(
    identifier='B28',
    title='layer norm epsilon',
    tf1='`slim.layer_norm` has an epsilon of 1e-12',
    mistake='`LayerNormalization()`: the default of Keras is 0.001',
    stage=_STAGE,
    wrong=KerasEpsilon,
    right=SlimEpsilon,
    words=('epsilon', '1e-12', '0.001'),
    causes=('normalization_epsilon',),
  ),
  PortBug(
    identifier='B29',
    title='instance norm epsilon',
    tf1='`slim.instance_norm` has an epsilon of 1e-6',
    mistake='`GroupNormalization(groups=-1)`: the default of Keras is 0.001',
    stage=_STAGE,
    wrong=GroupNormEpsilon,
    right=InstanceNormEpsilon,
    words=('epsilon', '1e-06', '0.001'),
    causes=('normalization_epsilon',),
  ),
)
