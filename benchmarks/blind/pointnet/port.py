"""The right port of PointNet: a subclassed model of Keras 3, dense layers for 1x1 convolutions."""

import math

import keras
import tensorflow as tf
from keras import ops

CATEGORIES = 4
PARTS = 6
JITTER = {'stddev': 0.02, 'limit': 0.03}
DECAY = 4e-3

SMOOTHING = 0.1
PARTS_WEIGHT = 0.8
ORTHOGONALITY_WEIGHT = 1e-3

BATCH_SIZE = 8
CLIP_NORM = 1.0


def batch_norm_decay(step):
  """Grows in stairs, every two steps."""
  stairs = ops.floor(ops.cast(step, 'float32') * BATCH_SIZE / 16)
  return ops.minimum(0.8, 1.0 - 0.5 * ops.power(0.6, stairs))


class BatchNorm(keras.layers.Layer):
  """Its decay depends on the step of the training, a variable of the model."""

  def __init__(self, step, epsilon=1e-3, **kwargs):
    super().__init__(**kwargs)
    self.step = step
    self.epsilon = epsilon

  def build(self, input_shape):
    shape = (input_shape[-1],)
    self.gamma = self.add_weight(shape=shape, initializer='ones', name='gamma')
    self.beta = self.add_weight(shape=shape, initializer='zeros', name='beta')
    self.mean = self.add_weight(shape=shape, initializer='zeros', trainable=False, name='mean')
    self.variance = self.add_weight(
      shape=shape, initializer='ones', trainable=False, name='variance'
    )

  def call(self, inputs, training=False):
    if training:
      mean, variance = ops.moments(inputs, axes=tuple(range(len(inputs.shape) - 1)))
      decay = batch_norm_decay(self.step)
      self.mean.assign(decay * self.mean + (1.0 - decay) * mean)
      self.variance.assign(decay * self.variance + (1.0 - decay) * variance)
    else:
      mean, variance = self.mean, self.variance
    normal = (inputs - mean) * ops.rsqrt(variance + self.epsilon)
    return self.gamma * normal + self.beta


def coordinate_initializer(units):
  """Glorot's for a convolution over three coordinates: three times the fan out of a dense layer."""
  limit = math.sqrt(6.0 / (3 + 3 * units))
  return keras.initializers.RandomUniform(-limit, limit)


class Block(keras.layers.Layer):
  """A dense layer on the last axis, batch norm, ReLU."""

  def __init__(self, units, step, initializer='glorot_uniform', regularizer=None, **kwargs):
    super().__init__(**kwargs)
    self.dense = keras.layers.Dense(
      units,
      use_bias=False,
      kernel_initializer=initializer,
      kernel_regularizer=regularizer,
      name='dense',
    )
    self.norm = BatchNorm(step, name='norm')

  def call(self, inputs, training=False):
    return ops.relu(self.norm(self.dense(inputs), training=training))


class Jitter(keras.layers.Layer):
  def __init__(self, stddev, limit, **kwargs):
    super().__init__(**kwargs)
    self.stddev = stddev
    self.limit = limit
    self.seeds = keras.random.SeedGenerator()

  def call(self, points, training=False):
    if not training:
      return points
    noise = self.stddev * keras.random.normal(ops.shape(points), seed=self.seeds)
    return points + ops.clip(noise, -self.limit, self.limit)


class Transformer(keras.layers.Layer):
  """Predicts a matrix from a set of vectors; at first it is the identity."""

  def __init__(self, step, initializer='glorot_uniform', **kwargs):
    super().__init__(**kwargs)
    self.shared = [Block(8, step, initializer, name='shared_0'), Block(16, step, name='shared_1')]
    self.fc = Block(12, step, regularizer=keras.regularizers.L2(DECAY / 2), name='fc')

  def build(self, input_shape):
    self.size = input_shape[-1]
    self.matrix = keras.layers.Dense(self.size**2, kernel_initializer='zeros', name='matrix')

  def call(self, vectors, training=False):
    x = vectors
    for block in self.shared:
      x = block(x, training=training)
    x = ops.max(x, axis=1)
    x = self.fc(x, training=training)
    matrix = ops.reshape(self.matrix(x), (-1, self.size, self.size))
    return matrix + ops.eye(self.size)


class PointNet(keras.Model):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.step = self.add_weight(
      shape=(), dtype='int64', initializer='zeros', trainable=False, name='step'
    )
    decayed = keras.regularizers.L2(DECAY / 2)
    self.jitter = Jitter(**JITTER)
    self.align_points = Transformer(self.step, coordinate_initializer(8), name='align_points')
    self.align_features = Transformer(self.step, name='align_features')
    self.embed = [
      Block(10, self.step, coordinate_initializer(10), name='embed_0'),
      Block(8, self.step, name='embed_1'),
    ]
    self.encode = [Block(units, self.step, name=f'encode_{i}') for i, units in enumerate((14, 16))]
    self.category_hidden = Block(12, self.step, regularizer=decayed, name='category_hidden')
    self.category_dropout = keras.layers.Dropout(0.3)
    self.category_logits = keras.layers.Dense(
      CATEGORIES, kernel_regularizer=decayed, name='category_logits'
    )
    self.parts_hidden = [
      Block(units, self.step, name=f'parts_hidden_{i}') for i, units in enumerate((16, 12))
    ]
    self.parts_dropout = keras.layers.SpatialDropout1D(0.2)
    self.parts_logits = keras.layers.Dense(PARTS, name='parts_logits')

  def call(self, inputs, training=False):
    points = self.jitter(inputs['points'], training=training)
    points = ops.matmul(points, self.align_points(points, training=training))
    low = self.embed[0](points, training=training)
    features = self.embed[1](low, training=training)
    transform = self.align_features(features, training=training)
    aligned = ops.matmul(features, transform)
    x = self.encode[0](aligned, training=training)
    high = self.encode[1](x, training=training)
    summary = ops.max(high, axis=1)

    x = self.category_hidden(summary, training=training)
    x = self.category_dropout(x, training=training)
    category = self.category_logits(x)

    known = ops.one_hot(inputs['category'], CATEGORIES, dtype=summary.dtype)
    whole = ops.concatenate([summary, known], axis=-1)[:, None, :]
    whole = ops.repeat(whole, points.shape[1], axis=1)
    x = ops.concatenate([whole, low, aligned, high], axis=-1)
    x = self.parts_hidden[0](x, training=training)
    x = self.parts_dropout(x, training=training)
    x = self.parts_hidden[1](x, training=training)
    return {'category': category, 'parts': self.parts_logits(x), 'transform': transform}


def category_loss(logits, labels):
  loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=SMOOTHING)
  return loss(ops.one_hot(labels, CATEGORIES), logits)


def parts_loss(logits, labels):
  """The mean over the objects of the mean over their labelled points."""
  labelled = ops.cast(labels >= 0, logits.dtype)
  each = keras.losses.sparse_categorical_crossentropy(
    ops.maximum(labels, 0), logits, from_logits=True
  )
  counts = ops.maximum(ops.sum(labelled, axis=1), 1.0)
  return ops.mean(ops.sum(labelled * each, axis=1) / counts)


def orthogonality_loss(transform):
  gram = ops.matmul(transform, ops.transpose(transform, (0, 2, 1)))
  return 0.5 * ops.sum(ops.square(gram - ops.eye(transform.shape[-1])))


def pointnet_loss(outputs, labels):
  category = category_loss(outputs['category'], labels['category'])
  parts = parts_loss(outputs['parts'], labels['parts'])
  orthogonality = orthogonality_loss(outputs['transform'])
  loss = PARTS_WEIGHT * parts + (1.0 - PARTS_WEIGHT) * category
  loss += ORTHOGONALITY_WEIGHT * orthogonality
  return {'loss': loss, 'label': category, 'seg': parts, 'mat_diff': orthogonality}


class FlooredDecay(keras.optimizers.schedules.LearningRateSchedule):
  """Decays in stairs; the length of a stair is in examples."""

  def __init__(self, initial, examples, rate, floor):
    self.config = {'initial': initial, 'examples': examples, 'rate': rate, 'floor': floor}
    self.decay = keras.optimizers.schedules.ExponentialDecay(
      initial, examples / BATCH_SIZE, rate, staircase=True
    )
    self.floor = floor

  def __call__(self, step):
    return ops.maximum(self.decay(step), self.floor)

  def get_config(self):
    return self.config


def make_optimizer():
  rate = FlooredDecay(0.01, 16, 0.5, 0.003)
  return keras.optimizers.Adam(rate, epsilon=1e-8, clipnorm=CLIP_NORM)


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = pointnet_loss(outputs, labels)['loss'] + sum(model.losses)
  gradients = tape.gradient(loss, model.trainable_variables)
  optimizer.apply_gradients(zip(gradients, model.trainable_variables))
  model.step.assign_add(1)
  return loss
