"""The port to native layers of Keras 2, with its loss and training step."""

import tensorflow as tf


class PriceRanker(tf.keras.Model):
  def __init__(self):
    super().__init__(name='price_ranker')
    self.hidden = tf.keras.layers.Dense(
      12, activation='relu', name='hidden', kernel_regularizer=tf.keras.regularizers.L2(0.005)
    )
    self.code = tf.keras.layers.Dense(8, activation='tanh', name='code')
    self.score = tf.keras.layers.Dense(1, name='score')
    self.price = tf.keras.layers.Dense(2, name='price')

  def call(self, inputs, training=False):
    net = self.code(self.hidden(inputs))
    mean, log_scale = tf.unstack(self.price(net), axis=-1)
    return {'scores': tf.squeeze(self.score(net), -1), 'mean': mean, 'log_scale': log_scale}


def pairwise(scores, grades):
  valid = tf.cast(grades >= 0, tf.float32)
  margin = 0.2
  gap = scores[:, :, None] - scores[:, None, :]
  better = tf.cast(grades[:, :, None] > grades[:, None, :], tf.float32)
  better *= valid[:, :, None] * valid[:, None, :]
  hinge = tf.nn.relu(margin - gap)
  return tf.reduce_sum(better * hinge) / tf.maximum(tf.reduce_sum(better), 1.0)


def listwise(scores, grades):
  valid = grades >= 0
  logits = tf.where(valid, scores / 0.7, -1e9)
  gains = tf.where(valid, 2.0 ** tf.cast(grades, tf.float32) - 1.0, 0.0)
  total = tf.reduce_sum(gains, axis=1, keepdims=True)
  target = gains / (total + 1e-6)
  each = tf.nn.softmax_cross_entropy_with_logits(labels=target, logits=logits)
  return tf.reduce_mean(each)


def price_term(mean, log_scale, price, grades):
  valid = tf.cast(grades >= 0, tf.float32)
  error = tf.math.log1p(price) - mean
  scale = tf.nn.softplus(log_scale) + 1e-3
  absolute = tf.abs(error) / scale
  huber = tf.where(absolute < 1.5, 0.5 * absolute**2, 1.5 * absolute - 1.125)
  each = huber + tf.math.log(scale)
  return tf.reduce_sum(valid * each) / tf.reduce_sum(valid)


def spread(scores):
  centered = scores - tf.reduce_mean(scores, axis=1, keepdims=True)
  deviation = tf.sqrt(tf.reduce_mean(centered**2, axis=1) + 1e-4)
  return tf.reduce_mean(tf.nn.relu(1.0 - deviation))


def loss(outputs, labels):
  grades = labels['grades']
  ranking = pairwise(outputs['scores'], grades)
  ranking += 0.5 * listwise(outputs['scores'], grades)
  price = price_term(outputs['mean'], outputs['log_scale'], labels['price'], grades)
  total = ranking + 0.3 * price
  return total + 0.05 * spread(outputs['scores'])


class DecayedAdam:
  """Adam with weight decay and a step that is scaled by norms, as LAMB does it."""

  def __init__(self):
    self.m = {}
    self.v = {}

  def apply(self, gradients, variables, rate):
    for gradient, variable in zip(gradients, variables, strict=True):
      if variable.name not in self.m:
        self.m[variable.name] = tf.Variable(tf.zeros_like(variable), trainable=False)
        self.v[variable.name] = tf.Variable(tf.zeros_like(variable), trainable=False)
      m, v = self.m[variable.name], self.v[variable.name]
      m.assign(0.9 * m + 0.1 * gradient)
      v.assign(0.98 * v + 0.02 * gradient**2)
      step = m / (tf.sqrt(v) + 1e-3)
      if 'bias' not in variable.name:
        step += 0.02 * variable
      norm = tf.norm(variable)
      size = tf.norm(step)
      trust = tf.where((norm > 0) & (size > 0), norm / size, 1.0)
      variable.assign_sub(rate * trust * step)


class Trainer:
  """Sums the gradients of two steps, applies their mean, and averages the weights."""

  def __init__(self):
    self.count = tf.Variable(0, dtype=tf.int64, trainable=False)
    self.adam = DecayedAdam()
    self.rate = tf.Variable(0.0, trainable=False)  # of the heads
    self.momentum = tf.compat.v1.train.MomentumOptimizer(lambda: 1.0 * self.rate, 0.8)
    self.sums = []
    self.averages = []

  def step(self, layer, inputs, labels):
    with tf.GradientTape() as tape:
      total_loss = loss(layer(inputs, training=True), labels)
      total_loss += tf.add_n(layer.losses)
    variables = layer.trainable_variables
    if not self.sums:
      self.sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
      self.averages = [tf.Variable(v, trainable=False) for v in variables]
    gradients = tape.gradient(total_loss, variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    every = tf.cast(self.count % 2 == 1, tf.float32)  # 1 in each second step
    totals = [s + g for s, g in zip(self.sums, gradients, strict=True)]
    means = [t / 2.0 for t in totals]
    rate = 0.02 * every / (1.0 + 0.1 * tf.cast(self.count, tf.float32))
    heads = [n for n, v in enumerate(variables) if 'price/' in v.name.split('/', 1)[1]]
    others = [n for n in range(len(variables)) if n not in heads]
    self.adam.apply([means[n] for n in others], [variables[n] for n in others], rate)
    self.rate.assign(0.5 * rate)
    self.momentum.apply_gradients([(means[n], variables[n]) for n in heads])
    for average, variable in zip(self.averages, variables, strict=True):
      average.assign(0.95 * average + 0.05 * variable)
    for kept, new in zip(self.sums, totals, strict=True):
      kept.assign(new * (1.0 - every))
    self.count.assign_add(1)
    return total_loss
