"""Batch norm: B21 to B27."""

import abc

import tensorflow as tf
import tf_slim as slim

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
layers = tf.keras.layers
_ZERO = 'zero_randomness'
_SEED = 'seeded_constant'


def sequential_norm(**arguments):
  """Returns a port that is no more than Keras' batch norm, named as in the TF1 models below."""
  return tf.keras.Sequential([layers.BatchNormalization(name='norm', **arguments)])


class ResNetBlock(tiny_models.OneImageModel, abc.ABC):
  """Convolution, batch norm with an epsilon of its own, relu."""

  def model(self, inputs, training):
    net = v1.layers.conv2d(inputs, 4, 3, padding='same', use_bias=False, name='conv')
    net = v1.layers.batch_normalization(
      net, momentum=0.9, epsilon=1e-5, training=training, name='norm'
    )
    return tf.nn.relu(net)

  def keras_port(self, **arguments):
    return tf.keras.Sequential(
      [
        layers.Conv2D(4, 3, padding='same', use_bias=False, name='conv'),
        layers.BatchNormalization(momentum=0.9, name='norm', **arguments),
        layers.ReLU(),
      ]
    )


class DefaultEpsilon(ResNetBlock):
  def make_tf2_layer(self):
    return self.keras_port()


class SameEpsilon(ResNetBlock):
  def make_tf2_layer(self):
    return self.keras_port(epsilon=1e-5)


class TrainingLost(layers.Layer):
  """A custom loop that forgets to hand `training` on."""

  def __init__(self):
    super().__init__(name='net')
    self.norm = layers.BatchNormalization(momentum=0.999, scale=False, name='norm')

  def call(self, inputs, training=False):
    return self.norm(inputs, training=self.mode(training))

  def mode(self, training):
    return False


class TrainingPassed(TrainingLost):
  def mode(self, training):
    return training


class SlimInNet(tiny_models.OneImageModel, abc.ABC):
  def model(self, inputs, training):
    return slim.batch_norm(inputs, is_training=training, scope='norm')

  def variable_names(self, name):
    return f'net/{name}'


class AlwaysInference(SlimInNet):
  def make_tf2_layer(self):
    return TrainingLost()


class TrainingMode(SlimInNet):
  def make_tf2_layer(self):
    return TrainingPassed()


class SlimNorm(tiny_models.OneImageModel, abc.ABC):
  def model(self, inputs, training):
    return slim.batch_norm(inputs, is_training=training, scope='norm')


class DefaultMomentum(SlimNorm):
  def make_tf2_layer(self):
    return sequential_norm(scale=False)


class SlimMomentum(SlimNorm):
  def make_tf2_layer(self):
    return sequential_norm(scale=False, momentum=0.999)


class SlimNormOfRows(SlimNorm, abc.ABC):
  """slim runs rank-2 inputs through the fused kernel too, whose variance is unbiased."""

  def make_inputs(self):
    return tf2verify.normal_inputs((8, 3))


class BiasedVariance(SlimNormOfRows):
  def make_tf2_layer(self):
    return sequential_norm(scale=False, momentum=0.999)


class OneByOneImage(layers.Layer):
  """Keras takes the fused kernel for rank 4 only."""

  def __init__(self):
    super().__init__(name='net')
    self.norm = layers.BatchNormalization(momentum=0.999, scale=False, name='norm')

  def call(self, inputs, training=False):
    return self.norm(inputs[:, None, None], training=training)[:, 0, 0]


class UnbiasedVariance(SlimNormOfRows):
  def variable_names(self, name):
    return f'net/{name}'

  def make_tf2_layer(self):
    return OneByOneImage()


class FrozenNorm(tiny_models.OneImageModel, abc.ABC):
  def model(self, inputs, training):
    return v1.layers.batch_normalization(inputs, trainable=False, training=training, name='norm')


class FrozenIsInference(FrozenNorm):
  def make_tf2_layer(self):
    return sequential_norm(trainable=False)


class FrozenUsesBatch(FrozenNorm):
  pass


class UpdatesNeverRun(tiny_models.OneImageModel, abc.ABC):
  """The updates are in a collection of which the training op knows nothing."""

  def model(self, inputs, training):
    return slim.batch_norm(
      inputs, is_training=training, updates_collections='norm_updates', scope='norm'
    )


class UpdatesAtOnce(UpdatesNeverRun):
  def make_tf2_layer(self):
    return sequential_norm(scale=False, momentum=0.999)


class UpdatesStopped(UpdatesNeverRun):
  def make_tf2_layer(self):
    return sequential_norm(scale=False, momentum=1.0)


class Discriminator(tiny_models.OneImageModel, abc.ABC):
  """Called for real and for generated images; the updates of the second call are not run."""

  def model(self, inputs, training):
    with v1.variable_scope('norm', reuse=v1.AUTO_REUSE):
      collections = (v1.GraphKeys.UPDATE_OPS, 'updates_of_generated')
      real, generated = (
        slim.batch_norm(images, is_training=training, updates_collections=name, scope='bn')
        for images, name in zip((inputs, 0.5 * inputs + 1), collections, strict=True)
      )
    return real, generated


class KerasDiscriminator(layers.Layer):
  def __init__(self, updates):
    super().__init__(name='net')
    self._updates = updates
    self.norm = layers.BatchNormalization(momentum=0.999, scale=False, name='norm')

  def call(self, inputs, training=False):
    real = self.norm(inputs, training=training)
    self.norm.momentum = 0.999 if self._updates == 2 else 1.0
    generated = self.norm(0.5 * inputs + 1, training=training)
    self.norm.momentum = 0.999
    return real, generated


class UpdatedTwice(Discriminator):
  def variable_names(self, name):
    return name.replace('norm/bn', 'net/norm')

  def make_tf2_layer(self):
    return KerasDiscriminator(updates=2)


class UpdatedOnce(UpdatedTwice):
  def make_tf2_layer(self):
    return KerasDiscriminator(updates=1)


PORT_BUGS = (
  PortBug(
    identifier='B21',
    title='batch norm epsilon',
    tf1='`epsilon=1e-5`, as in ResNet',
    mistake='`BatchNormalization()`: the default of Keras is 0.001',
    stage=_ZERO,
    wrong=DefaultEpsilon,
    right=SameEpsilon,
    words=('epsilon', '1e-05', '0.001'),
    causes=('normalization_epsilon',),
  ),
  PortBug(
    identifier='B22',
    title='batch norm always in inference mode',
    tf1='`is_training=True` while training',
    mistake='a custom loop that does not pass `training` on: moving averages, never updated',
    stage=_SEED,
    wrong=AlwaysInference,
    right=TrainingMode,
    words=('norm', 'is_training', 'training='),
    causes=('batch_norm_mode',),
  ),
  PortBug(
    identifier='B23',
    title='batch norm momentum',
    tf1='`slim.batch_norm`: the default is `decay=0.999`',
    mistake='`BatchNormalization()`: the default of Keras is 0.99',
    stage=_SEED,
    wrong=DefaultMomentum,
    right=SlimMomentum,
    words=('moving_mean', 'momentum', '0.999', '0.99'),
    causes=('moving_average_momentum',),
  ),
  PortBug(
    identifier='B24',
    title='biased moving variance',
    tf1='`slim.batch_norm` of rank-2 inputs is fused, so that moving_variance is unbiased',
    mistake='`BatchNormalization` of rank-2 inputs is not fused: the variance is (N-1)/N of it',
    stage=_SEED,
    wrong=BiasedVariance,
    right=UnbiasedVariance,
    words=('moving_variance', 'unbiased', '(N-1)/N'),
    causes=('biased_variance',),
  ),
  PortBug(
    identifier='B25',
    title='frozen batch norm',
    tf1='`trainable=False, training=True` still uses the statistics of the batch',
    mistake='`BatchNormalization(trainable=False)` runs in inference mode',
    stage=_SEED,
    wrong=FrozenIsInference,
    right=FrozenUsesBatch,
    words=('norm', 'is_training', 'trainable=False'),
    causes=('batch_norm_mode',),
  ),
  PortBug(
    identifier='B26',
    title='update ops that TF1 never ran',
    tf1='the updates are not in UPDATE_OPS, so that the moving averages never change',
    mistake='Keras updates them in every call',
    stage=_SEED,
    wrong=UpdatesAtOnce,
    right=UpdatesStopped,
    words=('moving_mean', 'UPDATE_OPS'),
    causes=('update_count',),
  ),
  PortBug(
    identifier='B27',
    title='updated twice in a step',
    tf1='the discriminator is called twice, and one call updates the moving averages',
    mistake='both calls update them',
    stage=_SEED,
    wrong=UpdatedTwice,
    right=UpdatedOnce,
    words=('moving_mean', '2 updates', '1'),
    causes=('update_count',),
  ),
)
