"""The right port of the flow: a model of Keras 3, subclassed, with a training step by hand."""

import math

import keras
import tensorflow as tf
from keras import ops

BITS = 5
BINS = 2**BITS
LEVELS = 2
STEPS = 2
HIDDEN = 10
CLASSES = 4
IMAGE = (8, 8, 3)
SCALE_SPEED = 3.0

CLASS_WEIGHT = 0.3
SMOOTHING = 0.1

PEAK_RATE = 0.004
WARMUP_STEPS = 3
CLIP = 5.0
POLYAK = 0.95


def log_normal(x, mean, log_scale):
  squared = ops.square((x - mean) * ops.exp(-log_scale))
  return -0.5 * (math.log(2 * math.pi) + squared) - log_scale


def sum_of_examples(x):
  return ops.sum(x, axis=(1, 2, 3))


class Dequantize(keras.layers.Layer):
  """Fewer bits, in [-0.5, 0.5), with noise within the bins in training."""

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.seeds = keras.random.SeedGenerator(1)

  def call(self, images, training=False):
    x = ops.floor(ops.cast(images, 'float32') / 2 ** (8 - BITS))
    x = x / BINS - 0.5
    if training:
      x = x + keras.random.uniform(ops.shape(x), maxval=1.0 / BINS, seed=self.seeds)
    return x


class Squeeze(keras.layers.Layer):
  """2 x 2 blocks become channels: the channel varies slowest, not fastest as in space_to_depth."""

  def call(self, x):
    _, height, width, channels = x.shape
    x = ops.reshape(x, (-1, height // 2, 2, width // 2, 2, channels))
    x = ops.transpose(x, (0, 1, 3, 5, 2, 4))
    return ops.reshape(x, (-1, height // 2, width // 2, 4 * channels))


class Actnorm(keras.layers.Layer):
  def build(self, input_shape):
    shape = (input_shape[-1],)
    self.shift = self.add_weight(shape=shape, initializer='zeros', name='shift')
    self.log_scale = self.add_weight(shape=shape, initializer='zeros', name='log_scale')

  def call(self, x):
    return (x + self.shift) * ops.exp(SCALE_SPEED * self.log_scale)

  def log_det(self, x):
    return x.shape[1] * x.shape[2] * SCALE_SPEED * ops.sum(self.log_scale)


class PaddedConv(keras.layers.Layer):
  """A convolution whose input has zeros around it, and a channel that is one there."""

  def __init__(self, filters, kernel_size, kernel_initializer, **kwargs):
    super().__init__(**kwargs)
    self.filters = filters
    self.kernel_size = kernel_size
    self.kernel_initializer = keras.initializers.get(kernel_initializer)

  def build(self, input_shape):
    self.border = (self.kernel_size - 1) // 2
    channels = input_shape[-1] + (1 if self.border else 0)
    self.kernel = self.add_weight(
      shape=(self.kernel_size, self.kernel_size, channels, self.filters),
      initializer=self.kernel_initializer,
      name='kernel',
    )

  def call(self, x):
    if self.border:
      sides = ((0, 0), (self.border, self.border), (self.border, self.border), (0, 0))
      outside = ops.pad(ops.zeros_like(x[..., :1]), sides, constant_values=1.0)
      x = ops.concatenate([ops.pad(x, sides), outside], axis=-1)
    return ops.conv(x, self.kernel, padding='valid')


class NormedConv(keras.layers.Layer):
  def __init__(self, filters, kernel_size, **kwargs):
    super().__init__(**kwargs)
    normal = keras.initializers.RandomNormal(stddev=0.05)
    self.conv = PaddedConv(filters, kernel_size, normal, name='conv')
    self.norm = Actnorm(name='norm')

  def build(self, input_shape):
    self.conv.build(input_shape)
    self.norm.build((*input_shape[:-1], self.conv.filters))

  def call(self, x):
    return ops.relu(self.norm(self.conv(x)))


class ScaledOutput(keras.layers.Layer):
  """Bias and scale behind a product that starts with zeros."""

  def build(self, input_shape):
    shape = (input_shape[-1],)
    self.bias = self.add_weight(shape=shape, initializer='zeros', name='bias')
    self.log_scale = self.add_weight(shape=shape, initializer='zeros', name='log_scale')

  def call(self, x):
    return (x + self.bias) * ops.exp(SCALE_SPEED * self.log_scale)


class ZeroConv(keras.layers.Layer):
  def __init__(self, filters, **kwargs):
    super().__init__(**kwargs)
    self.conv = PaddedConv(filters, 3, 'zeros', name='conv')
    self.scaled = ScaledOutput(name='output')

  def build(self, input_shape):
    self.conv.build(input_shape)
    self.scaled.build((*input_shape[:-1], self.conv.filters))

  def call(self, x):
    return self.scaled(self.conv(x))


class ZeroDense(keras.layers.Layer):
  def __init__(self, units, **kwargs):
    super().__init__(**kwargs)
    self.dense = keras.layers.Dense(
      units, use_bias=False, kernel_initializer='zeros', name='dense'
    )
    self.scaled = ScaledOutput(name='output')

  def build(self, input_shape):
    self.dense.build(input_shape)
    self.scaled.build((input_shape[0], self.dense.units))

  def call(self, x):
    return self.scaled(self.dense(x))


class InvertibleConv(keras.layers.Layer):
  def build(self, input_shape):
    channels = input_shape[-1]
    self.kernel = self.add_weight(
      shape=(channels, channels), initializer=keras.initializers.Orthogonal(), name='kernel'
    )

  def call(self, x):
    return ops.matmul(x, self.kernel)

  def log_det(self, x):
    determinant = ops.det(ops.cast(self.kernel, 'float64'))
    each = ops.cast(ops.log(ops.abs(determinant)), 'float32')
    return x.shape[1] * x.shape[2] * each


class FlowStep(keras.layers.Layer):
  def __init__(self, hidden, **kwargs):
    super().__init__(**kwargs)
    self.norm = Actnorm(name='norm')
    self.mix = InvertibleConv(name='mix')
    self.hidden_1 = NormedConv(hidden, 3, name='hidden_1')
    self.hidden_2 = NormedConv(hidden, 1, name='hidden_2')

  def build(self, input_shape):
    *outer, channels = input_shape
    self.norm.build(input_shape)
    self.mix.build(input_shape)
    self.hidden_1.build((*outer, channels // 2))
    self.hidden_2.build((*outer, self.hidden_1.conv.filters))
    self.coupling = ZeroConv(channels, name='coupling')
    self.coupling.build((*outer, self.hidden_2.conv.filters))

  def call(self, z):
    log_det = self.norm.log_det(z) + self.mix.log_det(z)
    z = self.mix(self.norm(z))
    kept, changed = ops.split(z, 2, axis=-1)
    h = self.coupling(self.hidden_2(self.hidden_1(kept)))
    shift, scale = h[..., ::2], ops.sigmoid(h[..., 1::2] + 2.0)
    changed = (changed + shift) * scale
    log_det = log_det + sum_of_examples(ops.log(scale))
    return ops.concatenate([kept, changed], axis=-1), log_det


class Factor(keras.layers.Layer):
  """Half of the channels leave the flow; the other half predicts them."""

  def build(self, input_shape):
    *outer, channels = input_shape
    self.predict = ZeroConv(channels, name='predict')
    self.predict.build((*outer, channels // 2))

  def call(self, z):
    kept, leaving = ops.split(z, 2, axis=-1)
    h = self.predict(kept)
    mean, log_scale = h[..., ::2], h[..., 1::2]
    log_prob = sum_of_examples(log_normal(leaving, mean, log_scale))
    return kept, log_prob, (leaving - mean) * ops.exp(-log_scale)


class ClassPrior(keras.layers.Layer):
  def build(self, input_shape):
    channels = input_shape[-1]
    self.common = ZeroConv(2 * channels, name='common')
    self.common.build((*input_shape[:-1], 2 * channels))
    self.by_class = ZeroDense(2 * channels, name='by_class')
    self.by_class.build((None, CLASSES))

  def call(self, z, y):
    h = self.common(ops.zeros_like(ops.concatenate([z, z], axis=-1)))
    classes = ops.one_hot(y, CLASSES, dtype='float32')
    h = h + self.by_class(classes)[:, None, None, :]
    mean, log_scale = ops.split(h, 2, axis=-1)
    log_prob = sum_of_examples(log_normal(z, mean, log_scale))
    return log_prob, (z - mean) * ops.exp(-log_scale)


class Glow(keras.Model):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.dequantize = Dequantize(name='dequantize')
    self.squeeze = Squeeze(name='squeeze')
    for level in range(LEVELS):
      for step in range(STEPS):
        setattr(self, f'flow_{level}_{step}', FlowStep(HIDDEN, name=f'flow_{level}_{step}'))
      if level < LEVELS - 1:
        setattr(self, f'factor_{level}', Factor(name=f'factor_{level}'))
    self.prior = ClassPrior(name='prior')
    self.classifier = ZeroDense(CLASSES, name='classifier')

  def build(self, input_shape):
    batch, height, width, channels = input_shape['x']
    for level in range(LEVELS):
      height, width, channels = height // 2, width // 2, 4 * channels
      for step in range(STEPS):
        getattr(self, f'flow_{level}_{step}').build((batch, height, width, channels))
      if level < LEVELS - 1:
        getattr(self, f'factor_{level}').build((batch, height, width, channels))
        channels = channels // 2
    self.prior.build((batch, height, width, channels))
    self.classifier.build((batch, channels))

  def call(self, inputs, training=False):
    z = self.dequantize(inputs['x'], training=training)
    _, height, width, channels = z.shape
    log_prob = -math.log(BINS) * height * width * channels
    eps = []
    for level in range(LEVELS):
      z = self.squeeze(z)
      for step in range(STEPS):
        z, change = getattr(self, f'flow_{level}_{step}')(z)
        log_prob = log_prob + change
      if level < LEVELS - 1:
        z, change, noise = getattr(self, f'factor_{level}')(z)
        log_prob = log_prob + change
        eps.append(noise)
    change, noise = self.prior(z, inputs['y'])
    log_prob = log_prob + change
    eps.append(noise)
    logits = self.classifier(ops.mean(z, axis=(1, 2)))
    return {'objective': log_prob, 'eps': eps, 'logits': logits}


def flow_loss(outputs, labels):
  """Bits per dimension, and those of the class."""
  dimensions = math.prod(IMAGE)
  bits_of_image = -outputs['objective'] / (math.log(2.0) * dimensions)
  classes = ops.one_hot(labels['y'], CLASSES, dtype='float32')
  entropy = keras.losses.categorical_crossentropy(
    classes, outputs['logits'], from_logits=True, label_smoothing=SMOOTHING
  )
  bits_of_class = entropy / math.log(2.0)
  return ops.mean(bits_of_image + CLASS_WEIGHT * bits_of_class)


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
  """Linear to its peak, then falling with the root of the steps."""

  def __init__(self, peak, steps):
    self.peak = peak
    self.steps = steps

  def __call__(self, step):
    t = ops.cast(step, 'float32') + 1.0
    return self.peak * ops.minimum(t / self.steps, ops.sqrt(self.steps / t))

  def get_config(self):
    return {'peak': self.peak, 'steps': self.steps}


class Trainer:
  """Adam, with Polyak averages of what it trains."""

  def __init__(self):
    self.adam = keras.optimizers.Adam(
      WarmUp(PEAK_RATE, WARMUP_STEPS), beta_1=0.9, beta_2=0.98, epsilon=1e-8
    )
    self.polyak = None

  def step(self, model, inputs, labels):
    variables = model.trainable_variables
    if self.polyak is None:
      self.polyak = [tf.Variable(v, trainable=False, name=f'{v.name}_polyak') for v in variables]
    with tf.GradientTape() as tape:
      loss = flow_loss(model(inputs, training=True), labels)
    gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), CLIP)
    self.adam.apply_gradients(zip(gradients, variables))
    for average, variable in zip(self.polyak, variables):
      average.assign(POLYAK * average + (1.0 - POLYAK) * variable)
    return loss
