"""The right port of the two-tower model: under the shim, with a training step on a GradientTape."""

import re

import tensorflow as tf

v1 = tf.compat.v1

ITEMS = 40
CATEGORIES = 6
COUNTRIES = 5
EMBEDDING = 8
OUTPUT = 6
TEMPERATURE = 0.2
ALPHA = 0.1


def truncated(stddev=0.05):
  return v1.truncated_normal_initializer(stddev=stddev)


def layer_norm(x, name):
  with v1.variable_scope(name):
    size = x.shape[-1]
    gamma = v1.get_variable('gamma', [size], initializer=tf.ones_initializer())
    beta = v1.get_variable('beta', [size], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-6)


def item_table():
  """One table for the candidates and the histories."""
  return v1.get_variable('item_table', [ITEMS, EMBEDDING], initializer=truncated(0.1))


def small_embedding(ids, size, dim, name):
  table = v1.get_variable(name, [size, dim], initializer=truncated())
  return tf.nn.embedding_lookup(table, ids)


def pool_history(table, history):
  embedded = tf.nn.embedding_lookup(table, history)
  mask = tf.cast(tf.not_equal(history, 0), tf.float32)
  length = tf.shape(history)[1]
  age = tf.cast(tf.range(length - 1, -1, -1), tf.float32)
  decay = v1.get_variable('recency', [], initializer=tf.constant_initializer(0.1))
  weights = mask * tf.exp(-tf.nn.relu(decay) * age)
  total = tf.reduce_sum(weights, axis=1, keepdims=True)
  return tf.einsum('bt,btd->bd', weights, embedded) / tf.maximum(total, 1e-3)


def tower(net, training, name):
  with v1.variable_scope(name):
    net = v1.layers.dense(net, 16, kernel_initializer=truncated(), name='hidden_0')
    net = tf.nn.elu(layer_norm(net, 'norm'))
    if training:
      net = tf.nn.dropout(net, rate=0.1)
    net = v1.layers.dense(
      net, OUTPUT, kernel_initializer=v1.glorot_normal_initializer(), name='hidden_1'
    )
    return tf.math.l2_normalize(net, axis=1)


def log_frequency(items, training):
  with v1.variable_scope('frequency'):
    frequency = v1.get_variable(
      'average', [ITEMS], initializer=tf.constant_initializer(1.0 / ITEMS), trainable=False
    )
    result = tf.math.log(tf.maximum(tf.gather(frequency, items), 1e-4))
    if training:
      seen = tf.math.bincount(items, minlength=ITEMS, maxlength=ITEMS, dtype=tf.float32)
      seen /= tf.cast(tf.shape(items)[0], tf.float32)
      frequency.assign((1.0 - ALPHA) * frequency + ALPHA * seen)
    return result


class TwoTower(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs, training=False):
    with v1.variable_scope('retrieval'):
      table = item_table()
      with v1.variable_scope('user'):
        pooled = pool_history(table, inputs['history'])
        country = small_embedding(inputs['country'], COUNTRIES, 3, 'country')
        age = tf.math.log1p(inputs['account_age'][:, tf.newaxis])
        user = tower(tf.concat([pooled, country, age], axis=1), training, 'tower')
      with v1.variable_scope('candidate'):
        category = small_embedding(inputs['category'], CATEGORIES, 3, 'category')
        item = tf.nn.embedding_lookup(table, inputs['item'])
        features = tf.concat([item, category], axis=1)
        item = tower(features, training, 'tower')
      logits = tf.matmul(user, item, transpose_b=True) / TEMPERATURE
      correction = log_frequency(inputs['item'], training)
      if training:
        logits -= correction[tf.newaxis, :]
      return {'logits': logits, 'user': user, 'item': item}


def retrieval_loss(outputs, items, rewards):
  logits = outputs['logits']
  rows = tf.range(tf.shape(logits)[0])
  same = items[tf.newaxis, :] == items[:, tf.newaxis]
  hits = same & (rows[tf.newaxis, :] != rows[:, tf.newaxis])
  logits = tf.where(hits, logits - 1e4, logits)
  each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=rows, logits=logits)
  loss = tf.reduce_sum(rewards * each) / tf.maximum(tf.reduce_sum(rewards), 1.0)
  top = tf.math.in_top_k(rows, logits, 2)
  return {'loss': loss, 'recall_at_2': tf.reduce_mean(tf.cast(top, tf.float32))}


def learning_rate(step, initial=0.02, warmup=2, total=6):
  decay = tf.keras.optimizers.schedules.PolynomialDecay(initial, total, end_learning_rate=0.001)
  step = tf.cast(step, tf.float32)
  return tf.where(step < warmup, initial * step / warmup, decay(step))


class AdamWeightDecay(tf.Module):
  """Adam without bias correction, with decoupled weight decay."""

  def __init__(self, decay=0.05, beta1=0.9, beta2=0.99, epsilon=1e-6):
    super().__init__()
    self.iterations = tf.Variable(0, trainable=False, dtype=tf.int64, name='global_step')
    self.decay = decay
    self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
    self.m, self.v = {}, {}

  def build(self, variables):
    for variable in variables:
      name = variable.name.split(':')[0]
      if name not in self.m:
        zeros = tf.zeros(variable.shape)
        self.m[name] = tf.Variable(zeros, trainable=False, name=name + '/adam_m')
        self.v[name] = tf.Variable(zeros, trainable=False, name=name + '/adam_v')

  def decays(self, name):
    return re.search('bias|norm|recency', name) is None

  def apply_gradients(self, pairs):
    pairs = list(pairs)
    self.build([variable for _, variable in pairs])
    rate = learning_rate(self.iterations)
    for gradient, variable in pairs:
      name = variable.name.split(':')[0]
      gradient = tf.convert_to_tensor(gradient)
      m, v = self.m[name], self.v[name]
      m.assign(self.beta1 * m + (1.0 - self.beta1) * gradient)
      v.assign(self.beta2 * v + (1.0 - self.beta2) * tf.square(gradient))
      update = m / (tf.sqrt(v) + self.epsilon)
      if self.decays(name):
        update += self.decay * variable
      variable.assign_sub(rate * update)
    self.iterations.assign_add(1)


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = retrieval_loss(outputs, labels['items'], labels['rewards'])['loss']
  variables = model.trainable_variables
  gradients = tape.gradient(loss, variables)
  gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
  optimizer.apply_gradients(zip(gradients, variables))
  return loss
