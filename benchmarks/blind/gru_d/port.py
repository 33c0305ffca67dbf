"""GRU-D in Keras 3."""

import keras
import tensorflow as tf
from keras import ops

FEATURE_MEANS = [0.4, -0.3, 1.2, 0.1]
POSITIVE_WEIGHT = 3.0


class GRUDCell(keras.layers.Layer):
  """The cell; its gates are in the order update, reset, candidate, as in `keras.layers.GRU`."""

  def __init__(self, units, **kwargs):
    super().__init__(**kwargs)
    self.units = units

  def build(self, num_features):
    uniform = keras.initializers.RandomUniform(-0.1, 0.1)
    units = self.units
    self.input_decay = self.add_weight(shape=(num_features,), initializer=uniform, name='input_decay')
    self.input_decay_bias = self.add_weight(shape=(num_features,), initializer='zeros', name='input_decay_bias')
    self.state_decay = self.add_weight(shape=(num_features, units), initializer=uniform, name='state_decay')
    self.state_decay_bias = self.add_weight(shape=(units,), initializer='zeros', name='state_decay_bias')
    self.kernel = self.add_weight(shape=(num_features, 3 * units), initializer=uniform, name='kernel')
    self.mask_kernel = self.add_weight(shape=(num_features, 3 * units), initializer=uniform, name='mask_kernel')
    self.recurrent_kernel = self.add_weight(shape=(units, 3 * units), initializer=uniform, name='recurrent_kernel')
    self.bias = self.add_weight(shape=(3 * units,), initializer=self._initial_bias, name='bias')
    self.built = True

  def _initial_bias(self, shape, dtype=None):
    return ops.concatenate([ops.ones([2 * self.units], dtype), ops.zeros([self.units], dtype)])

  def call(self, x, x_last, observed, elapsed, h, keep):
    units = self.units
    means = ops.convert_to_tensor(FEATURE_MEANS, 'float32')
    gamma_x = ops.exp(-ops.relu(elapsed * self.input_decay + self.input_decay_bias))
    gamma_h = ops.exp(-ops.relu(ops.matmul(elapsed, self.state_decay) + self.state_decay_bias))
    imputed = gamma_x * x_last + (1.0 - gamma_x) * means
    x_hat = observed * x + (1.0 - observed) * imputed
    h = gamma_h * h

    from_inputs = ops.matmul(x_hat, self.kernel) + ops.matmul(observed, self.mask_kernel) + self.bias
    dropped = h * keep
    from_state = ops.matmul(dropped, self.recurrent_kernel[:, : 2 * units])
    z, r = ops.split(ops.sigmoid(from_inputs[:, : 2 * units] + from_state), 2, axis=1)
    recurrent = ops.matmul(r * dropped, self.recurrent_kernel[:, 2 * units :])
    candidate = ops.tanh(from_inputs[:, 2 * units :] + recurrent)
    return (1.0 - z) * h + z * candidate


class Attention(keras.layers.Layer):
  """Pools states by a trained query; steps behind the end of a sequence have no weight."""

  def __init__(self, units, **kwargs):
    super().__init__(**kwargs)
    self.units = units

  def build(self, shape):
    uniform = keras.initializers.RandomUniform(-0.1, 0.1)
    self.kernel = self.add_weight(
      shape=(shape[-1], self.units), initializer=uniform, regularizer=keras.regularizers.L2(5e-3), name='kernel'
    )
    self.bias = self.add_weight(shape=(self.units,), initializer='zeros', name='bias')
    self.query = self.add_weight(shape=(self.units,), initializer=uniform, name='query')

  def call(self, states, lengths):
    keys = ops.tanh(ops.matmul(states, self.kernel) + self.bias)
    scores = ops.sum(keys * self.query, axis=-1)
    valid = ops.cast(ops.arange(states.shape[1])[None, :] < lengths[:, None], 'float32')
    attention = ops.softmax(scores - 1e9 * (1.0 - valid), axis=-1)
    return ops.sum(attention[:, :, None] * states, axis=1), attention


class GRUD(keras.Model):
  """Returns logits, attention and the last state."""

  def __init__(self, num_tasks, units=6, bptt_steps=3, **kwargs):
    super().__init__(**kwargs)
    self.units = units
    self.bptt_steps = bptt_steps
    self.cell = GRUDCell(units, name='cell')
    self.state_dropout = keras.layers.Dropout(0.3, name='state_dropout')
    self.attention = Attention(5, name='attention')
    self.output_dropout = keras.layers.Dropout(0.5, name='output_dropout')
    self.head = keras.layers.Dense(
      num_tasks,
      kernel_initializer=keras.initializers.RandomUniform(-0.1, 0.1),
      kernel_regularizer=keras.regularizers.L2(0.005),
      name='head',
    )

  def build(self, input_shape):
    self.cell.build(input_shape['features'][-1])
    self.attention.build((None, None, self.units))
    self.head.build((None, 2 * self.units))
    self.built = True

  def call(self, inputs, training=False):
    features, observed, elapsed = inputs['features'], inputs['observed'], inputs['elapsed']
    lengths = inputs['lengths']
    batch = ops.shape(features)[0]
    h = ops.zeros((batch, self.units))
    x_last = ops.zeros_like(features[:, 0]) + ops.convert_to_tensor(FEATURE_MEANS, 'float32')
    keep = self.state_dropout(ops.ones((batch, self.units)), training=training)

    states = []
    for t in range(features.shape[1]):
      if t > 0 and t % self.bptt_steps == 0:
        h = ops.stop_gradient(h)
      new_h = self.cell(features[:, t], x_last, observed[:, t], elapsed[:, t], h, keep)
      x_last = ops.where(observed[:, t] > 0, features[:, t], x_last)
      h = ops.where((t < lengths)[:, None], new_h, h)
      states.append(h)
    context, attention = self.attention(ops.stack(states, axis=1), lengths)
    net = ops.concatenate([context, h], axis=1)
    logits = self.head(self.output_dropout(net, training=training))
    return {'logits': logits, 'attention': attention, 'state': h}


def loss(logits, labels):
  """Weighted cross-entropy, averaged over the known labels; a label of -1 is unknown."""
  known = ops.cast(labels >= 0.0, 'float32')
  targets = ops.maximum(labels, 0.0)
  weight = 1.0 + (POSITIVE_WEIGHT - 1.0) * targets
  each = (1.0 - targets) * logits + weight * (ops.log1p(ops.exp(-ops.abs(logits))) + ops.relu(-logits))
  return ops.sum(known * each) / ops.maximum(ops.sum(known), 1.0)


def optimizer(learning_rate=0.01, decay_steps=2, decay_rate=0.5, clip_norm=0.2):
  """Adam, a staircase schedule, and gradients clipped by their global norm."""
  rate = keras.optimizers.schedules.ExponentialDecay(learning_rate, decay_steps, decay_rate, staircase=True)
  return keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.99, epsilon=1e-8, global_clipnorm=clip_norm)


def train_step(model, inputs, labels, adam):
  """Takes one step and returns the loss that it minimized."""
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    total = loss(outputs['logits'], labels) + sum(model.losses)
  weights = model.trainable_variables
  gradients = tape.gradient(total, weights)
  adam.apply(gradients, weights)
  return total
