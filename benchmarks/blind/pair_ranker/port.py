"""The port of the ranker to native layers of Keras 2, with its loss and training step."""

import tensorflow as tf

VOCABULARY = 40
DIM = 8
POSITIONS = 12
SIGMA = 1.5
PAIRWISE = 0.5


class Bag(tf.keras.layers.Layer):
  """Weighted sum of the trigrams' vectors over the root of their number."""

  def build(self, shape):
    self.table = self.add_weight(
      name='trigrams',
      shape=[VOCABULARY, DIM],
      initializer=tf.keras.initializers.RandomUniform(-0.2, 0.2),
      regularizer=tf.keras.regularizers.L2(0.0005),
    )
    self.term_weight = self.add_weight(name='term_weight', shape=[VOCABULARY], initializer='ones')
    super().build(shape)

  def call(self, ids, frozen=False):
    table = tf.stop_gradient(self.table) if frozen else tf.convert_to_tensor(self.table)
    mask = tf.cast(ids != 0, tf.float32)
    weight = mask * tf.gather(self.term_weight, ids)
    total = tf.einsum('...t,...td->...d', weight, tf.gather(table, ids))
    count = tf.reduce_sum(mask, axis=-1, keepdims=True)
    return total * tf.math.rsqrt(tf.maximum(count, 1.0))


class QueryTower(tf.keras.layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.hidden = tf.keras.layers.Dense(16, activation='tanh', name='hidden')
    self.dropout = tf.keras.layers.Dropout(0.3)
    self.semantic = tf.keras.layers.Dense(8, activation='tanh', name='semantic')

  def call(self, net, training=False):
    net = self.dropout(self.hidden(net), training=training)
    return self.semantic(net)


class DocumentTower(tf.keras.layers.Layer):
  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.hidden = tf.keras.layers.Dense(16, activation='tanh', name='hidden')
    self.norm = tf.keras.layers.BatchNormalization(momentum=0.9, name='norm')
    self.quality = tf.keras.layers.Dense(
      6, activation='relu', kernel_regularizer=tf.keras.regularizers.L2(0.01), name='quality'
    )
    self.dropout = tf.keras.layers.Dropout(0.2)
    self.semantic = tf.keras.layers.Dense(8, activation='tanh', name='semantic')
    self.prior = tf.keras.layers.Dense(
      1,
      use_bias=False,
      kernel_initializer=tf.keras.initializers.TruncatedNormal(stddev=0.1),
      name='prior',
    )

  def call(self, text, features, training=False):
    text = self.hidden(text)
    quality = self.quality(self.norm(features, training=training))
    net = tf.concat([text, quality], axis=-1)
    net = self.dropout(net, training=training)
    return self.semantic(net), tf.squeeze(self.prior(quality), -1)


class PairRanker(tf.keras.Model):
  def __init__(self):
    super().__init__(name='pair_ranker')
    self.bag = Bag(name='bag')
    self.query_tower = QueryTower(name='query')
    self.document_tower = DocumentTower(name='document')
    self.gamma = self.add_weight(
      name='gamma', shape=[], initializer=tf.keras.initializers.Constant(10.0)
    )
    self.examination = self.add_weight(
      name='examination', shape=[POSITIONS], initializer='zeros'
    )

  def call(self, inputs, training=False):
    query = self.query_tower(self.bag(inputs['query']), training=training)
    title = self.bag(inputs['title'], frozen=True)
    document, prior = self.document_tower(title, inputs['features'], training=training)
    cosine = tf.einsum(
      'bd,bnd->bn', tf.math.l2_normalize(query, axis=-1), tf.math.l2_normalize(document, axis=-1)
    )
    scores = self.gamma * cosine + prior
    if training:
      scores += tf.gather(self.examination, inputs['positions'])
    exists = tf.reduce_any(inputs['title'] != 0, axis=-1)
    scores = scores * tf.cast(exists, tf.float32)
    return {'scores': scores, 'query': query}


def weighted_mean(each, weights):
  """The sum over the number of weights that are not zero."""
  number = tf.math.count_nonzero(weights, dtype=tf.float32)
  return tf.math.divide_no_nan(tf.reduce_sum(each * weights), number)


def gains_of(grades):
  return tf.where(grades >= 0, tf.pow(2.0, tf.cast(grades, tf.float32)) - 1.0, 0.0)


def listwise_loss(scores, grades, weight):
  gains = gains_of(grades)
  logits = tf.where(grades >= 0, scores, -1e9)
  total = tf.reduce_sum(gains, axis=1)
  target = gains / tf.maximum(total, 1.0)[:, None]
  each = -tf.reduce_sum(target * tf.nn.log_softmax(logits), axis=1)
  relevant = tf.cast(total > 0, tf.float32)
  return weighted_mean(each, weight * relevant)


def pairwise_loss(scores, grades):
  valid = tf.cast(grades >= 0, tf.float32)
  gains = gains_of(grades)
  difference = scores[:, :, None] - scores[:, None, :]
  better = tf.cast(grades[:, :, None] > grades[:, None, :], tf.float32)
  better *= valid[:, :, None] * valid[:, None, :]
  rank = 0.5 + tf.einsum('bij,bj->bi', tf.sigmoid(-difference), valid)
  discount = 1.0 / tf.math.log1p(rank)
  ideal = tf.sort(gains, axis=1, direction='DESCENDING')
  places = tf.range(tf.shape(gains)[1], dtype=tf.int32)
  best = tf.reduce_sum(ideal / tf.math.log(2.0 + tf.cast(places, tf.float32)), axis=1)
  swap = tf.abs(gains[:, :, None] - gains[:, None, :])
  swap *= tf.abs(discount[:, :, None] - discount[:, None, :])
  swap /= tf.maximum(best, 1e-3)[:, None, None]
  each = tf.math.softplus(-SIGMA * difference)
  return weighted_mean(each, better * tf.stop_gradient(swap))


def loss(outputs, labels):
  listwise = listwise_loss(outputs['scores'], labels['grades'], labels['weight'])
  return listwise + PAIRWISE * pairwise_loss(outputs['scores'], labels['grades'])


class Trainer:
  """Adagrad on clipped gradients, and averages of the weights."""

  def __init__(self):
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5, staircase=True)
    self.optimizer = tf.keras.optimizers.Adagrad(
      rate, initial_accumulator_value=0.1, epsilon=0.0
    )
    self.averages = []

  def step(self, layer, inputs, labels):
    with tf.GradientTape() as tape:
      outputs = layer(inputs, training=True)
      total = loss(outputs, labels) + tf.add_n(layer.losses)
    variables = layer.trainable_variables
    gradients = tape.gradient(total, variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    if not self.averages:  # they start as the weights do
      self.averages = [tf.Variable(v, trainable=False) for v in variables]
    self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    for average, variable in zip(self.averages, variables, strict=True):
      average.assign(0.98 * average + 0.02 * variable)
    return total
