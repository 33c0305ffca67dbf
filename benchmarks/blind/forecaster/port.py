"""The right port of the forecaster: a native model of Keras 3."""

import keras
import tensorflow as tf
from keras import ops

SETTINGS = {
  'encoder_units': 7,
  'decoder_units': 9,
  'micro_steps': 2,
  'stores': (5, 3),
  'products': (24, 4),
  'input_dropout': 0.1,
  'state_dropout': 0.25,
  'carry_bias': -2.0,
  'encoder_range': 0.3,
}
WEEK = 7
SMALLEST_ALPHA = 1e-4
MASKED_ENERGY = -1e9
L2 = 1e-3
CLIP_NORM = 0.5
CLEARANCE_WEIGHT = 0.5


class PeepholeLSTMCell(keras.layers.Layer):
  """tf.nn.rnn_cell.LSTMCell(use_peepholes=True): gates in the order i, j, f, o."""

  def __init__(self, units, forget_bias=1.0, **kwargs):
    super().__init__(**kwargs)
    self.units = units
    self.forget_bias = forget_bias
    self.state_size = [units, units]
    self.output_size = units

  def build(self, input_shape):
    def uniform():
      return keras.initializers.RandomUniform(
        -SETTINGS['encoder_range'], SETTINGS['encoder_range']
      )

    self.kernel = self.add_weight(
      shape=(input_shape[-1] + self.units, 4 * self.units), initializer=uniform(), name='kernel'
    )
    self.bias = self.add_weight(shape=(4 * self.units,), initializer='zeros', name='bias')
    self.peep_forget, self.peep_input, self.peep_output = (
      self.add_weight(shape=(self.units,), initializer=uniform(), name=f'peep_{gate}')
      for gate in ('forget', 'input', 'output')
    )

  def call(self, inputs, states):
    hidden, carry = states
    both = ops.concatenate([inputs, hidden], axis=-1)
    i, j, f, o = ops.split(ops.matmul(both, self.kernel) + self.bias, 4, axis=-1)
    f = ops.sigmoid(f + self.forget_bias + self.peep_forget * carry)
    i = ops.sigmoid(i + self.peep_input * carry)
    carry = f * carry + i * ops.tanh(j)
    o = ops.sigmoid(o + self.peep_output * carry)
    hidden = o * ops.tanh(carry)
    return hidden, [hidden, carry]


class Encoder(keras.layers.Layer):
  def __init__(self, units, bridge_units, **kwargs):
    super().__init__(**kwargs)
    self.units = units
    self.ahead = self.direction('ahead')
    self.back = self.direction('back', go_backwards=True)
    self.norm = keras.layers.LayerNormalization(epsilon=1e-6, name='norm')
    self.bridge = keras.layers.Dense(bridge_units, activation='tanh', name='bridge')

  def direction(self, name, **kwargs):
    return keras.layers.RNN(
      PeepholeLSTMCell(self.units, name='cell'),
      return_sequences=True,
      return_state=True,
      zero_output_for_mask=True,
      name=name,
      **kwargs,
    )

  def build(self, input_shape, static_shape):
    self.ahead.build(input_shape)
    self.back.build(input_shape)
    self.norm.build((*input_shape[:2], 2 * self.units))
    self.bridge.build((input_shape[0], 2 * self.units + static_shape[-1]))

  def call(self, inputs, static, mask=None):
    forward, forward_h, _ = self.ahead(inputs, mask=mask)
    backward, backward_h, _ = self.back(inputs, mask=mask)
    states = ops.concatenate([forward, ops.flip(backward, axis=1)], axis=-1)
    initial = self.bridge(ops.concatenate([forward_h, backward_h, static], axis=-1))
    return self.norm(states), initial


class RecurrentHighway(keras.layers.Layer):
  """The input enters in the first of the small steps."""

  def __init__(self, units, micro_steps, **kwargs):
    super().__init__(**kwargs)
    self.units = units
    self.micro_steps = micro_steps

  def build(self, input_shape):
    self.weights_of = []
    for i in range(self.micro_steps):
      rows = self.units + (input_shape[-1] if i == 0 else 0)
      self.weights_of.append(
        [
          self.add_weight(shape=(rows, self.units), initializer=lecun(), name=f'signal_{i}'),
          self.add_weight(shape=(self.units,), initializer='zeros', name=f'signal_bias_{i}'),
          self.add_weight(shape=(rows, self.units), initializer=lecun(), name=f'transform_{i}'),
          self.add_weight(
            shape=(self.units,),
            initializer=keras.initializers.Constant(SETTINGS['carry_bias']),
            name=f'transform_bias_{i}',
          ),
        ]
      )

  def call(self, inputs, state, noise):
    for i, (signal, signal_bias, transform, transform_bias) in enumerate(self.weights_of):
      x = state * noise
      if i == 0:
        x = ops.concatenate([inputs, x], axis=-1)
      candidate = ops.tanh(ops.matmul(x, signal) + signal_bias)
      gate = ops.sigmoid(ops.matmul(x, transform) + transform_bias)
      state = gate * candidate + (1.0 - gate) * state
    return state


def lecun():
  return keras.initializers.VarianceScaling(1.0, 'fan_in', 'uniform')


class Decoder(keras.layers.Layer):
  def __init__(self, units, **kwargs):
    super().__init__(**kwargs)
    self.units = units
    self.cell = RecurrentHighway(units, SETTINGS['micro_steps'], name='cell')
    self.state_dropout = keras.layers.Dropout(SETTINGS['state_dropout'])
    self.head = keras.layers.Dense(
      2,
      activation='softplus',
      kernel_initializer=lecun(),
      bias_initializer=keras.initializers.Constant(0.2),
      name='head',
    )

  def build(self, states_shape, future_shape, static_shape):
    batch, _, width = states_shape
    self.score = self.add_weight(shape=(self.units, width), initializer=lecun(), name='score')
    self.cell.build((batch, future_shape[-1] + static_shape[-1] + width + 1))
    self.head.build((batch, self.units + width))

  def attend(self, states, query, mask):
    energy = ops.einsum('btw,bw->bt', states, ops.matmul(query, self.score))
    energy = ops.where(mask, energy, MASKED_ENERGY)
    return ops.einsum('btw,bt->bw', states, ops.softmax(energy, axis=-1))

  def call(self, states, future, static, state, lag, scale, mask, training=False):
    noise = self.state_dropout(ops.ones_like(state), training=training)
    means, dispersions = [], []
    for day in range(future.shape[1]):
      context = self.attend(states, state, mask)
      x = ops.concatenate([future[:, day], static, context, lag], axis=-1)
      state = self.cell(x, state, noise)
      out = self.head(ops.concatenate([state, context], axis=-1))
      mean, dispersion = out[:, :1], out[:, 1:]
      lag = ops.stop_gradient(ops.log1p(mean))
      means.append(mean * scale)
      dispersions.append(dispersion / ops.sqrt(scale) + SMALLEST_ALPHA)
    return ops.concatenate(means, axis=-1), ops.concatenate(dispersions, axis=-1)


def calendar(days, price, age):
  age = ops.log10(2.0 + ops.cast(age, 'float32'))
  return ops.concatenate([ops.one_hot(days, WEEK), price[:, :, None], age[:, :, None]], axis=-1)


def mean_of_history(counts, present):
  total = ops.sum(counts * present, axis=1, keepdims=True)
  return total / ops.maximum(ops.sum(present, axis=1, keepdims=True), 1.0)


def embedding(sizes, name):
  initializer = keras.initializers.RandomNormal(stddev=0.4)
  return keras.layers.Embedding(*sizes, embeddings_initializer=initializer, name=name)


class SalesForecaster(keras.Model):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    units = SETTINGS['encoder_units']
    self.store = embedding(SETTINGS['stores'], 'store')
    self.product = embedding(SETTINGS['products'], 'product')
    self.profile = keras.layers.Dense(units, activation='elu', name='profile')
    self.input_dropout = keras.layers.Dropout(SETTINGS['input_dropout'])
    self.encoder = Encoder(units, SETTINGS['decoder_units'], name='encoder')
    self.decoder = Decoder(SETTINGS['decoder_units'], name='decoder')

  def build(self, input_shape):
    batch, steps = input_shape['counts']
    units = SETTINGS['encoder_units']
    self.store.build((batch,))
    self.product.build((batch,))
    both = SETTINGS['stores'][1] + SETTINGS['products'][1]
    self.profile.build((batch, both + input_shape['attributes'][-1]))
    self.encoder.build((batch, steps, 1 + WEEK + 2 + units), (batch, units))
    self.decoder.build((batch, steps, 2 * units), (batch, None, WEEK + 2), (batch, units))
    self.built = True

  def call(self, inputs, training=False):
    counts, lengths = inputs['counts'], inputs['lengths'][:, None]
    batch, steps = counts.shape
    horizon = inputs['future_days'].shape[1]
    positions = ops.broadcast_to(ops.arange(steps, dtype='int32'), (batch, steps))
    mask = positions < lengths
    static = self.profile(
      ops.concatenate(
        [self.store(inputs['store']), self.product(inputs['item']), inputs['attributes']], axis=-1
      )
    )
    scale = 1.0 + mean_of_history(counts, ops.cast(mask, 'float32'))
    scaled = ops.log1p(counts / scale)
    past = calendar(inputs['days'], inputs['price'], positions)
    repeated = ops.repeat(static[:, None, :], steps, axis=1)
    x = ops.concatenate([scaled[:, :, None], past, repeated], axis=-1)
    x = self.input_dropout(x, training=training)
    states, initial = self.encoder(x, static, mask=mask)
    newest = ops.take_along_axis(scaled, lengths - 1, axis=1)
    ages = lengths + ops.arange(horizon, dtype='int32')
    future = calendar(inputs['future_days'], inputs['future_price'], ages)
    mu, alpha = self.decoder(
      states, future, static, initial, newest, scale, mask, training=training
    )
    outputs = {'mu': mu, 'alpha': alpha}
    if not training:
      outputs['stddev'] = ops.sqrt(mu + alpha * ops.square(mu))
    return outputs


def negative_binomial(counts, mu, alpha):
  """The logarithm of the probability."""
  inverse = 1.0 / alpha
  chosen = tf.math.lgamma(counts + inverse) - tf.math.lgamma(counts + 1.0) - tf.math.lgamma(inverse)
  none = inverse * ops.log(1.0 / (1.0 + alpha * mu))
  return chosen + none + counts * ops.log(alpha * mu / (1.0 + alpha * mu))


def forecaster_loss(outputs, labels):
  each = -negative_binomial(labels['counts'], outputs['mu'], outputs['alpha'])
  weights = ops.where(labels['clearance'], CLEARANCE_WEIGHT, 1.0)
  weights = weights * ops.cast(labels['in_stock'], 'float32')
  return ops.sum(each * weights) / ops.maximum(ops.sum(weights), 1.0)


class Noam(keras.optimizers.schedules.LearningRateSchedule):
  def __init__(self, units, warmup=3, factor=0.2):
    self.units = units
    self.warmup = warmup
    self.factor = factor

  def __call__(self, step):
    step = ops.cast(step, 'float32') + 1.0
    rate = ops.minimum(step**-0.5, step * self.warmup**-1.5)
    return self.factor * self.units**-0.5 * rate

  def get_config(self):
    return {'units': self.units, 'warmup': self.warmup, 'factor': self.factor}


def make_optimizer():
  return keras.optimizers.Adam(
    Noam(SETTINGS['decoder_units']), beta_2=0.98, epsilon=1e-9, global_clipnorm=CLIP_NORM
  )


def l2_penalty(model):
  kernels = [
    v for v in model.trainable_variables if len(v.shape) == 2 and 'embeddings' not in v.path
  ]
  return L2 * sum(ops.sum(ops.square(v)) / 2.0 for v in kernels)


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = forecaster_loss(outputs, labels)
    total = loss + l2_penalty(model)
  variables = model.trainable_variables
  optimizer.apply_gradients(zip(tape.gradient(total, variables), variables))
  return loss
