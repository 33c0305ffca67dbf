"""A BiLSTM-CRF tagger, TF1 code of 2018 with `tf.nn.rnn_cell`; the CRF is written out.

After Huang, Xu, Yu 2015, 'Bidirectional LSTM-CRF Models for Sequence Tagging': the score of the
path less the logarithm of the sum over all paths, a `tf.scan`; gradients are clipped by value.
"""

import tensorflow.compat.v1 as tf

VOCAB, DIM, HIDDEN, TAGS = 25, 6, 5, 4


def tagger(inputs, training):
  words, lengths = inputs['words'], inputs['lengths']
  with tf.variable_scope('tagger'):
    table = tf.get_variable(
      'embeddings', [VOCAB, DIM], initializer=tf.random_uniform_initializer(-0.25, 0.25)
    )
    x = tf.nn.embedding_lookup(table, words)
    x = tf.layers.dropout(x, 0.5, training=training)
    cell_fw, cell_bw = tf.nn.rnn_cell.LSTMCell(HIDDEN), tf.nn.rnn_cell.LSTMCell(HIDDEN)
    (fw, bw), _ = tf.nn.bidirectional_dynamic_rnn(
      cell_fw, cell_bw, x, sequence_length=lengths, dtype=tf.float32
    )
    x = tf.concat([fw, bw], -1)
    x = tf.layers.dropout(x, 0.2, training=training)
    x = tf.layers.dense(x, 8, tf.nn.tanh, name='hidden')
    scores = tf.layers.dense(x, TAGS, name='proj')
    transitions = tf.get_variable('transitions', [TAGS, TAGS], initializer=tf.zeros_initializer())
  return {'scores': scores, 'transitions': transitions + 0.0}


def sequence_score(scores, tags, lengths, transitions):
  t = tf.shape(scores)[1]
  mask = tf.sequence_mask(lengths, t, dtype=tf.float32)
  unary = tf.reduce_sum(scores * tf.one_hot(tags, TAGS), 2)
  flat = tags[:, :-1] * TAGS + tags[:, 1:]
  binary = tf.gather(tf.reshape(transitions, [-1]), flat)
  return tf.reduce_sum(unary * mask, 1) + tf.reduce_sum(binary * mask[:, 1:], 1)


def log_norm(scores, lengths, transitions):
  trans = tf.expand_dims(transitions, 0)
  steps = tf.transpose(scores[:, 1:], [1, 0, 2])
  mask = tf.transpose(tf.sequence_mask(lengths, tf.shape(scores)[1])[:, 1:], [1, 0])

  def forward(state, step):
    emit, valid = step
    new = tf.reduce_logsumexp(tf.expand_dims(state, 2) + trans, 1) + emit
    return tf.where(tf.tile(valid[:, None], [1, TAGS]), new, state)

  alphas = tf.scan(forward, (steps, mask), initializer=scores[:, 0])
  return tf.reduce_logsumexp(alphas[-1], 1)


def loss(outputs, labels):
  args = labels['lengths'], outputs['transitions']
  log_likelihood = sequence_score(outputs['scores'], labels['tags'], *args) - log_norm(
    outputs['scores'], *args
  )
  return tf.reduce_mean(-log_likelihood)


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.inverse_time_decay(0.05, step, 2, 0.5)
  optimizer = tf.train.AdamOptimizer(rate, beta1=0.8)
  grads = optimizer.compute_gradients(loss)
  capped = [(tf.clip_by_value(g, -0.3, 0.3), v) for g, v in grads]
  return optimizer.apply_gradients(capped, step)
