"""Two towers over letter trigrams, after "Learning Deep Structured Semantic Models for Web Search
using Clickthrough Data" (Huang et al., 2013), with a listwise and a pairwise ranking loss as in
"Learning to Rank using Gradient Descent" (Burges et al., 2005), weighted as LambdaRank does.

Id 0 is padding; a document without any trigram is padding too, and has the grade -1.
"""

import tensorflow.compat.v1 as tf

VOCABULARY = 40
DIM = 8
POSITIONS = 12
SIGMA = 1.5
PAIRWISE = 0.5


def l2(scale):
  return lambda w: scale * tf.nn.l2_loss(w)


def bag_of_trigrams(table, term_weight, ids):
  """Weighted sum of the trigrams' vectors over the root of their number."""
  mask = tf.to_float(tf.not_equal(ids, 0))
  weight = mask * tf.gather(term_weight, ids)
  vectors = tf.nn.embedding_lookup(table, ids)
  total = tf.reduce_sum(vectors * tf.expand_dims(weight, -1), axis=-2)
  count = tf.reduce_sum(mask, axis=-1, keepdims=True)
  return total / tf.sqrt(tf.maximum(count, 1.0))


def query_tower(net, training):
  with tf.variable_scope('query'):
    net = tf.layers.dense(net, 16, activation=tf.nn.tanh, name='hidden')
    net = tf.layers.dropout(net, rate=0.3, training=training)
    return tf.layers.dense(net, 8, activation=tf.nn.tanh, name='semantic')


def document_tower(text, features, training):
  with tf.variable_scope('document'):
    text = tf.layers.dense(text, 16, activation=tf.nn.tanh, name='hidden')
    features = tf.layers.batch_normalization(
        features, momentum=0.9, training=training, name='norm')
    quality = tf.layers.dense(features, 6, activation=tf.nn.relu, name='quality',
                              kernel_regularizer=l2(0.02))
    net = tf.concat([text, quality], axis=-1)
    net = tf.layers.dropout(net, rate=0.2, training=training)
    vector = tf.layers.dense(net, 8, activation=tf.nn.tanh, name='semantic')
    prior = tf.layers.dense(quality, 1, use_bias=False, name='prior',
                            kernel_initializer=tf.truncated_normal_initializer(stddev=0.1))
    return vector, tf.squeeze(prior, -1)


def ranker(inputs, training):
  """Returns the scores of the documents and the vectors of the queries."""
  with tf.variable_scope('pair_ranker'):
    table = tf.get_variable('trigrams', [VOCABULARY, DIM],
                            initializer=tf.random_uniform_initializer(-0.2, 0.2),
                            regularizer=l2(0.001))
    term_weight = tf.get_variable('term_weight', [VOCABULARY],
                                  initializer=tf.ones_initializer())
    gamma = tf.get_variable('gamma', [], initializer=tf.constant_initializer(10.0))
    examination = tf.get_variable('examination', [POSITIONS],
                                  initializer=tf.zeros_initializer())
    # the table learns from queries only; titles are too noisy
    query = bag_of_trigrams(table, term_weight, inputs['query'])
    title = bag_of_trigrams(tf.stop_gradient(table), term_weight, inputs['title'])
    query = query_tower(query, training)
    document, prior = document_tower(title, inputs['features'], training)
    cosine = tf.reduce_sum(
        tf.expand_dims(tf.nn.l2_normalize(query, -1), 1) * tf.nn.l2_normalize(document, -1), -1)
    scores = gamma * cosine + prior
    if training:  # clicks depend on the rank at which a document was shown; serving does not
      scores += tf.gather(examination, inputs['positions'])
    exists = tf.reduce_any(tf.not_equal(inputs['title'], 0), axis=-1)
    scores = scores * tf.to_float(exists)
    return {'scores': scores, 'query': query}


def gains_of(grades):
  valid = tf.greater_equal(grades, 0)
  return tf.where(valid, tf.pow(2.0, tf.to_float(grades)) - 1.0, tf.zeros_like(grades, tf.float32))


def listwise_loss(scores, grades, weight):
  gains = gains_of(grades)
  valid = tf.greater_equal(grades, 0)
  logits = tf.where(valid, scores, -1e9 * tf.ones_like(scores))
  total = tf.reduce_sum(gains, axis=1, keepdims=True)
  target = gains / tf.maximum(total, 1.0)
  each = tf.nn.softmax_cross_entropy_with_logits_v2(labels=target, logits=logits)
  relevant = tf.to_float(tf.squeeze(total, 1) > 0)
  return tf.losses.compute_weighted_loss(each, weights=weight * relevant)


def pairwise_loss(scores, grades):
  valid = tf.to_float(tf.greater_equal(grades, 0))
  gains = gains_of(grades)
  difference = tf.expand_dims(scores, 2) - tf.expand_dims(scores, 1)
  better = tf.to_float(tf.expand_dims(grades, 2) > tf.expand_dims(grades, 1))
  better *= tf.expand_dims(valid, 1) * tf.expand_dims(valid, 2)
  # ranks are made smooth by a sigmoid; the weights of pairs are constants of the gradient
  rank = 0.5 + tf.reduce_sum(tf.sigmoid(-difference) * tf.expand_dims(valid, 1), axis=2)
  discount = 1.0 / tf.log1p(rank)
  ideal, _ = tf.nn.top_k(gains, k=tf.shape(gains)[1])
  places = tf.to_float(tf.range(tf.shape(gains)[1]))
  best = tf.reduce_sum(ideal / tf.log(2.0 + places), axis=1)
  swap = (tf.abs(tf.expand_dims(gains, 2) - tf.expand_dims(gains, 1))
          * tf.abs(tf.expand_dims(discount, 2) - tf.expand_dims(discount, 1))
          / tf.maximum(tf.reshape(best, [-1, 1, 1]), 1e-3))
  each = tf.nn.softplus(-SIGMA * difference)
  return tf.losses.compute_weighted_loss(each, weights=better * tf.stop_gradient(swap))


def loss(outputs, labels):
  return (listwise_loss(outputs['scores'], labels['grades'], labels['weight'])
          + PAIRWISE * pairwise_loss(outputs['scores'], labels['grades']))


def train_op(total_loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
  optimizer = tf.train.AdagradOptimizer(rate)
  gradients, variables = zip(*optimizer.compute_gradients(total_loss))
  gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    applied = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
  averages = tf.train.ExponentialMovingAverage(0.98)
  with tf.control_dependencies([applied]):
    return averages.apply(tf.trainable_variables())
