"""A small translation model with additive attention, TF1 code.

After Bahdanau et al. 2015, 'Neural Machine Translation by Jointly Learning to Align and
Translate', with the attention after the decoder as in Luong et al. 2015, 'Effective
Approaches to Attention-based Neural Machine Translation'.
"""

import tensorflow.compat.v1 as tf

SOURCE_VOCAB = 23
TARGET_VOCAB = 19
EMBEDDING = 8
UNITS = 10
ATTENTION = 7
KEEP = 0.8
INIT = 0.1
START, END = 1, 2


def embed(ids, vocab, training, name):
  with tf.variable_scope(name):
    table = tf.get_variable('table', [vocab, EMBEDDING])
    net = tf.nn.embedding_lookup(table, ids) * EMBEDDING**0.5
    if training:
      net = tf.nn.dropout(net, keep_prob=KEEP)
    return net


def encoder(ids, lengths, training):
  with tf.variable_scope('encoder'):
    net = embed(ids, SOURCE_VOCAB, training, 'embedding')
    outputs, states = tf.nn.bidirectional_dynamic_rnn(
      tf.nn.rnn_cell.GRUCell(UNITS),
      tf.nn.rnn_cell.GRUCell(UNITS),
      net,
      sequence_length=lengths,
      dtype=tf.float32,
    )
    return tf.concat(outputs, 2), tf.concat(states, 1)


def bridge(state):
  with tf.variable_scope('bridge'):
    c = tf.layers.dense(state, UNITS, name='cell')
    h = tf.layers.dense(state, UNITS, tf.nn.tanh, name='hidden')
    return tf.nn.rnn_cell.LSTMStateTuple(c, h)


def decoder(ids, lengths, state, training):
  with tf.variable_scope('decoder'):
    net = embed(ids, TARGET_VOCAB, training, 'embedding')
    cell = tf.nn.rnn_cell.LSTMCell(UNITS, forget_bias=1.0)
    outputs, _ = tf.nn.dynamic_rnn(
      cell, net, sequence_length=lengths, initial_state=state, dtype=tf.float32
    )
    return outputs


def attention(queries, memory, lengths):
  """Additive attention of each decoder state over the encoder's states."""
  with tf.variable_scope('attention'):
    keys = tf.layers.dense(memory, ATTENTION, use_bias=False, name='memory')
    query = tf.layers.dense(queries, ATTENTION, name='query')
    v = tf.get_variable('v', [ATTENTION])
    scores = tf.reduce_sum(
      v * tf.tanh(tf.expand_dims(query, 2) + tf.expand_dims(keys, 1)), 3
    )
    mask = tf.sequence_mask(lengths, tf.shape(memory)[1], dtype=tf.float32)
    scores -= 1e9 * (1.0 - tf.expand_dims(mask, 1))
    alignment = tf.nn.softmax(scores)
    return tf.matmul(alignment, memory), alignment


def translate(inputs, training):
  source, source_lengths = inputs['source'], inputs['source_lengths']
  target, target_lengths = inputs['target'], inputs['target_lengths']
  init = tf.random_uniform_initializer(-INIT, INIT)
  with tf.variable_scope('nmt', initializer=init):
    memory, state = encoder(source, source_lengths, training)
    # the decoder sees the target shifted by one
    start = tf.fill([tf.shape(target)[0], 1], START)
    shifted = tf.concat([start, target[:, :-1]], 1)
    outputs = decoder(shifted, target_lengths, bridge(state), training)
    context, alignment = attention(outputs, memory, source_lengths)
    net = tf.concat([context, outputs], 2)
    net = tf.layers.dense(net, UNITS, tf.nn.tanh, use_bias=False, name='attentional')
    if training:
      net = tf.nn.dropout(net, keep_prob=KEEP)
    logits = tf.layers.dense(net, TARGET_VOCAB, name='logits')
    return {'logits': logits, 'alignment': alignment}


def coverage(alignment, source_lengths, target_mask):
  """How far the attention that each source word gets is from one (Xu et al. 2015)."""
  received = tf.reduce_sum(alignment * tf.expand_dims(target_mask, 2), 1)
  mask = tf.sequence_mask(source_lengths, tf.shape(received)[1], dtype=tf.float32)
  return tf.reduce_sum(mask * tf.square(1.0 - received), 1)


def nmt_loss(outputs, labels):
  target, lengths = labels['target'], labels['target_lengths']
  cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
    labels=target, logits=outputs['logits']
  )
  mask = tf.sequence_mask(lengths, tf.shape(target)[1], dtype=tf.float32)
  batch = tf.cast(tf.shape(target)[0], tf.float32)
  translation = tf.reduce_sum(cross_entropy * mask) / batch
  penalty = tf.reduce_mean(coverage(outputs['alignment'], labels['source_lengths'], mask))
  correct = tf.cast(tf.equal(tf.argmax(outputs['logits'], 2, output_type=tf.int32), target), tf.float32)
  return {
    'loss': translation + 0.2 * penalty,
    'perplexity': tf.exp(tf.reduce_sum(cross_entropy * mask) / tf.reduce_sum(mask)),
    'accuracy': tf.reduce_sum(correct * mask) / tf.reduce_sum(mask),
  }


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  t = tf.cast(step, tf.float32)
  # warm up over two steps, then decay by the square root
  rate = 0.02 * tf.minimum((t + 1.0) / 2.0, tf.sqrt(2.0) * tf.rsqrt(t + 1.0))
  optimizer = tf.train.AdamOptimizer(rate, beta1=0.9, beta2=0.98, epsilon=1e-9)
  variables = tf.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
  return optimizer.apply_gradients(zip(gradients, variables), global_step=step)
