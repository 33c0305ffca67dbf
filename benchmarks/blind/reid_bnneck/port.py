"""The network for person re-identification in Keras 3."""

import keras
import tensorflow as tf
from keras import layers, ops

DECAY = keras.regularizers.L2(2.5e-4)
SMOOTHING = 0.1
TRIPLET_WEIGHT = 0.5


class BatchNorm(layers.BatchNormalization):
  """As TF1's fused kernel, which keeps the unbiased variance."""

  def __init__(self, **kwargs):
    super().__init__(**{'momentum': 0.9, 'epsilon': 1e-5, **kwargs})

  def call(self, inputs, training=None, mask=None):
    kept = self.momentum * self.moving_variance
    outputs = super().call(inputs, training=training, mask=mask)
    if training:
      count = ops.cast(ops.size(inputs) / inputs.shape[-1], 'float32')
      self.moving_variance.assign(kept + (self.moving_variance - kept) * count / (count - 1.0))
    return outputs


def _conv(net, depth, size, name, activation=True, **kwargs):
  net = layers.Conv2D(
    depth, size, padding='same', use_bias=False, kernel_regularizer=DECAY, name=name, **kwargs
  )(net)
  net = BatchNorm(name=f'{name}_norm')(net)
  return layers.ReLU()(net) if activation else net


def _squeeze_excite(net, ratio, name):
  depth = net.shape[-1]
  scale = layers.GlobalAveragePooling2D()(net)
  squeeze = layers.Dense(depth // ratio, activation='relu', kernel_regularizer=DECAY, name=f'{name}_squeeze')
  excite = layers.Dense(depth, activation='sigmoid', kernel_regularizer=DECAY, name=f'{name}_excite')
  scale = layers.Reshape((1, 1, depth))(excite(squeeze(scale)))
  return layers.Multiply()([net, scale])


def _block(net, depth, stride, rate, name):
  shortcut = net
  if stride != 1 or net.shape[-1] != depth:
    shortcut = _conv(net, depth, 1, f'{name}_shortcut', activation=False, strides=stride)
  net = _conv(net, depth, 3, f'{name}_conv1', strides=stride)
  net = _conv(net, depth, 3, f'{name}_conv2', activation=False, dilation_rate=rate)
  net = _squeeze_excite(net, 2, f'{name}_se')
  return layers.ReLU()(layers.Add()([net, shortcut]))


def reid(num_people):
  """Returns the model: feature, feature after the neck, logits."""
  images = keras.Input((None, None, 3))
  net = _conv(images, 8, 3, 'stem')
  net = layers.MaxPooling2D(3, 2, padding='same', name='pool')(net)
  net = _block(net, 12, 2, 1, 'block1')
  net = _block(net, 12, 1, 2, 'block2')
  feature = layers.GlobalAveragePooling2D(name='feature')(net)
  neck = BatchNorm(center=False, name='neck')(feature)
  dropped = layers.Dropout(0.2, name='dropout')(neck)
  logits = layers.Dense(
    num_people,
    use_bias=False,
    kernel_initializer=keras.initializers.RandomNormal(stddev=0.001),
    kernel_regularizer=DECAY,
    name='classifier',
  )(dropped)
  return keras.Model(images, {'feature': feature, 'neck': neck, 'logits': logits}, name='reid')


def triplet_loss(features, labels):
  """Each anchor against all others, weighted by how hard they are."""
  difference = features[:, None] - features[None]
  distances = ops.sqrt(ops.sum(ops.square(difference), axis=-1) + 1e-12)
  same = ops.cast(labels[:, None] == labels[None], 'float32')
  positive = same - ops.eye(ops.shape(labels)[0])
  negative = 1.0 - same
  positive_weights = positive * ops.softmax(distances - 1e9 * (1.0 - positive), axis=1)
  negative_weights = negative * ops.softmax(-distances - 1e9 * (1.0 - negative), axis=1)
  furthest = ops.sum(ops.stop_gradient(positive_weights) * distances, axis=1)
  closest = ops.sum(ops.stop_gradient(negative_weights) * distances, axis=1)
  return ops.mean(ops.softplus(furthest - closest))


def loss(outputs, labels):
  """The loss without regularization."""
  logits = outputs['logits']
  one_hot = ops.one_hot(labels, logits.shape[-1])
  cross_entropy = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=SMOOTHING)
  return cross_entropy(one_hot, logits) + TRIPLET_WEIGHT * triplet_loss(outputs['feature'], labels)


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
  """A linear warm-up, then a tenth of the rate after each boundary."""

  def __init__(self, learning_rate, warmup_steps, boundaries):
    self.learning_rate = learning_rate
    self.warmup_steps = warmup_steps
    values = [learning_rate * 0.1**i for i in range(len(boundaries) + 1)]
    self.after = keras.optimizers.schedules.PiecewiseConstantDecay(list(boundaries), values)

  def __call__(self, step):
    warm = self.learning_rate * (ops.cast(step, 'float32') + 1.0) / self.warmup_steps
    return ops.where(step < self.warmup_steps, warm, self.after(step))


class Momentum(keras.optimizers.SGD):
  """Nesterov's momentum of TF1, whose accumulator sums gradients before they are multiplied by the rate."""

  def update_step(self, gradient, variable, learning_rate):
    accumulator = self.momentums[self._get_variable_index(variable)]
    accumulator.assign(self.momentum * accumulator + gradient)
    variable.assign_sub(learning_rate * (gradient + self.momentum * accumulator))


class Trainer:
  """The optimizer, and the averages of the weights."""

  def __init__(self, learning_rate=0.05, warmup_steps=2, boundaries=(3,), averages_decay=0.99):
    schedule = WarmUp(learning_rate, warmup_steps, boundaries)
    self.optimizer = Momentum(schedule, momentum=0.9, nesterov=True)
    self.averages_decay = averages_decay
    self.averages = {}

  def step(self, model, images, labels):
    """Takes one step and returns the loss that it minimized."""
    weights = model.trainable_variables
    if not self.averages:
      self.averages = {w.path: tf.Variable(w.value, trainable=False, name='average') for w in weights}
    with tf.GradientTape() as tape:
      outputs = model(images, training=True)
      total = loss(outputs, labels) + ops.sum(model.losses)
    gradients = []
    for gradient, weight in zip(tape.gradient(total, weights), weights):
      if weight.path.startswith('classifier/'):
        gradient = 10.0 * gradient
      gradients.append(tf.clip_by_norm(gradient, 0.5))
    self.optimizer.apply(gradients, weights)
    done = tf.cast(self.optimizer.iterations, tf.float32)
    decay = tf.minimum(self.averages_decay, (1.0 + done) / (10.0 + done))
    for weight in weights:
      average = self.averages[weight.path]
      average.assign_sub((1.0 - decay) * (average - weight.value))
    return total
