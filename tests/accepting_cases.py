"""Ports with a cause that their cases accept, and with faults on top of it."""

import keras
import tensorflow as tf

import tf2verify
from tests.stages import tiny_models

v1 = tf.compat.v1
WHY = 'as the port has it'


class FasterRate(tiny_models.OneModel):
  """A learning rate ten times that of TF1."""

  rate = 0.1

  def model(self, inputs, training):
    return tf.matmul(inputs, tiny_models.kernel())

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=7)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.MomentumOptimizer(0.01, 0.9)

  def make_tf2_optimizer(self):
    return v1.train.MomentumOptimizer(self.rate, 0.9)


class Norm(keras.layers.Layer):
  """The batch norm of Keras 3, with faults on top of its biased variance."""

  def __init__(self, mean=1.0, variance=1.0, epsilon=1e-3, output=1.0):
    super().__init__(name='norm')
    self.faults = mean, variance
    self.epsilon, self.output_factor = epsilon, output

  def build(self, shape):
    self.gamma = self.add_weight(shape=shape[-1:], initializer='ones', name='gamma')
    self.beta = self.add_weight(shape=shape[-1:], initializer='zeros', name='beta')
    state = {'shape': shape[-1:], 'trainable': False}
    self.moving_mean = self.add_weight(initializer='zeros', name='moving_mean', **state)
    self.moving_variance = self.add_weight(initializer='ones', name='moving_variance', **state)

  def call(self, inputs, training=False):
    mean, variance = self.moving_mean, self.moving_variance
    if training:
      mean, variance = tf.nn.moments(inputs, [0, 1, 2])
      for average, value, fault in zip(
        (self.moving_mean, self.moving_variance), (mean, variance), self.faults, strict=True
      ):
        average.assign(average * 0.9 + value * fault * 0.1)
    normalized = tf.nn.batch_normalization(
      inputs, mean, variance, self.beta, self.gamma, self.epsilon
    )
    return normalized * self.output_factor if training else normalized


class BiasedVariance(tiny_models.OneImageModel):
  """TF1's fused batch norm, and that of Keras 3."""

  accepted_causes = {'biased_variance': 'Keras 3 has it so'}
  faults: dict[str, float] = {}

  def model(self, inputs, training):
    return v1.layers.batch_normalization(inputs, momentum=0.9, training=training, name='norm')

  def make_tf2_layer(self):
    return Norm(**self.faults)

  def make_labels(self):
    return tf2verify.normal_inputs((2, 6, 6, 3), seed=7)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(0.1)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1)


class VarianceOnePercentOff(BiasedVariance):
  faults = {'variance': 1.01}


class MeanOnePercentOff(BiasedVariance):
  faults = {'mean': 1.01}


class OutputsOnePercentOff(BiasedVariance):
  faults = {'output': 1.01}


class OtherStart(BiasedVariance):
  """A kernel that starts otherwise, in inference too, before the norm whose variance is biased."""

  starts = 0.1, 0.2
  accepted_causes = {'biased_variance': WHY, 'weight_decay_factor': WHY}

  def model(self, inputs, training):
    start = v1.random_normal_initializer(stddev=self.starts[0])
    kernel = {'use_bias': False, 'kernel_initializer': start, 'name': 'conv'}
    return super().model(v1.layers.conv2d(inputs, 4, 3, **kernel), training)

  def make_tf2_layer(self):
    start = keras.initializers.RandomNormal(stddev=self.starts[1])
    kernel = {'use_bias': False, 'kernel_initializer': start, 'name': 'conv'}
    return keras.Sequential([keras.layers.Conv2D(4, 3, **kernel), Norm()])


class SmallShare(BiasedVariance):
  """Two batch norms whose biased variance is within the tolerance of a single call."""

  momentum = port_momentum = 0.9997

  def model(self, inputs, training):
    def normalized(net, name):
      net = v1.layers.batch_normalization(net, momentum=self.momentum, training=training, name=name)
      return tf.nn.relu(net)

    net = normalized(v1.layers.conv2d(inputs, 4, 3, name='first'), 'large')
    net = v1.layers.conv2d(0.1 * net, 4, 3, name='second')
    return normalized(net, 'small')

  def make_tf2_layer(self):
    norms = [
      keras.layers.BatchNormalization(momentum=self.port_momentum, name=name)
      for name in ('large', 'small')
    ]
    return keras.Sequential(
      [
        keras.layers.Conv2D(4, 3, name='first'),
        norms[0],
        keras.layers.ReLU(),
        keras.layers.Rescaling(0.1),
        keras.layers.Conv2D(4, 3, name='second'),
        norms[1],
        keras.layers.ReLU(),
      ]
    )

  def make_labels(self):
    return tf2verify.normal_inputs((2, 2, 2, 4), seed=7)


class SmallShareUnnamed(SmallShare):
  accepted_causes: dict[str, str] = {}


class SmallShareAndLaterRate(SmallShare):
  """A learning rate that differs from the second step on, where many tensors differ."""

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.9))


class SmallShareOfAnotherMomentum(SmallShare):
  port_momentum = 0.9995


class AnotherEpsilon(BiasedVariance):
  faults = {'epsilon': 1e-2}


class BothAccepted(AnotherEpsilon):
  accepted_causes = {'biased_variance': WHY, 'normalization_epsilon': WHY}


class AnotherRate(BiasedVariance):
  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.101)


class AnotherLoss(BiasedVariance):
  def tf2_loss(self, outputs, labels):
    return 1.01 * tf.reduce_mean(tf.square(outputs - labels))


class Unbiased(BiasedVariance):
  def make_tf2_layer(self):
    norm = tf.keras.layers.BatchNormalization(momentum=0.9, name='norm')  # runs the fused kernel
    return tf.keras.Sequential([norm])


class UnbiasedUntrained(Unbiased):
  make_labels = tf2verify.EquivalenceCase.make_labels
  tf1_loss = tf2verify.EquivalenceCase.tf1_loss
  tf2_loss = tf2verify.EquivalenceCase.tf2_loss
  make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer
  make_tf2_optimizer = tf2verify.EquivalenceCase.make_tf2_optimizer


class TwoSlopes(tf2verify.EquivalenceCase):
  """Leaky relus of two slopes, of which none is that of TF1."""

  accepted_causes = {'leaky_relu_slope': WHY}

  def build_tf1_graph(self, inputs, training):
    net = tf.nn.leaky_relu(v1.layers.dense(inputs, 5, name='a'))
    return tf.nn.leaky_relu(v1.layers.dense(net, 6, name='b'))

  def make_tf2_layer(self):
    layers = []
    for name, units, slope in (('a', 5, 0.3), ('b', 6, 0.01)):
      layers += [keras.layers.Dense(units, name=name), keras.layers.LeakyReLU(slope)]
    return keras.Sequential(layers)

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 8))
