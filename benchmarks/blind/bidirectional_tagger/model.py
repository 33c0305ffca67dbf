"""A tagger that reads the whole sentence: bidirectional LSTM, additive attention, maxout.

After Bahdanau, Cho, Bengio, "Neural Machine Translation by Jointly Learning to Align and Translate"
(2014): annotations of both directions, the alignment model of its appendix A.1.2, a maxout layer,
its initial values, Adadelta and gradients of norm 1 at most. The decoder is replaced by one query
per word, so that the model gives one tag per word, and an intent per sentence.
"""

import tensorflow.compat.v1 as tf

VOCABULARY = 13
EMBEDDING = 5
UNITS = 4
ATTENTION = 6
HIDDEN = 5
TAGS = 4
INTENTS = 3


def _l2_regularizer(scale):
  return lambda weights: scale * tf.nn.l2_loss(weights)


def _cell():
  return tf.nn.rnn_cell.LSTMCell(
    UNITS,
    use_peepholes=True,
    forget_bias=1.0,
    initializer=tf.random_normal_initializer(stddev=0.01),
    name='lstm_cell',
  )


def _attention(memory, lengths):
  """Returns contexts and alignments of all words with all words."""
  init = tf.random_normal_initializer(stddev=0.001)
  with tf.variable_scope('attention'):
    queries = tf.layers.dense(
      memory, ATTENTION, use_bias=False, kernel_initializer=init, name='query'
    )
    keys = tf.layers.dense(memory, ATTENTION, use_bias=False, kernel_initializer=init, name='key')
    v = tf.get_variable('v', [ATTENTION], initializer=tf.zeros_initializer())
    energies = tf.reduce_sum(
      v * tf.tanh(tf.expand_dims(queries, 2) + tf.expand_dims(keys, 1)), axis=3
    )
    mask = tf.sequence_mask(lengths, tf.shape(memory)[1], dtype=tf.float32)
    energies += (1.0 - tf.expand_dims(mask, 1)) * -1e9
    alignments = tf.nn.softmax(energies)
    return tf.matmul(alignments, memory), alignments


def tagger(ids, lengths, training):
  """Returns logits of tags and intents, and the alignments."""
  with tf.variable_scope('tagger'):
    embeddings = tf.get_variable(
      'embeddings', [VOCABULARY, EMBEDDING], initializer=tf.random_normal_initializer(stddev=0.01)
    )
    words = tf.nn.embedding_lookup(embeddings, ids)
    words = tf.layers.dropout(  # one mask for all words of a sentence
      words, rate=0.2, noise_shape=[tf.shape(ids)[0], 1, EMBEDDING], training=training
    )
    (forward, backward), (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(
      _cell(), _cell(), words, sequence_length=lengths, dtype=tf.float32
    )
    memory = tf.concat([forward, backward], axis=2)
    context, alignments = _attention(memory, lengths)
    net = tf.layers.dense(
      tf.concat([memory, context], axis=2),
      2 * HIDDEN,
      kernel_initializer=tf.random_normal_initializer(stddev=0.01),
      kernel_regularizer=_l2_regularizer(0.003),
      name='maxout',
    )
    shape = tf.shape(net)
    net = tf.reduce_max(tf.reshape(net, [shape[0], shape[1], HIDDEN, 2]), axis=3)
    net = tf.layers.dropout(net, rate=0.5, training=training)
    tags = tf.layers.dense(
      net, TAGS, kernel_regularizer=_l2_regularizer(0.003), name='tags'
    )
    # A probe: it must not shape the annotations.
    sentence = tf.stop_gradient(tf.concat([state_fw.h, state_bw.h], axis=1))
    intent = tf.layers.dense(sentence, INTENTS, name='intent')
    return {'tags': tags, 'intent': intent, 'alignments': alignments}


def loss(outputs, labels):
  """The loss per word that is there, and half of that of the intent."""
  each = tf.nn.sparse_softmax_cross_entropy_with_logits(
    labels=labels['tags'], logits=outputs['tags']
  )
  mask = tf.sequence_mask(labels['lengths'], tf.shape(each)[1], dtype=tf.float32)
  tags = tf.reduce_sum(each * mask) / tf.reduce_sum(mask)
  intent = tf.losses.softmax_cross_entropy(
    tf.one_hot(labels['intent'], INTENTS), outputs['intent'], weights=0.5, label_smoothing=0.1
  )
  return tags + intent


def train_op(total_loss):
  """Adadelta at a rate that is halved every two steps; the joint norm is 1 at most."""
  global_step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(1.0, global_step, 2, 0.5, staircase=True)
  optimizer = tf.train.AdadeltaOptimizer(rate, rho=0.95, epsilon=1e-6)
  gradients, variables = zip(*optimizer.compute_gradients(total_loss))
  gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
  return optimizer.apply_gradients(list(zip(gradients, variables)), global_step=global_step)
