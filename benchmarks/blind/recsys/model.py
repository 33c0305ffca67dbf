"""A two-tower retrieval model with in-batch softmax, TF1 code.

After Yi et al. 2019, 'Sampling-Bias-Corrected Neural Modeling for Large Corpus Item
Recommendations'; the optimizer is AdamW of Loshchilov & Hutter 2019, written by hand as in
BERT's optimization.py.
"""

import re

import tensorflow.compat.v1 as tf

ITEMS = 40
CATEGORIES = 6
COUNTRIES = 5
EMBEDDING = 8
OUTPUT = 6
TEMPERATURE = 0.2
ALPHA = 0.1


def truncated(stddev=0.05):
  return tf.truncated_normal_initializer(stddev=stddev)


def layer_norm(x, name):
  with tf.variable_scope(name):
    size = x.shape[-1].value
    gamma = tf.get_variable('gamma', [size], initializer=tf.ones_initializer())
    beta = tf.get_variable('beta', [size], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return gamma * (x - mean) * tf.rsqrt(variance + 1e-6) + beta


def item_table():
  """One table for the candidates and the histories."""
  return tf.get_variable('item_table', [ITEMS, EMBEDDING], initializer=truncated(0.1))


def small_embedding(ids, size, dim, name):
  table = tf.get_variable(name, [size, dim], initializer=truncated())
  return tf.nn.embedding_lookup(table, ids)


def pool_history(table, history):
  """The mean over the items of a history, more weight on the recent ones."""
  embedded = tf.nn.embedding_lookup(table, history)
  mask = tf.to_float(tf.not_equal(history, 0))
  length = tf.shape(history)[1]
  # the newest item comes last
  age = tf.to_float(tf.range(length - 1, -1, -1))
  decay = tf.get_variable('recency', [], initializer=tf.constant_initializer(0.1))
  weights = mask * tf.exp(-tf.nn.relu(decay) * age)
  total = tf.reduce_sum(weights, 1, keepdims=True)
  return tf.reduce_sum(embedded * tf.expand_dims(weights, 2), 1) / tf.maximum(total, 1e-3)


def tower(net, training, name):
  with tf.variable_scope(name):
    net = tf.layers.dense(net, 16, kernel_initializer=truncated(), name='hidden_0')
    net = tf.nn.elu(layer_norm(net, 'norm'))
    if training:
      net = tf.nn.dropout(net, keep_prob=0.9)
    net = tf.layers.dense(
      net, OUTPUT, kernel_initializer=tf.glorot_normal_initializer(), name='hidden_1'
    )
    return tf.nn.l2_normalize(net, axis=1)


def log_frequency(items, training):
  """The log of how often an item is in a batch, a moving average."""
  with tf.variable_scope('frequency'):
    frequency = tf.get_variable(
      'average', [ITEMS], initializer=tf.constant_initializer(1.0 / ITEMS), trainable=False
    )
    result = tf.log(tf.maximum(tf.gather(frequency, items), 1e-4))
    if training:
      batch = tf.to_float(tf.shape(items)[0])
      seen = tf.unsorted_segment_sum(tf.ones_like(items, tf.float32), items, ITEMS) / batch
      with tf.control_dependencies([result]):
        update = tf.assign(frequency, (1.0 - ALPHA) * frequency + ALPHA * seen)
      tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    return result


def two_tower(inputs, training):
  with tf.variable_scope('retrieval'):
    table = item_table()
    with tf.variable_scope('user'):
      pooled = pool_history(table, inputs['history'])
      country = small_embedding(inputs['country'], COUNTRIES, 3, 'country')
      age = tf.log1p(tf.expand_dims(inputs['account_age'], 1))
      user = tower(tf.concat([pooled, country, age], 1), training, 'tower')
    with tf.variable_scope('candidate'):
      category = small_embedding(inputs['category'], CATEGORIES, 3, 'category')
      item = tf.nn.embedding_lookup(table, inputs['item'])
      item = tower(tf.concat([item, category], 1), training, 'tower')
    logits = tf.matmul(user, item, transpose_b=True) / TEMPERATURE
    correction = log_frequency(inputs['item'], training)
    if training:
      logits -= tf.expand_dims(correction, 0)
    return {'logits': logits, 'user': user, 'item': item}


def retrieval_loss(outputs, items, rewards):
  logits = outputs['logits']
  batch = tf.shape(logits)[0]
  # the same item in another row is no negative
  same = tf.equal(tf.expand_dims(items, 0), tf.expand_dims(items, 1))
  hits = tf.to_float(same) - tf.eye(batch)
  logits = logits + hits * -1e4
  each = tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.eye(batch), logits=logits)
  loss = tf.reduce_sum(rewards * each) / tf.maximum(tf.reduce_sum(rewards), 1.0)
  top = tf.nn.in_top_k(logits, tf.range(batch), 2)
  return {'loss': loss, 'recall_at_2': tf.reduce_mean(tf.to_float(top))}


def learning_rate(step, initial=0.02, warmup=2, total=6):
  rate = tf.train.polynomial_decay(initial, step, total, end_learning_rate=0.001, power=1.0)
  done = tf.to_float(step) / warmup
  return tf.cond(step < warmup, lambda: initial * done, lambda: rate)


class AdamWeightDecay(object):
  def __init__(self, rate, decay=0.05, beta1=0.9, beta2=0.99, epsilon=1e-6):
    self.rate, self.decay = rate, decay
    self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

  def decays(self, name):
    return not any(re.search(r, name) for r in ('bias', 'norm', 'recency'))

  def apply_gradients(self, pairs):
    updates = []
    for gradient, variable in pairs:
      if gradient is None:
        continue
      name = variable.op.name
      zeros = tf.zeros_initializer()
      m, v = (
        tf.get_variable(name + s, variable.shape, initializer=zeros, trainable=False)
        for s in ('/adam_m', '/adam_v')
      )
      next_m = self.beta1 * m + tf.multiply(1.0 - self.beta1, gradient)
      next_v = self.beta2 * v + tf.multiply(1.0 - self.beta2, tf.square(gradient))
      update = next_m / (tf.sqrt(next_v) + self.epsilon)
      if self.decays(name):
        update += self.decay * variable
      updates += [
        variable.assign(variable - self.rate * update), m.assign(next_m), v.assign(next_v)
      ]
    return tf.group(*updates)


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  optimizer = AdamWeightDecay(learning_rate(step))
  variables = tf.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    update = optimizer.apply_gradients(zip(gradients, variables))
  with tf.control_dependencies([update]):
    return step.assign_add(1)
