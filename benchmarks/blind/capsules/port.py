"""The right port of the capsule network: a functional model of Keras 3 with layers of its own."""

import keras
import tensorflow as tf
from keras import ops

CLASSES = 5
IMAGE = (14, 14, 1)
CONV = {'filters': 8, 'kernel_size': 5}
PRIMARY = {'types': 4, 'dim': 6}
POSE_DIM = 8
ROUTINGS = 3
DROP_RATE = 0.2
DECODER = (24, 32)
DECAY = 2e-3
TINY = 1e-7

UPPER, LOWER = 0.9, 0.1
ABSENT_WEIGHT = 0.5
RECONSTRUCTION_WEIGHT = 0.005

CLIP_NORM = 0.4
AVERAGE_DECAY = 0.999


def squash(vectors):
  """Shrinks short vectors to zero, and long ones to the length one."""
  squared = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
  return vectors * squared / ((1.0 + squared) * ops.sqrt(squared + TINY))


@keras.saving.register_keras_serializable('capsules')
class PrimaryCapsules(keras.layers.Layer):
  def __init__(self, types, dim, **kwargs):
    super().__init__(**kwargs)
    self.types = types
    self.dim = dim
    self.conv = keras.layers.Conv2D(
      types * dim,
      3,
      strides=2,
      kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.1),
      bias_initializer=keras.initializers.Constant(0.05),
      name='conv',
    )

  def build(self, input_shape):
    self.conv.build(input_shape)

  def call(self, inputs):
    features = self.conv(inputs)
    count = features.shape[1] * features.shape[2] * self.types
    capsules = ops.reshape(features, (-1, count, self.dim))
    return squash(capsules)

  def get_config(self):
    return {**super().get_config(), 'types': self.types, 'dim': self.dim}


@keras.saving.register_keras_serializable('capsules')
class ClassCapsules(keras.layers.Layer):
  """Routing by agreement."""

  def __init__(self, count, dim, routings, **kwargs):
    super().__init__(**kwargs)
    self.count = count
    self.dim = dim
    self.routings = routings

  def build(self, input_shape):
    _, inputs, input_dim = input_shape
    self.kernel = self.add_weight(
      shape=(self.count, inputs, self.dim, input_dim),
      initializer=keras.initializers.RandomNormal(stddev=0.15),
      name='kernel',
    )
    self.bias = self.add_weight(
      shape=(self.count, self.dim), initializer=keras.initializers.Constant(0.1), name='bias'
    )

  def call(self, inputs):
    votes = ops.einsum('bni,cndi->bcnd', inputs, self.kernel)
    fixed = ops.stop_gradient(votes)
    agreement = ops.zeros_like(fixed[..., 0])
    for _ in range(self.routings - 1):
      coupling = ops.softmax(agreement, axis=1)
      pose = squash(ops.einsum('bcn,bcnd->bcd', coupling, fixed) + self.bias)
      agreement = agreement + ops.einsum('bcd,bcnd->bcn', pose, fixed)
    coupling = ops.softmax(agreement, axis=1)
    pose = squash(ops.einsum('bcn,bcnd->bcd', coupling, votes) + self.bias)
    return pose, ops.transpose(coupling, (0, 2, 1))

  def get_config(self):
    config = {'count': self.count, 'dim': self.dim, 'routings': self.routings}
    return {**super().get_config(), **config}


@keras.saving.register_keras_serializable('capsules')
class Length(keras.layers.Layer):
  def call(self, pose):
    return ops.sqrt(ops.sum(ops.square(pose), axis=-1) + TINY)


@keras.saving.register_keras_serializable('capsules')
class Mask(keras.layers.Layer):
  """Keeps one pose: that of the label in training, where there is one, else of the longest."""

  def call(self, pose, lengths, label, training=False):
    chosen = ops.argmax(lengths, axis=-1)
    if training:
      chosen = ops.where(label >= 0, label, ops.cast(chosen, label.dtype))
    mask = ops.one_hot(chosen, pose.shape[1], dtype=pose.dtype)
    return ops.reshape(pose * mask[:, :, None], (-1, pose.shape[1] * pose.shape[2]))


def make_model():
  image = keras.Input(IMAGE, dtype='uint8', name='image')
  label = keras.Input((), dtype='int32', name='label')
  x = keras.layers.Rescaling(1.0 / 255.0, name='rescaling')(image)
  x = keras.layers.Conv2D(
    activation='relu',
    kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.1),
    name='conv',
    **CONV,
  )(x)
  capsules = PrimaryCapsules(name='primary', **PRIMARY)(x)
  capsules = keras.layers.Dropout(
    DROP_RATE, noise_shape=(None, capsules.shape[1], 1), name='capsule_dropout'
  )(capsules)
  pose, coupling = ClassCapsules(CLASSES, POSE_DIM, ROUTINGS, name='routing')(capsules)
  lengths = Length(name='lengths')(pose)

  x = Mask(name='mask')(pose, lengths, label)
  for i, units in enumerate(DECODER):
    x = keras.layers.Dense(
      units,
      activation='relu',
      kernel_regularizer=keras.regularizers.L2(DECAY / 2),
      name=f'decoder_{i}',
    )(x)
  pixels = IMAGE[0] * IMAGE[1] * IMAGE[2]
  x = keras.layers.Dense(
    pixels,
    activation='sigmoid',
    kernel_regularizer=keras.regularizers.L2(DECAY / 2),
    name='reconstruction',
  )(x)
  outputs = {'lengths': lengths, 'pose': pose, 'coupling': coupling, 'image': x}
  return keras.Model({'image': image, 'label': label}, outputs, name='capsule_network')


def margin_loss(lengths, label):
  """The mean over the images that have a label."""
  labelled = ops.cast(label >= 0, 'float32')
  target = ops.one_hot(label, CLASSES, dtype='float32')
  short = ops.square(ops.relu(UPPER - lengths))
  long = ops.square(ops.relu(lengths - LOWER))
  each = ops.sum(target * short + ABSENT_WEIGHT * (1.0 - target) * long, axis=-1)
  return ops.divide_no_nan(ops.sum(labelled * each), ops.sum(labelled))


def reconstruction_loss(images, targets):
  targets = ops.reshape(ops.cast(targets, 'float32') / 255.0, ops.shape(images))
  return ops.mean(ops.sum(ops.square(images - targets), axis=-1))


def capsule_loss(outputs, labels):
  margin = margin_loss(outputs['lengths'], labels['label'])
  reconstruction = RECONSTRUCTION_WEIGHT * reconstruction_loss(outputs['image'], labels['image'])
  return {'loss': margin + reconstruction, 'margin': margin, 'reconstruction': reconstruction}


class Momentum(keras.optimizers.Optimizer):
  """TF1's: the rate is not in the accumulator, as it is in keras.optimizers.SGD."""

  def __init__(self, learning_rate, momentum=0.9, nesterov=False, name='momentum', **kwargs):
    super().__init__(learning_rate=learning_rate, name=name, **kwargs)
    self.momentum = momentum
    self.nesterov = nesterov

  def build(self, variables):
    if self.built:
      return
    super().build(variables)
    self.momentums = self.add_optimizer_variables(variables, 'momentum')

  def update_step(self, gradient, variable, learning_rate):
    rate = ops.cast(learning_rate, variable.dtype)
    accumulator = self.momentums[self._get_variable_index(variable)]
    self.assign(accumulator, self.momentum * accumulator + gradient)
    direction = accumulator
    if self.nesterov:
      direction = gradient + self.momentum * accumulator
    self.assign_sub(variable, rate * direction)


class Averages:
  """The moving averages of the weights, as tf.train.ExponentialMovingAverage keeps them."""

  def __init__(self, decay):
    self.decay = decay
    self.shadows = []

  def build(self, variables):
    if not self.shadows:
      self.shadows = [
        keras.Variable(variable, trainable=False, name=f'{variable.name}_average')
        for variable in variables
      ]

  def update(self, variables, steps):
    steps = ops.cast(steps, 'float32')
    decay = ops.minimum(self.decay, (1.0 + steps) / (10.0 + steps))
    for shadow, variable in zip(self.shadows, variables, strict=True):
      shadow.assign(shadow - (1.0 - decay) * (shadow - variable))


def make_optimizer():
  rate = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.6, staircase=True)
  return {
    'optimizer': Momentum(rate, momentum=0.9, nesterov=True, global_clipnorm=CLIP_NORM),
    'averages': Averages(AVERAGE_DECAY),
  }


def train_step(model, inputs, labels, tools):
  optimizer, averages = tools['optimizer'], tools['averages']
  variables = model.trainable_variables
  averages.build(variables)
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = capsule_loss(outputs, labels)['loss'] + sum(model.losses)
  gradients = tape.gradient(loss, variables)
  optimizer.apply_gradients(zip(gradients, variables))
  averages.update(variables, optimizer.iterations)
  return loss
