"""A probabilistic forecaster of sales, TF1 code: counts of the next days, given those of the last ones.

After Salinas et al. 2017, 'DeepAR: Probabilistic Forecasting with Autoregressive Recurrent
Networks' (scales, the negative binomial, the age of a series), with the encoder and decoder of Wen
et al. 2017, 'A Multi-Horizon Quantile Recurrent Forecaster', the cell of Zilly et al. 2016,
'Recurrent Highway Networks', attention of Luong et al. 2015 and the dropout of Gal and Ghahramani 2015.
"""

import collections

import tensorflow.compat.v1 as tf

HParams = collections.namedtuple('HParams', [
  'hidden', 'decoder_units', 'depth', 'stores', 'items', 'store_dim', 'item_dim',
  'input_keep_prob', 'state_keep_prob', 'carry_bias', 'l2', 'clip', 'warmup', 'init_scale',
])

DEFAULT = HParams(
  hidden=7, decoder_units=9, depth=2, stores=5, items=24, store_dim=3, item_dim=4,
  input_keep_prob=0.9, state_keep_prob=0.75, carry_bias=-2.0, l2=1e-3, clip=0.5, warmup=3,
  init_scale=0.3,
)
DAYS = 7


def layer_norm(net, name, epsilon=1e-6):
  with tf.variable_scope(name):
    size = int(net.shape[-1])
    gamma = tf.get_variable('gamma', [size], initializer=tf.ones_initializer())
    beta = tf.get_variable('beta', [size], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(net, [-1], keep_dims=True)
    return (net - mean) * tf.rsqrt(variance + epsilon) * gamma + beta


def series_scale(counts, mask):
  """One more than the mean of the history, [batch, 1]."""
  total = tf.reduce_sum(counts * mask, 1, keepdims=True)
  return 1.0 + total / tf.maximum(tf.reduce_sum(mask, 1, keepdims=True), 1.0)


def log10(x):
  return tf.log(x) / tf.log(10.0)


def calendar(days, price, age):
  """What is known of a day in advance."""
  age = log10(2.0 + tf.cast(age, tf.float32))
  return tf.concat([tf.one_hot(days, DAYS), tf.stack([price, age], 2)], 2)


def static_features(inputs, hp):
  with tf.variable_scope('static'):
    stores = tf.get_variable(
      'store_embedding', [hp.stores, hp.store_dim], initializer=tf.random_normal_initializer(stddev=0.4))
    items = tf.get_variable(
      'item_embedding', [hp.items, hp.item_dim], initializer=tf.random_normal_initializer(stddev=0.4))
    net = tf.concat([
      tf.nn.embedding_lookup(stores, inputs['store']),
      tf.nn.embedding_lookup(items, inputs['item']),
      inputs['attributes'],
    ], 1)
    return tf.layers.dense(net, hp.hidden, activation=tf.nn.elu, name='mix')


def encode(net, lengths, static, hp):
  """Returns the states of all days, and where the decoder begins."""
  initializer = tf.random_uniform_initializer(-hp.init_scale, hp.init_scale)

  def cell():
    return tf.nn.rnn_cell.LSTMCell(hp.hidden, use_peepholes=True, initializer=initializer)

  with tf.variable_scope('encoder'):
    (forward, backward), (last_fw, last_bw) = tf.nn.bidirectional_dynamic_rnn(
      cell(), cell(), net, sequence_length=lengths, dtype=tf.float32)
    states = layer_norm(tf.concat([forward, backward], 2), 'norm')
    bridge = tf.concat([last_fw.h, last_bw.h, static], 1)
    initial = tf.layers.dense(bridge, hp.decoder_units, activation=tf.tanh, name='bridge')
  return states, initial


class HighwayCell(object):
  """Recurrent highway: `depth` small steps within a step, the input enters in the first one."""

  def __init__(self, input_size, hp):
    self._layers = []
    for i in range(hp.depth):
      with tf.variable_scope('highway_%d' % i):
        rows = hp.decoder_units + (input_size if i == 0 else 0)
        self._layers.append((
          tf.get_variable('w_h', [rows, hp.decoder_units]),
          tf.get_variable('b_h', [hp.decoder_units], initializer=tf.zeros_initializer()),
          tf.get_variable('w_t', [rows, hp.decoder_units]),
          tf.get_variable(
            'b_t', [hp.decoder_units], initializer=tf.constant_initializer(hp.carry_bias)),
        ))

  def __call__(self, net, state, noise):
    for i, (w_h, b_h, w_t, b_t) in enumerate(self._layers):
      both = state * noise
      if i == 0:
        both = tf.concat([net, both], 1)
      candidate = tf.tanh(tf.matmul(both, w_h) + b_h)
      transform = tf.sigmoid(tf.matmul(both, w_t) + b_t)
      state = candidate * transform + state * (1.0 - transform)
    return state


def attend(states, query, mask, kernel):
  energy = tf.reduce_sum(states * tf.matmul(query, kernel)[:, None], 2)
  energy = tf.where(mask > 0, energy, tf.fill(tf.shape(energy), -1e9))
  return tf.reduce_sum(states * tf.nn.softmax(energy)[:, :, None], 1)


def decode(states, initial, mask, future, static, lag, scale, training, hp):
  """One day after the other; a day sees the mean of the day before."""
  batch, horizon = tf.shape(future)[0], int(future.shape[1])
  width = int(states.shape[2])
  with tf.variable_scope('decoder', initializer=tf.variance_scaling_initializer(1.0, 'fan_in', 'uniform')):
    kernel = tf.get_variable('attention', [hp.decoder_units, width])
    size = int(future.shape[2]) + hp.hidden + width + 1
    cell = HighwayCell(size, hp)
    w_out = tf.get_variable('w_out', [hp.decoder_units + width, 2])
    b_out = tf.get_variable('b_out', [2], initializer=tf.constant_initializer(0.2))
    noise = tf.ones([batch, hp.decoder_units])
    if training:
      noise = tf.nn.dropout(noise, keep_prob=hp.state_keep_prob)

    future = tf.transpose(future, [1, 0, 2])

    def body(step, state, lag, mus, alphas):
      context = attend(states, state, mask, kernel)
      net = tf.concat([future[step], static, context, lag], 1)
      state = cell(net, state, noise)
      out = tf.matmul(tf.concat([state, context], 1), w_out) + b_out
      raw_mu, raw_alpha = tf.split(tf.nn.softplus(out), 2, axis=1)
      lag = tf.stop_gradient(tf.log1p(raw_mu))
      mu, alpha = raw_mu * scale, raw_alpha / tf.sqrt(scale) + 1e-4
      return (step + 1, state, lag, mus.write(step, mu[:, 0]), alphas.write(step, alpha[:, 0]))

    arrays = [tf.TensorArray(tf.float32, horizon) for _ in range(2)]
    _, _, _, mus, alphas = tf.while_loop(
      lambda step, *_: step < horizon, body, [0, initial, lag] + arrays)
    return tf.transpose(mus.stack()), tf.transpose(alphas.stack())


def forecaster(inputs, training, hp=DEFAULT):
  counts, lengths = inputs['counts'], inputs['lengths']
  steps, horizon = int(counts.shape[1]), int(inputs['future_days'].shape[1])
  mask = tf.sequence_mask(lengths, steps, dtype=tf.float32)
  with tf.variable_scope('forecaster'):
    static = static_features(inputs, hp)
    scale = series_scale(counts, mask)
    scaled = tf.log1p(counts / scale)
    age = tf.tile(tf.range(steps)[None], [tf.shape(counts)[0], 1])
    past = calendar(inputs['days'], inputs['price'], age)
    net = tf.concat([scaled[:, :, None], past, tf.tile(static[:, None], [1, steps, 1])], 2)
    if training:
      net = tf.nn.dropout(net, keep_prob=hp.input_keep_prob)
    states, initial = encode(net, lengths, static, hp)
    lag = tf.batch_gather(scaled, lengths[:, None] - 1)
    age = lengths[:, None] + tf.range(horizon)[None]
    future = calendar(inputs['future_days'], inputs['future_price'], age)
    mu, alpha = decode(states, initial, mask, future, static, lag, scale, training, hp)
  outputs = {'mu': mu, 'alpha': alpha}
  if not training:
    outputs['stddev'] = tf.sqrt(mu + alpha * tf.square(mu))
  return outputs


def negative_log_likelihood(counts, mu, alpha):
  r = 1.0 / alpha
  likelihood = tf.lgamma(counts + r) - tf.lgamma(counts + 1.0) - tf.lgamma(r)
  likelihood += r * tf.log(1.0 / (1.0 + alpha * mu))
  likelihood += counts * tf.log(alpha * mu / (1.0 + alpha * mu))
  return -likelihood


def forecaster_loss(outputs, labels):
  """The mean over days in stock; days after the sale's end count half."""
  each = negative_log_likelihood(labels['counts'], outputs['mu'], outputs['alpha'])
  weights = tf.cast(labels['in_stock'], tf.float32) * tf.where(
    labels['clearance'], tf.fill(tf.shape(each), 0.5), tf.ones_like(each))
  return tf.reduce_sum(each * weights) / tf.maximum(tf.reduce_sum(weights), 1.0)


def noam(step, hp):
  step = tf.cast(step, tf.float32) + 1.0
  return 0.2 * hp.decoder_units ** -0.5 * tf.minimum(step ** -0.5, step * hp.warmup ** -1.5)


def train_op(loss, hp=DEFAULT):
  step = tf.train.get_or_create_global_step()
  variables = tf.trainable_variables()
  kernels = [v for v in variables if v.shape.ndims == 2 and 'embedding' not in v.op.name]
  loss += hp.l2 * tf.add_n([tf.nn.l2_loss(v) for v in kernels])
  optimizer = tf.train.AdamOptimizer(noam(step, hp), beta1=0.9, beta2=0.98, epsilon=1e-9)
  gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), hp.clip)
  return optimizer.apply_gradients(zip(gradients, variables), global_step=step)
