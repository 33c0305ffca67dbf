"""The right port of the block, under the shim; loss, schedule and training step rewritten."""

import math

import tensorflow as tf

v1 = tf.compat.v1

VOCAB, DIM, HEADS, HEAD, FILTER = 19, 12, 3, 4, 20
CLAMP = 6.0


def drop(x, training):
  if not training:
    return x
  return tf.nn.dropout(x, rate=0.2)


def layer_norm(x):
  with v1.variable_scope('layer_norm'):
    scale = v1.get_variable('gamma', [DIM], initializer=v1.ones_initializer())
    shift = v1.get_variable('beta', [DIM], initializer=v1.zeros_initializer())
    mean = tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(x - mean), axis=-1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-6)


def projection(x, units, name, stddev=0.02):
  with v1.variable_scope(name):
    init = v1.random_normal_initializer(stddev=stddev)
    kernel = v1.get_variable('kernel', [x.shape[-1], units], initializer=init)
    return tf.einsum('...i,io->...o', x, kernel)


def decayed_dense(x, units, name):
  with v1.variable_scope(name):
    init = v1.glorot_uniform_initializer()
    decay = lambda w: 0.005 * tf.reduce_sum(tf.square(w))
    kernel = v1.get_variable('kernel', [x.shape[-1], units], initializer=init, regularizer=decay)
    bias = v1.get_variable('bias', [units], initializer=v1.zeros_initializer())
    return tf.tensordot(x, kernel, 1) + bias


def sinusoids(klen):
  positions = tf.range(klen - 1, -1, -1)
  positions = tf.minimum(tf.cast(positions, tf.float32), CLAMP)
  frequencies = 10000.0 ** (-tf.range(0.0, DIM, 2.0) / DIM)
  angles = tf.einsum('i,j->ij', positions, frequencies)
  return tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)


class RelativeLanguageModel(tf.keras.layers.Layer):
  """Ids, ids of the segment before it, and a mask of the latter; logits and new memory."""

  def attention(self, x, memory, memory_mask, training):
    batch, qlen, mlen = tf.shape(x)[0], tf.shape(x)[1], tf.shape(memory)[1]
    klen = qlen + mlen
    encoded = drop(sinusoids(klen), training)
    qkv = projection(tf.concat([memory, x], axis=1), 3 * HEADS * HEAD, 'qkv')
    qkv = tf.reshape(qkv, [batch, klen, 3, HEADS, HEAD])
    query, key, value = tf.unstack(qkv, axis=2)
    query = query[:, mlen:]
    r = tf.reshape(projection(encoded, HEADS * HEAD, 'r'), [klen, HEADS, HEAD])

    small = v1.random_normal_initializer(stddev=0.02)
    r_w_bias = v1.get_variable('r_w_bias', [HEADS, HEAD], initializer=small)
    r_r_bias = v1.get_variable('r_r_bias', [HEADS, HEAD], initializer=small)
    content = tf.einsum('bihd,bjhd->bhij', query + r_w_bias, key)
    position = tf.einsum('bihd,jhd->bhij', query + r_r_bias, r)
    # The distance from query i to key j is mlen + i - j, the first row of r is the furthest.
    rows, columns = tf.range(qlen)[:, None], tf.range(klen)[None, :]
    index = tf.minimum(qlen - 1 - rows + columns, klen - 1)
    index = tf.broadcast_to(index, [batch, HEADS, qlen, klen])
    position = tf.gather(position, index, axis=3, batch_dims=3)
    scores = (content + position) * (1.0 / math.sqrt(HEAD))

    visible = tf.concat([memory_mask > 0.5, tf.ones([batch, qlen], tf.bool)], axis=1)
    allowed = visible[:, None, None, :] & (columns <= rows + mlen)
    scores = tf.where(allowed, scores, -1e30)

    probabilities = tf.nn.softmax(scores, axis=-1)
    probabilities = drop(probabilities, training)
    mixed = tf.einsum('bhij,bjhd->bihd', probabilities, value)
    mixed = tf.reshape(mixed, [batch, qlen, HEADS * HEAD])
    mixed = projection(mixed, DIM, 'o')
    return layer_norm(x + drop(mixed, training))

  def feed_forward(self, x, training):
    hidden = tf.nn.relu(decayed_dense(x, FILTER, 'layer_1'))
    hidden = drop(hidden, training)
    hidden = decayed_dense(hidden, DIM, 'layer_2')
    return layer_norm(x + drop(hidden, training))

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs, training=False):
    with v1.variable_scope('transformer'):
      init = v1.random_normal_initializer(stddev=1.0 / math.sqrt(DIM))
      table = v1.get_variable('embedding', [VOCAB, DIM], initializer=init)
      x = tf.gather(table, inputs['ids']) * math.sqrt(DIM)
      x = drop(x, training)
      memory = tf.gather(table, inputs['previous']) * math.sqrt(DIM)
      memory = tf.stop_gradient(memory)
      kept = tf.concat([memory, x], axis=1)[:, tf.shape(x)[1]:]

      with v1.variable_scope('attention'):
        x = self.attention(x, memory, inputs['memory_mask'], training)
      with v1.variable_scope('ffn'):
        x = self.feed_forward(x, training)
      bias = v1.get_variable('softmax_bias', [VOCAB], initializer=v1.zeros_initializer())
      logits = tf.matmul(x, table, transpose_b=True) + bias
      return {'logits': logits, 'memory': tf.stop_gradient(kept)}


def lm_loss(logits, targets, weights):
  each = tf.keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
  present = tf.cast(tf.math.count_nonzero(weights), tf.float32)
  return tf.math.divide_no_nan(tf.reduce_sum(each * weights), present)


class WarmupCosine(tf.keras.optimizers.schedules.LearningRateSchedule):
  peak, warmup, total, alpha = 0.01, 2.0, 8.0, 0.1

  def __call__(self, step):
    step = tf.cast(step, tf.float32)
    rising = self.peak * (step + 1.0) / self.warmup
    progress = tf.minimum((step - self.warmup) / (self.total - self.warmup), 1.0)
    cosine = 0.5 * (1.0 + tf.cos(math.pi * progress))
    falling = self.peak * ((1.0 - self.alpha) * cosine + self.alpha)
    return tf.where(step < self.warmup, rising, falling)

  def get_config(self):
    return {}


class Trainer:
  """The optimizer and the averages of the weights that it keeps."""

  def __init__(self):
    self.optimizer = tf.keras.optimizers.Adam(
      WarmupCosine(), beta_1=0.9, beta_2=0.98, epsilon=1e-8
    )
    self.averages = None

  def step(self, model, inputs, labels):
    with tf.GradientTape() as tape:
      outputs = model(inputs, training=True)
      loss = lm_loss(outputs['logits'], labels['targets'], labels['weights'])
      loss += tf.add_n(model.losses)
    variables = model.trainable_variables
    if self.averages is None:
      updates = self.optimizer.iterations
      self.averages = tf.train.ExponentialMovingAverage(0.999, num_updates=updates)
      self.averages.apply(variables)  # the shadows start at the initial values
    gradients = tape.gradient(loss, variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.25)
    self.optimizer.apply_gradients(zip(gradients, variables))
    self.averages.apply(variables)
    return loss
