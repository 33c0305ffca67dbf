"""Mistakes in initial values."""

import abc

import tensorflow as tf
import tf_slim as slim

from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
_CONSTANT = 'seeded_constant'


class Started(tiny_models.OneModel, abc.ABC):
  """A dense layer whose initial values are what matters."""

  tf1_initializer = None
  tf2_initializer = None

  def model(self, inputs, training):
    return v1.layers.dense(inputs, 8, kernel_initializer=self.tf1_initializer, name='fc')

  def make_tf2_layer(self):
    dense = tf.keras.layers.Dense(8, kernel_initializer=self.tf2_initializer, name='fc')
    return tf.keras.Sequential([dense])


class Normal(Started):
  tf1_initializer = staticmethod(v1.random_normal_initializer())
  tf2_initializer = staticmethod(tf.random_normal_initializer(stddev=1.0))


class NormalByDefault(Normal):
  tf2_initializer = staticmethod(tf.random_normal_initializer())


class VarianceScaling(Started):
  tf1_initializer = staticmethod(slim.variance_scaling_initializer())
  tf2_initializer = staticmethod(slim.variance_scaling_initializer())


class VarianceScalingOfKeras(VarianceScaling):
  # What tf_upgrade_v2 puts in its place.
  tf2_initializer = staticmethod(v1.keras.initializers.VarianceScaling(scale=2.0))


class Truncated(Started):
  tf1_initializer = staticmethod(v1.truncated_normal_initializer(stddev=0.1, seed=1))
  # The same distribution, drawn by a stateless op, for which a seed means something else.
  tf2_initializer = staticmethod(tf.keras.initializers.TruncatedNormal(stddev=0.1, seed=1))


class TruncatedAndCorrected(Truncated):
  tf2_initializer = staticmethod(tf.keras.initializers.TruncatedNormal(stddev=0.1 / 0.87962566))


class TwoLayers(tiny_models.OneModel):
  """Two dense layers of one shape."""

  shared = False

  def model(self, inputs, training):
    net = v1.layers.dense(inputs, 3, tf.nn.relu, name='first')
    return v1.layers.dense(net, 3, name='second')

  def make_tf2_layer(self):
    one = tf.keras.initializers.GlorotUniform()
    other = one if self.shared else tf.keras.initializers.GlorotUniform()
    return tf.keras.Sequential(
      [
        tf.keras.layers.Dense(3, 'relu', kernel_initializer=one, name='first'),
        tf.keras.layers.Dense(3, kernel_initializer=other, name='second'),
      ]
    )


class TwoLayersWithOneInitializer(TwoLayers):
  shared = True


PORT_BUGS = (
  PortBug(
    'B76',
    'default of an initializer',
    tf1='random_normal_initializer() has a standard deviation of 1.0',
    mistake='that of TF2 has 0.05',
    stage=_CONSTANT,
    wrong=NormalByDefault,
    right=Normal,
    words=('fc/kernel', 'stddev', '0.05'),
    causes=('initializer_scale',),
  ),
  PortBug(
    'B77',
    'correction of variance scaling',
    tf1='slim.variance_scaling_initializer divides the truncated normal by 1.3, roughly',
    mistake="Keras' VarianceScaling(2.0), which tf_upgrade_v2 puts in its place, is exact",
    stage=_CONSTANT,
    wrong=VarianceScalingOfKeras,
    right=VarianceScaling,
    words=('fc/kernel', '0.99708', '1.3'),
    causes=('initializer_scale',),
  ),
  PortBug(
    'B77a',
    'one initializer for two layers',
    tf1='every layer draws its own values',
    mistake='an unseeded Keras initializer that two layers share draws the same values twice',
    stage='seeded_num_random_ops',
    wrong=TwoLayersWithOneInitializer,
    right=TwoLayers,
    words=('second/kernel', 'first/kernel', 'initializer'),
  ),
  PortBug(
    'B77b',
    'standard deviation of a truncated normal',
    tf1='truncated_normal_initializer takes the standard deviation before truncation',
    mistake='passes the one after truncation, as variance_scaling defines it',
    stage=_CONSTANT,
    wrong=TruncatedAndCorrected,
    right=Truncated,
    words=('fc/kernel', 'truncated normal, standard deviation 0.1;', '0.1137'),
  ),
)
