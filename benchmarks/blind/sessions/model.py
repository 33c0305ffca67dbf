"""A session-based recommender with attention, TF1 code.

After Li et al. 2017, 'Neural Attentive Session-based Recommendation', with the TOP1 loss over
sampled negatives of Hidasi et al. 2016, 'Session-based Recommendations with Recurrent Neural
Networks', and the dwell time of Bogina and Kuflik 2017.
"""

import tensorflow.compat.v1 as tf

NUM_ITEMS = 30  # item 0 is padding
EMBEDDING_DIM = 10
HIDDEN = 12
ATTENTION = 8
MAX_DWELL = 600.0


def embed(items, dwell, mask, training):
  table = tf.get_variable(
    'item_embedding', [NUM_ITEMS, EMBEDDING_DIM],
    initializer=tf.random_uniform_initializer(-0.25, 0.25),
  )
  net = tf.nn.embedding_lookup(table, items)
  boost = tf.log(1.0 + tf.minimum(dwell, MAX_DWELL)) / tf.log(60.0)
  net = net * tf.expand_dims(boost * mask, -1)
  net = tf.layers.dropout(net, 0.25, training=training)
  return table, net


def recurrent(net, lengths):
  cell = tf.nn.rnn_cell.GRUCell(HIDDEN)
  return tf.nn.dynamic_rnn(cell, net, sequence_length=lengths, dtype=tf.float32, scope='rnn')


def attend(states, last, mask):
  """Additive attention of the last state over all states of the session."""
  with tf.variable_scope('attention', initializer=tf.truncated_normal_initializer(stddev=0.3)):
    keys = tf.layers.dense(states, ATTENTION, use_bias=False, name='keys')
    query = tf.layers.dense(last, ATTENTION, use_bias=True, name='query')
    v = tf.get_variable('v', [ATTENTION])
    energy = tf.reduce_sum(v * tf.sigmoid(keys + tf.expand_dims(query, 1)), 2)
    energy += (1.0 - mask) * -1e9
    weights = tf.nn.softmax(energy)
    return tf.reduce_sum(states * tf.expand_dims(weights, 2), 1)


def recommender(inputs, training):
  items, dwell = inputs['items'], inputs['dwell']
  lengths = tf.reduce_sum(tf.sign(items), 1)
  mask = tf.sequence_mask(lengths, items.shape[1], dtype=tf.float32)
  with tf.variable_scope('sessions'):
    table, net = embed(items, dwell, mask, training)
    states, last = recurrent(net, lengths)
    local = attend(states, last, mask)
    net = tf.concat([last, local], 1)
    net = tf.layers.dropout(net, 0.5, training=training)
    net = tf.layers.dense(
      net, EMBEDDING_DIM, use_bias=False, name='bilinear',
      kernel_initializer=tf.variance_scaling_initializer(1.0, 'fan_avg', 'normal'),
    )
    bias = tf.get_variable('item_bias', [NUM_ITEMS], initializer=tf.constant_initializer(-0.1))
    logits = tf.matmul(net, table, transpose_b=True) + bias
  outputs = {'logits': logits}
  if not training:
    seen = tf.reduce_max(tf.one_hot(items, NUM_ITEMS), 1)
    outputs['scores'], outputs['items'] = tf.nn.top_k(logits - 1e4 * seen, k=5)
  return outputs


def session_loss(outputs, labels):
  """TOP1 over the negatives, and a softmax over all items, for sessions that have a target."""
  logits, targets = outputs['logits'], labels['targets']
  weights = labels['weights'] * tf.cast(tf.not_equal(targets, 0), tf.float32)
  count = tf.maximum(tf.reduce_sum(weights), 1.0)
  rows = tf.range(tf.shape(logits)[0])
  positive = tf.gather_nd(logits, tf.stack([rows, targets], 1))
  negative = tf.batch_gather(logits, labels['negatives'])
  top1 = tf.sigmoid(negative - positive[:, None]) + tf.sigmoid(tf.square(negative))
  valid = tf.cast(tf.not_equal(labels['negatives'], targets[:, None]), tf.float32)
  top1 = tf.reduce_sum(top1 * valid, 1) / tf.maximum(tf.reduce_sum(valid, 1), 1.0)
  ranking = tf.reduce_sum(top1 * weights) / count
  one_hot = tf.one_hot(targets, NUM_ITEMS)
  softmax = tf.losses.softmax_cross_entropy(one_hot, logits, weights=weights, label_smoothing=0.1)
  return {'loss': ranking + 0.2 * softmax, 'ranking': ranking, 'softmax': softmax}


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  decayed = [
    v for v in tf.trainable_variables()
    if 'bias' not in v.op.name and 'attention/v' not in v.op.name
  ]
  loss += 2e-3 * tf.add_n([tf.nn.l2_loss(v) for v in decayed])
  rate = tf.train.exponential_decay(0.1, step, 2, 0.6, staircase=True)
  optimizer = tf.train.AdagradOptimizer(rate, initial_accumulator_value=0.05)
  variables = tf.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.2)
  return optimizer.apply_gradients(zip(gradients, variables), global_step=step)
