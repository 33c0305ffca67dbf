"""The right port of the Q-network: a native model of Keras 3, with a training step by hand."""

import keras
import tensorflow as tf
from keras import ops

ACTIONS = 5
WIDTHS = {'conv1': 6, 'conv2': 8, 'hidden': 12}
INITIAL_SIGMA = 0.4
DISCOUNT = 0.9
SOFT = 0.05
MAX_NORM = 0.2
NEVER = -1e9


class NoisyDense(keras.layers.Layer):
  """Dense, with factorised noise in training: one draw for all examples."""

  def __init__(self, units, seeds, activation=None, **kwargs):
    super().__init__(**kwargs)
    self.units = units
    self.seeds = seeds
    self.activation = keras.activations.get(activation)

  def build(self, input_shape):
    self.rows = input_shape[-1]
    bound = self.rows**-0.5
    uniform = keras.initializers.RandomUniform
    sigma = keras.initializers.Constant(INITIAL_SIGMA * bound)
    shape = (self.rows, self.units)
    self.kernel = self.add_weight(shape=shape, initializer=uniform(-bound, bound), name='kernel')
    self.bias = self.add_weight(
      shape=(self.units,), initializer=uniform(-bound, bound), name='bias'
    )
    self.kernel_sigma = self.add_weight(shape=shape, initializer=sigma, name='kernel_sigma')
    self.bias_sigma = self.add_weight(shape=(self.units,), initializer=sigma, name='bias_sigma')

  def draw(self, size):
    noise = keras.random.normal((size,), seed=self.seeds)
    return ops.sign(noise) * ops.sqrt(ops.abs(noise))

  def call(self, inputs, training=False):
    kernel, bias = self.kernel, self.bias
    if training:
      before = self.draw(self.rows)
      behind = self.draw(self.units)
      kernel = kernel + self.kernel_sigma * ops.outer(before, behind)
      bias = bias + self.bias_sigma * behind
    return self.activation(ops.matmul(inputs, kernel) + bias)


def share_gradient(x, factor):
  return factor * x + ops.stop_gradient((1.0 - factor) * x)


class DuellingNetwork(keras.layers.Layer):
  def __init__(self, seeds, **kwargs):
    super().__init__(**kwargs)

    def he_uniform():
      return keras.initializers.VarianceScaling(2.0, 'fan_in', 'uniform')

    self.conv1 = keras.layers.Conv2D(
      WIDTHS['conv1'],
      4,
      strides=2,
      padding='same',
      activation='relu',
      kernel_initializer=he_uniform(),
      name='conv1',
    )
    self.conv2 = keras.layers.Conv2D(
      WIDTHS['conv2'], 3, activation='relu', kernel_initializer=he_uniform(), name='conv2'
    )
    self.flatten = keras.layers.Flatten()
    hidden = WIDTHS['hidden']
    self.value_hidden = NoisyDense(hidden, seeds, activation='relu', name='value_hidden')
    self.value = NoisyDense(1, seeds, name='value')
    self.advantage_hidden = NoisyDense(hidden, seeds, activation='relu', name='advantage_hidden')
    self.advantage = NoisyDense(ACTIONS, seeds, name='advantage')

  def build(self, input_shape):
    shape = input_shape
    for layer in (self.conv1, self.conv2, self.flatten):
      layer.build(shape)
      shape = layer.compute_output_shape(shape)
    for stream in ('value', 'advantage'):
      getattr(self, f'{stream}_hidden').build(shape)
      getattr(self, stream).build((shape[0], WIDTHS['hidden']))

  def call(self, frames, training=False):
    x = ops.cast(frames, 'float32') / 255.0
    x = self.flatten(self.conv2(self.conv1(x)))
    x = share_gradient(x, 2.0**-0.5)
    value = self.value(self.value_hidden(x, training=training), training=training)
    advantage = self.advantage_hidden(x, training=training)
    advantage = self.advantage(advantage, training=training)
    return value + advantage - ops.mean(advantage, axis=-1, keepdims=True)


class DoubleDQN(keras.Model):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.seeds = keras.random.SeedGenerator(1)
    self.online = DuellingNetwork(self.seeds, name='online')
    self.target = DuellingNetwork(self.seeds, name='target')
    self.target.trainable = False

  def build(self, input_shape):
    self.online.build(input_shape['state'])
    self.target.build(input_shape['next_state'])
    self.built = True

  def call(self, inputs, training=False):
    outputs = {
      'q': self.online(inputs['state'], training=training),
      'next_q': self.online(inputs['next_state'], training=training),
      'next_target': self.target(inputs['next_state'], training=training),
    }
    if not training:
      outputs['action'] = ops.cast(ops.argmax(outputs['q'], axis=-1), 'int64')
    return outputs


def returns_of(rewards, goes_on):
  """Discounted, until the episode ends."""
  total, weight = 0.0, 1.0
  for i in range(rewards.shape[1]):
    total = total + weight * ops.clip(rewards[:, i], -1.0, 1.0)
    weight = weight * DISCOUNT * goes_on[:, i]
  return total


def best_next(outputs, legal):
  scores = ops.where(legal, outputs['next_q'], NEVER)
  best = ops.argmax(scores, axis=-1)
  return ops.take_along_axis(outputs['next_target'], best[:, None], axis=-1)[:, 0]


def huber(x, delta=1.0):
  inner = ops.minimum(ops.abs(x), delta)
  return 0.5 * inner**2 + delta * (ops.abs(x) - inner)


def dqn_loss(outputs, labels):
  goes_on = 1.0 - ops.cast(labels['dones'], 'float32')
  horizon = goes_on.shape[1]
  bootstrap = best_next(outputs, labels['next_legal']) * ops.prod(goes_on, axis=1)
  target = returns_of(labels['rewards'], goes_on) + DISCOUNT**horizon * bootstrap
  actions = labels['action'][:, None]
  chosen = ops.take_along_axis(outputs['q'], actions, axis=-1)[:, 0]
  error = chosen - ops.stop_gradient(target)
  return ops.mean(labels['weights'] * huber(error))


class RMSprop(keras.optimizers.RMSprop):
  """TF1's mean of squares starts at one."""

  def build(self, variables):
    built = self.built
    super().build(variables)
    if not built:
      for velocity in self._velocities:
        velocity.assign(ops.ones_like(velocity))


def make_optimizer():
  rate = keras.optimizers.schedules.PolynomialDecay(0.01, 6, 0.001)
  return RMSprop(
    rate,
    rho=0.95,
    momentum=0.6,
    epsilon=0.01,
    centered=True,
  )


def follow(model):
  """The soft update."""
  for slow, fast in zip(model.target.weights, model.online.weights, strict=True):
    slow.assign(slow + SOFT * (fast - slow))


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = dqn_loss(outputs, labels)
  variables = model.online.trainable_variables
  gradients = tape.gradient(loss, variables)
  gradients = [tf.clip_by_norm(g, MAX_NORM) for g in gradients]
  optimizer.apply_gradients(zip(gradients, variables))
  follow(model)
  return loss
