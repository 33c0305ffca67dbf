"""The right port of the session-based recommender: a native model of Keras 3."""

import keras
import tensorflow as tf
from keras import ops

VOCABULARY = 30  # item 0 is padding
SETTINGS = {
  'embedding': 10,
  'units': 12,
  'attention': 8,
  'input_dropout': 0.25,
  'output_dropout': 0.5,
}
LONGEST_DWELL = 600.0
NEGATIVE_INFINITY = -1e9
WEIGHT_DECAY = 2e-3
CLIP_NORM = 0.2
SMOOTHING = 0.1
SOFTMAX_SHARE = 0.2


def attention_initializer():
  return keras.initializers.TruncatedNormal(stddev=0.3)


def top1_margin(negative, positive):
  return ops.sigmoid(negative - positive) + ops.sigmoid(ops.square(negative))


class GatedCell(keras.layers.Layer):
  """The GRU of tf.nn.rnn_cell: reset before the product, gates in the order reset, update."""

  def __init__(self, units, **kwargs):
    super().__init__(**kwargs)
    self.units = units
    self.state_size = units
    self.output_size = units

  def build(self, input_shape):
    rows = input_shape[-1] + self.units
    self.gates = self.add_weight(
      shape=(rows, 2 * self.units), initializer='glorot_uniform', name='gates'
    )
    self.gates_bias = self.add_weight(
      shape=(2 * self.units,), initializer='ones', name='gates_bias'
    )
    self.proposal = self.add_weight(
      shape=(rows, self.units), initializer='glorot_uniform', name='proposal'
    )
    self.proposal_bias = self.add_weight(
      shape=(self.units,), initializer='zeros', name='proposal_bias'
    )

  def call(self, inputs, states):
    hidden = states[0]
    both = ops.concatenate([inputs, hidden], axis=-1)
    gates = ops.sigmoid(ops.matmul(both, self.gates) + self.gates_bias)
    reset, update = ops.split(gates, 2, axis=-1)
    both = ops.concatenate([inputs, reset * hidden], axis=-1)
    proposal = ops.tanh(ops.matmul(both, self.proposal) + self.proposal_bias)
    hidden = update * hidden + (1.0 - update) * proposal
    return hidden, [hidden]


class AdditiveAttention(keras.layers.Layer):
  def __init__(self, units, **kwargs):
    super().__init__(**kwargs)
    self.key = keras.layers.Dense(
      units, use_bias=False, kernel_initializer=attention_initializer(), name='key'
    )
    self.query = keras.layers.Dense(
      units, kernel_initializer=attention_initializer(), name='query'
    )
    self.units = units

  def build(self, states_shape):
    self.key.build(states_shape)
    self.query.build((states_shape[0], states_shape[2]))
    self.energy = self.add_weight(
      shape=(self.units,), initializer=attention_initializer(), name='energy'
    )

  def call(self, states, last, present):
    hidden = ops.sigmoid(self.key(states) + self.query(last)[:, None, :])
    energy = ops.sum(hidden * self.energy, axis=-1)
    energy = energy + (1.0 - present) * NEGATIVE_INFINITY
    weights = ops.softmax(energy, axis=-1)
    return ops.sum(states * weights[:, :, None], axis=1)


class SessionRecommender(keras.Model):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.catalogue = keras.layers.Embedding(
      VOCABULARY,
      SETTINGS['embedding'],
      embeddings_initializer=keras.initializers.RandomUniform(-0.25, 0.25),
      name='catalogue',
    )
    self.input_dropout = keras.layers.Dropout(SETTINGS['input_dropout'])
    self.encoder = keras.layers.RNN(
      GatedCell(SETTINGS['units'], name='cell'),
      return_sequences=True,
      return_state=True,
      zero_output_for_mask=True,
      name='encoder',
    )
    self.attention = AdditiveAttention(SETTINGS['attention'], name='attention')
    self.output_dropout = keras.layers.Dropout(SETTINGS['output_dropout'])
    self.project = keras.layers.Dense(
      SETTINGS['embedding'],
      use_bias=False,
      kernel_initializer=keras.initializers.VarianceScaling(1.0, 'fan_avg', 'truncated_normal'),
      name='project',
    )

  def build(self, input_shape):
    batch, steps = input_shape['items']
    units = SETTINGS['units']
    self.catalogue.build((batch, steps))
    self.encoder.build((batch, steps, SETTINGS['embedding']))
    self.attention.build((batch, steps, units))
    self.project.build((batch, 2 * units))
    self.popularity = self.add_weight(
      shape=(VOCABULARY,), initializer=keras.initializers.Constant(-0.1), name='popularity'
    )
    self.built = True

  def call(self, inputs, training=False):
    items, dwell = inputs['items'], inputs['dwell']
    mask = ops.not_equal(items, 0)
    present = ops.cast(mask, 'float32')
    x = self.catalogue(items)
    boost = ops.log(1.0 + ops.minimum(dwell, LONGEST_DWELL)) / ops.log(60.0)
    x = x * (boost * present)[:, :, None]
    x = self.input_dropout(x, training=training)
    states, last = self.encoder(x, mask=mask)
    local = self.attention(states, last, present)
    x = ops.concatenate([last, local], axis=-1)
    x = self.output_dropout(x, training=training)
    x = self.project(x)
    logits = ops.matmul(x, ops.transpose(self.catalogue.embeddings)) + self.popularity
    outputs = {'logits': logits}
    if not training:
      outputs.update(recommend(logits, items))
    return outputs


def recommend(logits, items, count=5):
  seen = ops.max(ops.one_hot(items, VOCABULARY), axis=1)
  scores, best = ops.top_k(logits - 1e4 * seen, k=count)
  return {'scores': scores, 'items': best}


def ranking_loss(logits, labels, weights):
  targets, negatives = labels['targets'], labels['negatives']
  positive = ops.take_along_axis(logits, targets[:, None], axis=1)
  negative = ops.take_along_axis(logits, negatives, axis=1)
  valid = ops.cast(ops.not_equal(negatives, targets[:, None]), 'float32')
  top1 = top1_margin(negative, positive) * valid
  top1 = ops.sum(top1, axis=1) / ops.maximum(ops.sum(valid, axis=1), 1.0)
  return ops.sum(top1 * weights) / ops.maximum(ops.sum(weights), 1.0)


def softmax_loss(logits, targets, weights):
  one_hot = ops.one_hot(targets, VOCABULARY)
  each = keras.losses.categorical_crossentropy(
    one_hot, logits, from_logits=True, label_smoothing=SMOOTHING
  )
  used = ops.sum(ops.cast(weights > 0, 'float32'))
  return ops.sum(each * weights) / ops.maximum(used, 1.0)


def session_loss(outputs, labels):
  logits, targets = outputs['logits'], labels['targets']
  weights = labels['weights'] * ops.cast(ops.not_equal(targets, 0), 'float32')
  ranking = ranking_loss(logits, labels, weights)
  softmax = softmax_loss(logits, targets, weights)
  return {
    'loss': ranking + SOFTMAX_SHARE * softmax,
    'ranking': ranking,
    'softmax': softmax,
  }


def weight_penalty(model):
  undecayed = ('bias', 'popularity', 'energy')
  decayed = [
    v for v in model.trainable_variables if not any(word in v.path for word in undecayed)
  ]
  return WEIGHT_DECAY * 0.5 * sum(ops.sum(ops.square(v)) for v in decayed)


def make_optimizer():
  schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.6, staircase=True)
  return keras.optimizers.Adagrad(
    schedule,
    initial_accumulator_value=0.05,
    epsilon=1e-12,
    global_clipnorm=CLIP_NORM,
  )


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = session_loss(outputs, labels)['loss']
    total = loss + weight_penalty(model)
  variables = model.trainable_variables
  gradients = tape.gradient(total, variables)
  optimizer.apply_gradients(zip(gradients, variables))
  return loss
