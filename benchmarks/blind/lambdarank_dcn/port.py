"""The right port of the ranker: under the shim (track_tf1_style_variables), without TF-Slim."""

import math

import tensorflow as tf

v1 = tf.compat.v1

IDS = 23
TERMS = 31
PAIRS = 19
DIM = 4
FIELDS = 5
SQUEEZED = 3
CROSS_LAYERS = 2
DEEP = (12, 8)
DROP_RATE = 0.2
L2 = {'dense': 4e-3, 'cross': 1e-2, 'embeddings': 2e-3}
NORM = {'momentum': 0.95, 'epsilon': 0.001}
POSITIVE_WEIGHT = 3.0
STEEPNESS = 1.5
RANK_SHARE = 0.5
SCHEDULE = {'boundaries': [1, 3], 'values': [0.05, 0.02, 0.01]}
RMSPROP = {'rho': 0.9, 'momentum': 0.8, 'epsilon': 1.0}
AVERAGE = {'use_ema': True, 'ema_momentum': 0.9}
CLIP_NORM = 0.1


def l2(scale):
  return lambda weights: scale * tf.nn.l2_loss(weights)


def batch_norm(x, name, training, scale=False):
  """Fused, as TF-Slim's is for matrices."""
  x = v1.layers.batch_normalization(
    x[:, tf.newaxis, tf.newaxis, :],
    scale=scale,
    training=training,
    fused=True,
    name=name,
    **NORM,
  )
  return x[:, 0, 0, :]


def slim_initializer(fan_in):
  """variance_scaling_initializer of TF-Slim: 1.3 is for the truncation."""
  return v1.truncated_normal_initializer(stddev=math.sqrt(1.3 * 2.0 / fan_in))


def fully_connected(x, size, name, activation=tf.nn.relu, use_bias=True, norm=None):
  """norm: a function that takes the place of the bias."""
  with v1.variable_scope(name):
    fan_in = x.shape[-1]
    weights = v1.get_variable(
      'weights',
      [fan_in, size],
      initializer=slim_initializer(fan_in),
      regularizer=l2(L2['dense']),
    )
    x = tf.matmul(x, weights)
    if norm:
      x = norm(x)
    elif use_bias:
      x = x + v1.get_variable('biases', [size], initializer=v1.zeros_initializer())
    return activation(x) if activation else x


def table(name, buckets):
  initializer = v1.truncated_normal_initializer(stddev=DIM**-0.5)
  return v1.get_variable(
    name, [buckets, DIM], initializer=initializer, regularizer=l2(L2['embeddings'])
  )


def embed(ids, name, buckets=IDS):
  return tf.gather(table(name, buckets), tf.math.floormod(ids, buckets))


def embed_terms(terms, weights):
  weights = tf.where(tf.not_equal(terms, 0), weights, 0.0)
  weights = weights[..., tf.newaxis]
  total = tf.reduce_sum(embed(terms, 'terms', TERMS) * weights, axis=1)
  norm = tf.sqrt(tf.reduce_sum(tf.square(weights), axis=1))
  return tf.math.divide_no_nan(total, norm)


def embed_fields(rows):
  with v1.variable_scope('embeddings'):
    return tf.stack(
      [
        embed_terms(rows['terms'], rows['term_weights']),
        embed(rows['query'], 'query'),
        embed(rows['document'], 'document'),
        embed(rows['user'], 'user'),
        embed(rows['user'] * 31 + rows['category'], 'user_x_category', PAIRS),
      ],
      axis=1,
    )


def excite(fields):
  with v1.variable_scope('senet'):
    x = tf.reduce_mean(fields, axis=-1)
    x = fully_connected(x, SQUEEZED, 'squeeze')
    x = fully_connected(x, FIELDS, 'excite', activation=tf.sigmoid)
  return fields * x[:, :, tf.newaxis]


def signed_log(x):
  return tf.sign(x) * tf.math.log1p(tf.abs(x))


def cross(x0):
  x, size = x0, x0.shape[-1]
  for i in range(CROSS_LAYERS):
    with v1.variable_scope(f'cross_{i}'):
      w = v1.get_variable(
        'w',
        [size, 1],
        initializer=v1.glorot_normal_initializer(),
        regularizer=l2(L2['cross']),
      )
      b = v1.get_variable('b', [size], initializer=v1.zeros_initializer())
    x = x0 * tf.matmul(x, w) + b + x
  return x


def deep(x, training):
  with v1.variable_scope('deep'):
    for i, size in enumerate(DEEP):
      x = fully_connected(
        x, size, f'fc{i}', norm=lambda x: batch_norm(x, 'BatchNorm', training)
      )
      if training:
        x = tf.nn.dropout(x, rate=DROP_RATE)
  return x


def per_document(inputs):
  """Pages to rows."""
  length = inputs['document'].shape[1]
  rows = {}
  for name, x in inputs.items():
    if name in ('query', 'user'):
      rows[name] = tf.repeat(x, length)
    else:
      rows[name] = tf.reshape(x, [-1, *x.shape[2:]])
  return rows


class Ranker(tf.keras.layers.Layer):
  """With the variables of TF1."""

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs, training=False):
    page = inputs['document'].shape
    rows = per_document(inputs)
    with v1.variable_scope('dcn'):
      fields = excite(embed_fields(rows))
      numbers = batch_norm(signed_log(rows['dense']), 'dense_norm', training, scale=True)
      x0 = tf.concat([tf.reshape(fields, [-1, FIELDS * DIM]), numbers], axis=1)
      x = tf.concat([cross(x0), deep(x0, training)], axis=1)
      click = fully_connected(x, 1, 'click', activation=None)
      rank = fully_connected(x, 1, 'rank', activation=None, use_bias=False)
    outputs = {'click': tf.reshape(click, page), 'rank': tf.reshape(rank, page)}
    if not training:
      outputs['probability'] = tf.sigmoid(outputs['click'])
    return outputs


def click_loss(logits, clicks, mask):
  each = tf.nn.weighted_cross_entropy_with_logits(clicks, logits, pos_weight=POSITIVE_WEIGHT)
  pages = tf.reduce_sum(each * mask, axis=1) / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
  return tf.reduce_mean(pages)


def differences(x):
  """[..., i, j]: x[i] - x[j]."""
  return x[:, :, tf.newaxis] - x[:, tf.newaxis, :]


def log2(x):
  return tf.math.log(x) / math.log(2.0)


def ndcg_change(scores, gains, mask):
  scores = tf.where(mask > 0, scores, -1e9)
  better = tf.cast(differences(scores) < 0, tf.float32)
  discounts = 1.0 / log2(2.0 + tf.reduce_sum(better, axis=-1))
  positions = tf.range(scores.shape[1], dtype=tf.float32)
  ideal = tf.sort(gains, axis=1, direction='DESCENDING') / log2(2.0 + positions)
  ideal = tf.maximum(tf.reduce_sum(ideal, axis=1), 1e-6)
  change = tf.abs(differences(gains)) * tf.abs(differences(discounts))
  return tf.stop_gradient(change / ideal[:, tf.newaxis, tf.newaxis])


def rank_loss(scores, relevance, mask):
  gains = (2.0**relevance - 1.0) * mask
  pairs = tf.cast(differences(relevance) > 0, tf.float32)
  pairs *= mask[:, :, tf.newaxis] * mask[:, tf.newaxis, :]
  each = tf.nn.softplus(-STEEPNESS * differences(scores))
  pages = tf.reduce_sum(each * pairs * ndcg_change(scores, gains, mask), axis=[1, 2])
  ordered = tf.cast(tf.reduce_any(pairs > 0, axis=[1, 2]), tf.float32)
  return tf.reduce_sum(pages) / tf.maximum(tf.reduce_sum(ordered), 1.0)


def ranker_loss(outputs, labels):
  mask = tf.sequence_mask(labels['lengths'], outputs['click'].shape[1], dtype=tf.float32)
  click = click_loss(outputs['click'], labels['clicks'], mask)
  rank = rank_loss(outputs['rank'], labels['relevance'], mask)
  return {'loss': click + RANK_SHARE * rank, 'click': click, 'rank': rank}


class RMSprop(tf.keras.optimizers.RMSprop):
  """TF1's mean of squares starts at one."""

  def build(self, var_list):
    built = getattr(self, '_built', False)
    super().build(var_list)
    if not built:
      for velocity in self._velocities:
        velocity.assign(tf.ones_like(velocity))


def make_optimizer():
  rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay(**SCHEDULE)
  return RMSprop(rate, clipnorm=CLIP_NORM, **RMSPROP, **AVERAGE)


def train_step(model, inputs, labels, optimizer):
  with tf.GradientTape() as tape:
    outputs = model(inputs, training=True)
    loss = ranker_loss(outputs, labels)['loss'] + tf.add_n(model.losses)
  variables = model.trainable_variables
  optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
  return loss
