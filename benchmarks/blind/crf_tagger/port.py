"""The right port of the BiLSTM-CRF tagger: a native model of Keras 3."""

import keras
import tensorflow as tf
from keras import layers, ops

VOCAB, DIM, HIDDEN, TAGS = 25, 6, 5, 4
LIMIT = (6 / (DIM + HIDDEN + 4 * HIDDEN)) ** 0.5


def uniform(limit):
  return keras.initializers.RandomUniform(-limit, limit)


def lstm(**kwargs):
  return layers.LSTM(
    HIDDEN,
    return_sequences=True,
    kernel_initializer=uniform(LIMIT),
    recurrent_initializer=uniform(LIMIT),
    **kwargs,
  )


class Tagger(keras.Model):
  def __init__(self):
    super().__init__()
    self.words = layers.Embedding(VOCAB, DIM, uniform(0.25), name='words')
    self.rnn = layers.Bidirectional(
      lstm(zero_output_for_mask=True),
      backward_layer=lstm(zero_output_for_mask=True, go_backwards=True),
      name='rnn',
    )
    self.drop_in, self.drop_out = layers.Dropout(0.5), layers.Dropout(0.2)
    self.hidden = layers.Dense(8, 'tanh', name='hidden')
    self.emission = layers.Dense(TAGS, name='emission')
    self.pairwise = self.add_weight(shape=(TAGS, TAGS), initializer='zeros', name='pairwise')

  def call(self, inputs, training=False):
    words, lengths = inputs['words'], inputs['lengths']
    mask = ops.arange(ops.shape(words)[1])[None] < lengths[:, None]
    x = self.drop_in(self.words(words), training=training)
    x = self.rnn(x, mask=mask, training=training)
    x = self.drop_out(x, training=training)
    return {'scores': self.emission(self.hidden(x)), 'transitions': ops.copy(self.pairwise)}


def gold_score(scores, tags, mask, transitions):
  path = ops.one_hot(tags, TAGS)
  emitted = ops.einsum('btk,btk,bt->b', scores, path, mask)
  moved = ops.einsum('bti,ij,btj,bt->b', path[:, :-1], transitions, path[:, 1:], mask[:, 1:])
  return emitted + moved


def log_partition(scores, mask, transitions):
  alpha = scores[:, 0]
  for t in range(1, scores.shape[1]):
    candidate = ops.logsumexp(alpha[:, :, None] + transitions[None], axis=1) + scores[:, t]
    alpha = ops.where(mask[:, t, None] > 0, candidate, alpha)
  return ops.logsumexp(alpha, axis=-1)


def crf_loss(outputs, labels):
  scores, transitions = outputs['scores'], outputs['transitions']
  mask = ops.cast(ops.arange(scores.shape[1])[None] < labels['lengths'][:, None], 'float32')
  gold = gold_score(scores, labels['tags'], mask, transitions)
  return ops.mean(log_partition(scores, mask, transitions) - gold)


def make_optimizer():
  rate = keras.optimizers.schedules.InverseTimeDecay(0.05, 2, 0.5)
  return keras.optimizers.Adam(rate, beta_1=0.8, epsilon=1e-8)


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    loss = crf_loss(model(inputs, training=True), labels)
  weights = model.trainable_variables
  gradients = [
    tf.convert_to_tensor(tf.clip_by_value(g, -0.3, 0.3)) for g in tape.gradient(loss, weights)
  ]
  optimizer.apply_gradients(zip(gradients, weights))
  return loss
