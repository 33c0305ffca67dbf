"""The right port of the super-resolution: a functional model of Keras 3, `train_on_batch`."""

import keras
import tensorflow as tf
from keras import layers, ops

MEAN = [0.45, 0.44, 0.40]
FEATURES, BLOCKS, SCALE = 6, 2, 2


def conv(filters, name, activation=None, init='glorot_uniform'):
  return layers.Conv2D(
    filters,
    3,
    padding='same',
    activation=activation,
    kernel_initializer=init,
    kernel_regularizer=keras.regularizers.L2(5e-4),
    name=name,
  )


class PixelShuffle(layers.Layer):
  def call(self, x):
    b, h, w, c = ops.shape(x)
    depth = c // SCALE**2
    x = ops.reshape(x, (-1, h, w, SCALE, SCALE, depth))
    x = ops.transpose(x, (0, 1, 3, 2, 4, 5))
    return ops.reshape(x, (-1, h * SCALE, w * SCALE, depth))

  def compute_output_shape(self, shape):
    b, h, w, c = shape
    return b, h and h * SCALE, w and w * SCALE, c // SCALE**2


def residual(x, number):
  y = conv(FEATURES, f'res{number}_a', 'relu')(x)
  y = conv(FEATURES, f'res{number}_b')(y)
  y = layers.Rescaling(0.1)(y)
  return layers.Add()([x, y])


def super_resolution():
  low = keras.Input((None, None, 3))
  x = layers.Normalization(mean=MEAN, variance=[1.0, 1.0, 1.0])(low)
  first = x = conv(FEATURES, 'stem')(x)
  for number in range(BLOCKS):
    x = residual(x, number)
  x = conv(FEATURES, 'body_end')(x)
  x = layers.Add()([x, first])
  x = conv(4 * SCALE**2, 'expand', 'relu')(x)
  x = PixelShuffle()(x)
  x = conv(3, 'to_rgb', init=keras.initializers.TruncatedNormal(stddev=0.05))(x)
  up = LegacyUpsample()(low)
  return keras.Model(low, layers.Add()([x, up]), name='sr')


class LegacyUpsample(layers.Layer):
  """Bilinear without half-pixel centres, as tf.image.resize_images of TF1."""

  def call(self, x):
    right = ops.concatenate([x[:, :, 1:], x[:, :, -1:]], 2)
    x = self.interleave(x, (x + right) / 2, 2)
    below = ops.concatenate([x[:, 1:], x[:, -1:]], 1)
    return self.interleave(x, (x + below) / 2, 1)

  def interleave(self, a, b, axis):
    shape = ops.shape(a)
    new = [-1, shape[1], shape[2], shape[3]]
    new[axis] = shape[axis] * 2
    return ops.reshape(ops.stack([a, b], axis + 1), new)

  def compute_output_shape(self, shape):
    b, h, w, c = shape
    return b, h and h * 2, w and w * 2, c


def loss(sr, hr):
  error = sr - hr
  charbonnier = ops.mean(ops.sqrt(ops.square(error) + 1e-3**2))
  edges = ops.mean(ops.abs(ops.diff(error, axis=2))) + ops.mean(ops.abs(ops.diff(error, axis=1)))
  return charbonnier + 0.1 * edges


def psnr(sr, hr):
  return tf.reduce_mean(tf.image.psnr(tf.clip_by_value(sr, 0.0, 1.0), hr, max_val=1.0))


class FlooredDecay(keras.optimizers.schedules.LearningRateSchedule):
  def __init__(self):
    self.decay = keras.optimizers.schedules.ExponentialDecay(2e-3, 2, 0.5)

  def __call__(self, step):
    return ops.maximum(self.decay(step), 5e-4)


def make_optimizer():
  return keras.optimizers.Adam(
    FlooredDecay(), beta_1=0.9, beta_2=0.99, epsilon=1e-6, global_clipnorm=0.2
  )


def train_step(model, low, high, optimizer):
  if getattr(model, 'optimizer', None) is not optimizer:
    model.compile(optimizer, lambda true, predicted: loss(predicted, true))
  return model.train_on_batch(low, high)
