"""The right port of the translation model: native layers of Keras 3."""

import keras
import tensorflow as tf
from keras import layers

SOURCE_VOCAB = 23
TARGET_VOCAB = 19
EMBEDDING = 8
UNITS = 10
ATTENTION = 7
DROPOUT = 0.2
START = 1


def uniform():
  return keras.initializers.RandomUniform(-0.1, 0.1)


@keras.saving.register_keras_serializable('nmt')
class GateBias(keras.initializers.Initializer):
  """TF1's GRUCell starts with open gates: ones for update and reset, zeros for the candidate."""

  def __call__(self, shape, dtype=None):
    units = shape[-1] // 3
    bias = tf.concat([tf.ones([2 * units], dtype), tf.zeros([units], dtype)], 0)
    return tf.broadcast_to(bias, shape)


def dense(units, activation=None, use_bias=True, name=None):
  return layers.Dense(
    units, activation, use_bias=use_bias, kernel_initializer=uniform(), name=name
  )


def length_mask(lengths, ids):
  return tf.sequence_mask(lengths, tf.shape(ids)[1])


class TokenEmbedding(layers.Layer):
  def __init__(self, vocab, **kwargs):
    super().__init__(**kwargs)
    self.table = layers.Embedding(vocab, EMBEDDING, embeddings_initializer=uniform())
    self.dropout = layers.Dropout(DROPOUT)

  def call(self, ids, training=False):
    net = self.table(ids) * EMBEDDING**0.5
    return self.dropout(net, training=training)


class Encoder(layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.embedding = TokenEmbedding(SOURCE_VOCAB, name='embedding')
    gru = layers.GRU(
      UNITS,
      kernel_initializer=uniform(),
      recurrent_initializer=uniform(),
      bias_initializer=GateBias(),
      reset_after=False,
      return_sequences=True,
      return_state=True,
      name='gru',
    )
    self.rnn = layers.Bidirectional(gru, merge_mode='concat', name='rnn')

  def call(self, ids, mask, training=False):
    net = self.embedding(ids, training=training)
    memory, forward, backward = self.rnn(net, mask=mask, training=training)
    return memory, tf.concat([forward, backward], -1)


class Decoder(layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.embedding = TokenEmbedding(TARGET_VOCAB, name='embedding')
    self.cell_bridge = dense(UNITS, name='cell_bridge')
    self.hidden_bridge = dense(UNITS, 'tanh', name='hidden_bridge')
    self.rnn = layers.LSTM(
      UNITS,
      kernel_initializer=uniform(),
      recurrent_initializer=uniform(),
      unit_forget_bias=True,
      return_sequences=True,
      name='lstm',
    )

  def call(self, ids, state, mask, training=False):
    net = self.embedding(ids, training=training)
    h, c = self.hidden_bridge(state), self.cell_bridge(state)
    outputs = self.rnn(net, initial_state=[h, c], mask=mask, training=training)
    # dynamic_rnn gives zeros past the end, Keras repeats the last output
    return tf.where(mask[:, :, None], outputs, 0.0)


class Attention(layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.memory = dense(ATTENTION, use_bias=False, name='memory')
    self.query = dense(ATTENTION, name='query')

  def build(self, *shapes):
    self.v = self.add_weight(shape=(ATTENTION,), initializer=uniform(), name='v')

  def call(self, queries, memory, mask):
    hidden = self.query(queries)[:, :, None] + self.memory(memory)[:, None]
    scores = tf.reduce_sum(self.v * tf.tanh(hidden), axis=-1)
    scores = tf.where(mask[:, None, :], scores, scores - 1e9)
    alignment = tf.nn.softmax(scores, axis=-1)
    return tf.einsum('bts,bsd->btd', alignment, memory), alignment


class Translator(keras.Model):
  def __init__(self):
    super().__init__(name='translator')
    self.encoder = Encoder(name='encoder')
    self.decoder = Decoder(name='decoder')
    self.attention = Attention(name='attention')
    self.attentional = dense(UNITS, 'tanh', use_bias=False, name='attentional')
    self.dropout = layers.Dropout(DROPOUT)
    self.logits = dense(TARGET_VOCAB, name='logits')

  def call(self, inputs, training=False):
    source, target = inputs['source'], inputs['target']
    source_mask = length_mask(inputs['source_lengths'], source)
    target_mask = length_mask(inputs['target_lengths'], target)
    memory, state = self.encoder(source, source_mask, training=training)
    shifted = tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=START)
    outputs = self.decoder(shifted, state, target_mask, training=training)
    context, alignment = self.attention(outputs, memory, source_mask)
    net = self.attentional(tf.concat([context, outputs], -1))
    net = self.dropout(net, training=training)
    return {'logits': self.logits(net), 'alignment': alignment}


def nmt_loss(outputs, labels):
  target = labels['target']
  cross_entropy = keras.losses.sparse_categorical_crossentropy(
    target, outputs['logits'], from_logits=True
  )
  mask = tf.cast(length_mask(labels['target_lengths'], target), tf.float32)
  tokens = tf.reduce_sum(mask)
  summed = tf.reduce_sum(cross_entropy * mask)
  translation = summed / tf.cast(tf.shape(target)[0], tf.float32)
  received = tf.einsum('bts,bt->bs', outputs['alignment'], mask)
  source_mask = tf.cast(length_mask(labels['source_lengths'], received), tf.float32)
  penalty = tf.reduce_sum(source_mask * tf.square(1.0 - received), axis=1)
  correct = keras.metrics.sparse_categorical_accuracy(target, outputs['logits'])
  return {
    'loss': translation + 0.2 * tf.reduce_mean(penalty),
    'perplexity': tf.exp(summed / tokens),
    'accuracy': tf.reduce_sum(correct * mask) / tokens,
  }


class WarmupRsqrt(keras.optimizers.schedules.LearningRateSchedule):
  def __init__(self, peak, warmup):
    self.peak = peak
    self.warmup = warmup

  def __call__(self, step):
    t = tf.cast(step, tf.float32) + 1.0
    return self.peak * tf.minimum(t / self.warmup, tf.sqrt(self.warmup) * tf.math.rsqrt(t))

  def get_config(self):
    return {'peak': self.peak, 'warmup': self.warmup}


def make_optimizer():
  return keras.optimizers.Adam(
    WarmupRsqrt(0.02, 2.0), beta_1=0.9, beta_2=0.98, epsilon=1e-9, global_clipnorm=1.0
  )


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = nmt_loss(outputs, labels)['loss']
  gradients = tape.gradient(loss, model.trainable_variables)
  optimizer.apply_gradients(zip(gradients, model.trainable_variables))
  return loss
