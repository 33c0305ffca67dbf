"""The right port of the MobileNet: native layers of Keras 3 with a training step of its own."""

import keras
import tensorflow as tf
from keras import layers

CLASSES = 5
DROP_RATE = 0.2
WEIGHT_DECAY = 4e-4
# expansion, output channels, stride, squeeze-and-excitation, hard swish
BLOCKS = [
  (2, 8, 2, False, False),
  (3, 8, 1, True, False),
  (3, 12, 2, True, True),
]


def initializer():
  return keras.initializers.TruncatedNormal(stddev=0.09)


def l2():
  # slim.l2_regularizer halves the sum of squares
  return keras.regularizers.L2(WEIGHT_DECAY / 2)


def hard_sigmoid(x):
  return tf.nn.relu6(x + 3.0) * 0.16667


def hard_swish(x):
  return x * hard_sigmoid(x)


def batch_norm(name):
  return layers.BatchNormalization(momentum=0.9, epsilon=0.001, name=name)


class ConvNorm(layers.Layer):
  """Convolution, batch norm, activation."""

  def __init__(self, filters, size, strides=1, activation=None, **kwargs):
    super().__init__(**kwargs)
    self.conv = layers.Conv2D(
      filters, size, strides, 'same',
      use_bias=False,
      kernel_initializer=initializer(),
      kernel_regularizer=l2(),
      name='conv',
    )
    self.norm = batch_norm('bn')
    self.activation = activation

  def call(self, x, training=False):
    x = self.norm(self.conv(x), training=training)
    return self.activation(x) if self.activation else x


class SqueezeExcite(layers.Layer):
  def build(self, shape):
    channels = shape[-1]
    common = {'kernel_initializer': initializer(), 'kernel_regularizer': l2()}
    self.pool = layers.GlobalAveragePooling2D(keepdims=True)
    self.reduce = layers.Conv2D(channels // 4, 1, activation='relu', name='reduce', **common)
    self.expand = layers.Conv2D(channels, 1, activation=hard_sigmoid, name='expand', **common)
    self.reduce.build((None, 1, 1, channels))
    self.expand.build((None, 1, 1, channels // 4))

  def call(self, x):
    return x * self.expand(self.reduce(self.pool(x)))


class Block(layers.Layer):
  """Inverted residual block."""

  def __init__(self, expansion, channels, stride, excite, swish, **kwargs):
    super().__init__(**kwargs)
    self.expansion = expansion
    self.channels = channels
    self.stride = stride
    self.excite = SqueezeExcite(name='excite') if excite else None
    self.activation = hard_swish if swish else tf.nn.relu

  def build(self, shape):
    depth = shape[-1]
    self.expand = ConvNorm(self.expansion * depth, 1, activation=self.activation, name='expand')
    self.depthwise = layers.DepthwiseConv2D(
      3, self.stride, 'same',
      use_bias=False,
      depthwise_initializer=initializer(),
      name='depthwise',
    )
    self.norm = batch_norm('depthwise_bn')
    self.project = ConvNorm(self.channels, 1, name='project')
    self.residual = self.stride == 1 and depth == self.channels
    # stochastic depth: one draw an example
    self.drop = layers.Dropout(DROP_RATE, noise_shape=(None, 1, 1, 1), name='drop')

  def call(self, inputs, training=False):
    x = self.expand(inputs, training=training)
    x = self.depthwise(x)
    x = self.activation(self.norm(x, training=training))
    if self.excite is not None:
      x = self.excite(x)
    x = self.project(x, training=training)
    if self.residual:
      x = inputs + self.drop(x, training=training)
    return x


class MobileNet(keras.Model):
  def __init__(self):
    super().__init__(name='mobilenet')
    self.rescale = layers.Rescaling(1 / 127.5, offset=-1.0)
    self.stem = ConvNorm(8, 3, 2, hard_swish, name='stem')
    self.blocks = [Block(*b, name=f'block_{i}') for i, b in enumerate(BLOCKS)]
    self.head = ConvNorm(24, 1, activation=hard_swish, name='head')
    self.pool = layers.GlobalAveragePooling2D()
    self.dropout = layers.Dropout(0.25)
    self.logits = layers.Dense(
      CLASSES,
      kernel_initializer=keras.initializers.RandomNormal(stddev=0.01),
      kernel_regularizer=keras.regularizers.L2(0.5e-3),
      name='logits',
    )

  def call(self, images, training=False):
    x = self.stem(self.rescale(images), training=training)
    for block in self.blocks:
      x = block(x, training=training)
    x = self.pool(self.head(x, training=training))
    return self.logits(self.dropout(x, training=training))


def classification_loss(logits, labels, weights):
  onehot = tf.one_hot(labels, CLASSES)
  each = keras.losses.categorical_crossentropy(
    onehot, logits, from_logits=True, label_smoothing=0.1
  )
  # tf.losses divides by the number of weights that are not zero
  present = tf.math.count_nonzero(weights, dtype=tf.float32)
  return tf.math.divide_no_nan(tf.reduce_sum(each * weights), present)


class RMSprop(keras.optimizers.RMSprop):
  """Starts the mean of squares at one, as TF1 does."""

  def build(self, variables):
    if self.built:
      return
    super().build(variables)
    for velocity in self._velocities:
      velocity.assign(tf.ones(velocity.shape, velocity.dtype))


def make_optimizer():
  rate = keras.optimizers.schedules.ExponentialDecay(
    0.01, decay_steps=2, decay_rate=0.7, staircase=True
  )
  return RMSprop(rate, rho=0.9, momentum=0.9, epsilon=0.01, clipnorm=2.0)


def train_step(model, images, labels, optimizer):
  with tf.GradientTape() as tape:
    logits = model(images, training=True)
    loss = classification_loss(logits, labels['classes'], labels['weights'])
    total = loss + tf.add_n(model.losses)
  gradients = tape.gradient(total, model.trainable_variables)
  optimizer.apply_gradients(zip(gradients, model.trainable_variables))
  return total
