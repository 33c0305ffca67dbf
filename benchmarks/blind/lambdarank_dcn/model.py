"""A ranker of search results that knows of clicks, TF1 code with TF-Slim.

After Wang et al. 2017, 'Deep & Cross Network for Ad Click Predictions', with the excitation of
fields of Huang et al. 2019, 'FiBiNET', and two tasks: clicks, and the order of a page, weighted as in
Burges 2010, 'From RankNet to LambdaRank to LambdaMART: An Overview'.
"""

import tensorflow.compat.v1 as tf
import tf_slim as slim

HASH_BUCKETS = 23
TERM_BUCKETS = 31
PAIR_BUCKETS = 19
EMBEDDING_SIZE = 4
NUM_FIELDS = 5  # terms, query, document, user, and user x category
SQUEEZED = 3
NUM_CROSS_LAYERS = 2
DEEP_LAYERS = [12, 8]

POS_WEIGHT = 3.0
SIGMA = 1.5
RANK_LOSS_WEIGHT = 0.5

BATCH_NORM_DECAY = 0.95
KEEP_PROB = 0.8
WEIGHT_DECAY = 4e-3
CROSS_WEIGHT_DECAY = 1e-2
EMBEDDING_WEIGHT_DECAY = 2e-3

RMSPROP_DECAY = 0.9
RMSPROP_MOMENTUM = 0.8
RMSPROP_EPSILON = 1.0
CLIP_GRADIENT_NORM = 0.1
MOVING_AVERAGE_DECAY = 0.9


def dcn_arg_scope(is_training):
  with slim.arg_scope(
      [slim.fully_connected],
      weights_regularizer=slim.l2_regularizer(WEIGHT_DECAY),
      weights_initializer=slim.variance_scaling_initializer()):
    with slim.arg_scope([slim.batch_norm], is_training=is_training, decay=BATCH_NORM_DECAY):
      with slim.arg_scope([slim.dropout], is_training=is_training, keep_prob=KEEP_PROB) as scope:
        return scope


def embedding_table(name, buckets):
  return tf.get_variable(
      name, [buckets, EMBEDDING_SIZE],
      initializer=tf.truncated_normal_initializer(stddev=EMBEDDING_SIZE ** -0.5),
      regularizer=slim.l2_regularizer(EMBEDDING_WEIGHT_DECAY))


def embed_hashed(ids, name, buckets=HASH_BUCKETS):
  return tf.nn.embedding_lookup(embedding_table(name, buckets), tf.floormod(ids, buckets))


def embed_terms(terms, weights):
  """Terms are padded by zeros; some documents have none."""
  present = tf.where(tf.not_equal(terms, 0))
  shape = tf.shape(terms, out_type=tf.int64)
  ids = tf.SparseTensor(present, tf.floormod(tf.gather_nd(terms, present), TERM_BUCKETS), shape)
  weights = tf.SparseTensor(present, tf.gather_nd(weights, present), shape)
  return tf.nn.safe_embedding_lookup_sparse(
      [embedding_table('terms', TERM_BUCKETS)], ids, weights, combiner='sqrtn')


def field_embeddings(rows):
  with tf.variable_scope('embeddings'):
    pair = rows['user'] * 31 + rows['category']
    fields = [
        embed_terms(rows['terms'], rows['term_weights']),
        embed_hashed(rows['query'], 'query'),
        embed_hashed(rows['document'], 'document'),
        embed_hashed(rows['user'], 'user'),
        embed_hashed(pair, 'user_x_category', PAIR_BUCKETS),
    ]
    return tf.stack(fields, axis=1)


def excite_fields(fields):
  with tf.variable_scope('senet'):
    net = tf.reduce_mean(fields, 2)
    net = slim.fully_connected(net, SQUEEZED, scope='squeeze')
    net = slim.fully_connected(net, NUM_FIELDS, activation_fn=tf.sigmoid, scope='excite')
    return fields * tf.expand_dims(net, 2)


def dense_features(dense):
  net = tf.sign(dense) * tf.log(1.0 + tf.abs(dense))
  return slim.batch_norm(net, scale=True, scope='dense_norm')


def cross_tower(x0):
  net, size = x0, int(x0.shape[1])
  for i in range(NUM_CROSS_LAYERS):
    with tf.variable_scope('cross_%d' % i):
      w = tf.get_variable(
          'w', [size, 1], initializer=tf.glorot_normal_initializer(),
          regularizer=slim.l2_regularizer(CROSS_WEIGHT_DECAY))
      b = tf.get_variable('b', [size], initializer=tf.zeros_initializer())
      net = x0 * tf.matmul(net, w) + b + net
  return net


def deep_tower(net):
  with tf.variable_scope('deep'):
    with slim.arg_scope([slim.fully_connected], normalizer_fn=slim.batch_norm):
      for i, size in enumerate(DEEP_LAYERS):
        net = slim.fully_connected(net, size, scope='fc%d' % i)
        net = slim.dropout(net, scope='dropout%d' % i)
  return net


def ranker(inputs, training):
  lists, length = [int(d) for d in inputs['document'].shape]
  rows = {
      name: tf.reshape(tensor, [-1] + [int(d) for d in tensor.shape[2:]])
      for name, tensor in inputs.items() if name not in ('query', 'user')
  }
  for name in ('query', 'user'):  # one for the whole page
    rows[name] = tf.reshape(tf.tile(inputs[name][:, None], [1, length]), [-1])
  with tf.variable_scope('dcn'), slim.arg_scope(dcn_arg_scope(training)):
    fields = excite_fields(field_embeddings(rows))
    x0 = tf.concat([slim.flatten(fields), dense_features(rows['dense'])], 1)
    net = tf.concat([cross_tower(x0), deep_tower(x0)], 1)
    click = slim.fully_connected(net, 1, activation_fn=None, scope='click')
    rank = slim.fully_connected(
        net, 1, activation_fn=None, biases_initializer=None, scope='rank')
  outputs = {
      'click': tf.reshape(click, [lists, length]),
      'rank': tf.reshape(rank, [lists, length]),
  }
  if not training:
    outputs['probability'] = tf.sigmoid(outputs['click'])
  return outputs


def click_loss(logits, clicks, mask):
  """The mean of each page, then of the pages."""
  each = tf.nn.weighted_cross_entropy_with_logits(
      targets=clicks, logits=logits, pos_weight=POS_WEIGHT)
  pages = tf.reduce_sum(each * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)
  return tf.reduce_mean(pages)


def log2(x):
  return tf.log(x) / tf.log(2.0)


def ndcg_change(scores, gains, mask):
  """What the NDCG of the page changes by, if two documents change their places."""
  scores = tf.where(mask > 0, scores, tf.fill(tf.shape(scores), -1e9))
  better = tf.cast(scores[:, None, :] > scores[:, :, None], tf.float32)
  discounts = 1.0 / log2(2.0 + tf.reduce_sum(better, 2))
  length = int(scores.shape[1])
  ideal = tf.nn.top_k(gains, k=length)[0] / log2(2.0 + tf.range(length, dtype=tf.float32))
  ideal = tf.maximum(tf.reduce_sum(ideal, 1), 1e-6)
  change = tf.abs(gains[:, :, None] - gains[:, None, :])
  change *= tf.abs(discounts[:, :, None] - discounts[:, None, :])
  return tf.stop_gradient(change / ideal[:, None, None])


def lambda_loss(scores, relevance, mask):
  """The mean of the pages that have a pair."""
  gains = (tf.pow(2.0, relevance) - 1.0) * mask
  pairs = tf.cast(relevance[:, :, None] > relevance[:, None, :], tf.float32)
  pairs *= mask[:, :, None] * mask[:, None, :]
  each = tf.nn.softplus(-SIGMA * (scores[:, :, None] - scores[:, None, :]))
  pages = tf.reduce_sum(each * pairs * ndcg_change(scores, gains, mask), [1, 2])
  ordered = tf.cast(tf.reduce_any(pairs > 0, [1, 2]), tf.float32)
  return tf.reduce_sum(pages) / tf.maximum(tf.reduce_sum(ordered), 1.0)


def ranker_loss(outputs, labels):
  mask = tf.sequence_mask(labels['lengths'], outputs['click'].shape[1], dtype=tf.float32)
  click = click_loss(outputs['click'], labels['clicks'], mask)
  rank = lambda_loss(outputs['rank'], labels['relevance'], mask)
  return {'loss': click + RANK_LOSS_WEIGHT * rank, 'click': click, 'rank': rank}


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.piecewise_constant(step, [1, 3], [0.05, 0.02, 0.01])
  optimizer = tf.train.RMSPropOptimizer(
      rate, decay=RMSPROP_DECAY, momentum=RMSPROP_MOMENTUM, epsilon=RMSPROP_EPSILON)
  train = slim.learning.create_train_op(
      loss, optimizer, clip_gradient_norm=CLIP_GRADIENT_NORM)
  averages = tf.train.ExponentialMovingAverage(MOVING_AVERAGE_DECAY)
  with tf.control_dependencies([train]):
    return averages.apply(tf.trainable_variables())
