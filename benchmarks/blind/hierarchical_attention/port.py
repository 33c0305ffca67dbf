"""The right port of the hierarchical attention network: a native model of Keras 3."""

import keras
import tensorflow as tf
from keras import layers, ops

VOCAB, EMBED, HIDDEN, ATT, CLASSES = 30, 6, 5, 7, 4


def normal():
  return keras.initializers.RandomNormal(stddev=0.1)


@keras.saving.register_keras_serializable()
def gru_bias(shape, dtype=None):
  return ops.concatenate([ops.ones((2 * HIDDEN,), dtype), ops.zeros((HIDDEN,), dtype)])


def bi_gru(name):
  def gru(**kwargs):
    return layers.GRU(
      HIDDEN,
      return_sequences=True,
      reset_after=False,
      kernel_initializer=normal(),
      recurrent_initializer=normal(),
      bias_initializer=gru_bias,
      **kwargs,
    )

  return layers.Bidirectional(gru(), backward_layer=gru(go_backwards=True), name=name)


class AttentionPool(layers.Layer):
  """Weighted mean over time by a learned query."""

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.key = layers.Dense(ATT, 'tanh', kernel_initializer=normal(), name='key')

  def build(self, shape):
    self.key.build(shape)
    self.query = self.add_weight(shape=(ATT,), initializer=normal(), name='query')

  def call(self, states, valid):
    scores = ops.einsum('bta,a->bt', self.key(states), self.query)
    scores = ops.where(valid, scores, -1e9)
    weights = ops.softmax(scores, axis=-1)
    return ops.einsum('bt,bth->bh', weights, states), weights


class HAN(keras.Model):
  def __init__(self):
    super().__init__(name='doc_model')
    self.embed = layers.Embedding(VOCAB, EMBED, embeddings_initializer=normal(), name='tokens')
    self.word_rnn, self.sent_rnn = bi_gru('word_rnn'), bi_gru('sent_rnn')
    self.word_pool, self.sent_pool = (
      AttentionPool(name='word_pool'),
      AttentionPool(name='sent_pool'),
    )
    self.drop_sent, self.drop_doc = layers.Dropout(0.3), layers.Dropout(0.5)
    self.classify = layers.Dense(CLASSES, kernel_initializer=normal(), name='classify')

  def call(self, inputs, training=False):
    words, n_words, n_sents = inputs['words'], inputs['word_lengths'], inputs['doc_lengths']
    batch, sents, width = ops.shape(words)
    word_ok = ops.arange(width)[None] < ops.reshape(n_words, (-1, 1))
    sent_ok = ops.arange(sents)[None] < n_sents[:, None]
    x = self.embed(ops.reshape(words, (-1, width)))
    x = self.word_rnn(x, mask=word_ok)
    x, _ = self.word_pool(x, word_ok)
    x = self.drop_sent(ops.reshape(x, (-1, sents, 2 * HIDDEN)), training=training)
    x = self.sent_rnn(x, mask=sent_ok)
    x, weights = self.sent_pool(x, sent_ok)
    x = self.drop_doc(x, training=training)
    return {'logits': self.classify(x), 'alpha': weights}


def data_loss(outputs, labels):
  targets = ops.one_hot(labels, CLASSES)
  return keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)(
    targets, outputs['logits']
  )


def weight_decay(model):
  return 1e-3 * sum(
    0.5 * ops.sum(ops.square(w)) for w in model.trainable_variables if w.name != 'bias'
  )


def make_optimizer():
  rate = keras.optimizers.schedules.ExponentialDecay(0.01, 2, 0.7, staircase=True)
  return keras.optimizers.Adam(rate, beta_2=0.99, epsilon=1e-8, global_clipnorm=0.5)


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    loss = data_loss(model(inputs, training=True), labels) + weight_decay(model)
  weights = model.trainable_variables
  gradients = tape.gradient(loss, weights)
  optimizer.apply_gradients(zip(gradients, weights))
  return loss
