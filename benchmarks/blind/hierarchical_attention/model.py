"""A hierarchical attention network, TF1 code of 2017 with `tf.nn.rnn_cell` and `tf.layers`.

After Yang, Yang, Dyer, He, Smola, Hovy 2016, 'Hierarchical Attention Networks for Document
Classification': a bidirectional GRU and attention over the words of a sentence, and the same over
the sentences of a document. Words and sentences are padded.
"""

import tensorflow.compat.v1 as tf

VOCAB, EMBED, HIDDEN, ATT, CLASSES = 30, 6, 5, 7, 4


def bi_gru(x, lengths, scope):
  with tf.variable_scope(scope):
    fw, bw = tf.nn.rnn_cell.GRUCell(HIDDEN), tf.nn.rnn_cell.GRUCell(HIDDEN)
    (out_fw, out_bw), _ = tf.nn.bidirectional_dynamic_rnn(
      fw, bw, x, sequence_length=lengths, dtype=tf.float32
    )
    return tf.concat([out_fw, out_bw], 2)


def attention(x, lengths, scope):
  with tf.variable_scope(scope):
    u_w = tf.get_variable('context', [ATT])
    u = tf.layers.dense(x, ATT, activation=tf.nn.tanh, name='projection')
    scores = tf.reduce_sum(u * u_w, axis=2)
    mask = tf.sequence_mask(lengths, tf.shape(x)[1], dtype=tf.float32)
    scores = scores * mask + (1.0 - mask) * -1e9
    alpha = tf.nn.softmax(scores)
    return tf.reduce_sum(x * tf.expand_dims(alpha, -1), axis=1), alpha


def han(inputs, training):
  words, word_lengths, doc_lengths = inputs['words'], inputs['word_lengths'], inputs['doc_lengths']
  with tf.variable_scope('han', initializer=tf.random_normal_initializer(stddev=0.1)):
    table = tf.get_variable('embedding', [VOCAB, EMBED])
    s = tf.shape(words)
    x = tf.nn.embedding_lookup(table, tf.reshape(words, [-1, s[2]]))
    h = bi_gru(x, tf.reshape(word_lengths, [-1]), 'word_gru')
    sentences, _ = attention(h, tf.reshape(word_lengths, [-1]), 'word_attention')
    sentences = tf.reshape(sentences, [-1, s[1], 2 * HIDDEN])
    sentences = tf.layers.dropout(sentences, 0.3, training=training)
    h = bi_gru(sentences, doc_lengths, 'sentence_gru')
    doc, alpha = attention(h, doc_lengths, 'sentence_attention')
    doc = tf.layers.dropout(doc, 0.5, training=training)
    logits = tf.layers.dense(doc, CLASSES, name='logits')
  return {'logits': logits, 'alpha': alpha}


def loss(outputs, labels):
  one_hot = tf.one_hot(labels, CLASSES)
  return tf.losses.softmax_cross_entropy(one_hot, outputs['logits'], label_smoothing=0.1)


def total_loss(data_loss):
  l2 = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if 'bias' not in v.name])
  return data_loss + 1e-3 * l2


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(0.01, step, 2, 0.7, staircase=True)
  optimizer = tf.train.AdamOptimizer(rate, beta2=0.99)
  grads, tvars = zip(*optimizer.compute_gradients(loss))
  grads, _ = tf.clip_by_global_norm(grads, 0.5)
  return optimizer.apply_gradients(zip(grads, tvars), global_step=step)
