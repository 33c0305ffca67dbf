"""GRU-D on irregular clinical series, with attention over the states.

The cell is that of Che, Purushotham, Cho, Sontag and Liu, "Recurrent Neural Networks for Multivariate Time Series with
Missing Values" (arXiv:1606.01865), section 2.3: trained decays of the last observation and of the state. Dropout of the
state is that of Gal and Ghahramani (one mask for a sequence). The states are pooled by the attention of Yang et al. (2016).
"""

import tensorflow.compat.v1 as tf

FEATURE_MEANS = [0.4, -0.3, 1.2, 0.1]  # of the training set, after scaling
UNITS = 6
ATTENTION_UNITS = 5
STATE_DROPOUT = 0.3
OUTPUT_DROPOUT = 0.5
BPTT_STEPS = 3
L2 = 1e-2
POSITIVE_WEIGHT = 3.0


def _l2(weights):
  return L2 * tf.nn.l2_loss(weights)


def _cell(x, x_last, observed, elapsed, h, keep, means):
  """One step of GRU-D; returns the new state."""
  num_features = x.shape[-1].value if hasattr(x.shape[-1], 'value') else int(x.shape[-1])
  with tf.variable_scope('cell', reuse=tf.AUTO_REUSE):
    # Each feature decays on its own (a diagonal matrix), the state by all of them.
    w_x = tf.get_variable('input_decay/weights', [num_features])
    b_x = tf.get_variable('input_decay/biases', [num_features], initializer=tf.zeros_initializer())
    w_h = tf.get_variable('state_decay/weights', [num_features, UNITS])
    b_h = tf.get_variable('state_decay/biases', [UNITS], initializer=tf.zeros_initializer())
    gamma_x = tf.exp(-tf.nn.relu(elapsed * w_x + b_x))
    gamma_h = tf.exp(-tf.nn.relu(tf.matmul(elapsed, w_h) + b_h))

    x_hat = observed * x + (1.0 - observed) * (gamma_x * x_last + (1.0 - gamma_x) * means)
    h = gamma_h * h

    w_g = tf.get_variable('gates/weights', [2 * num_features + UNITS, 2 * UNITS])
    b_g = tf.get_variable('gates/biases', [2 * UNITS], initializer=tf.constant_initializer(1.0))
    gates = tf.sigmoid(tf.matmul(tf.concat([x_hat, h * keep, observed], 1), w_g) + b_g)
    r, z = tf.split(gates, 2, axis=1)

    w_c = tf.get_variable('candidate/weights', [2 * num_features + UNITS, UNITS])
    b_c = tf.get_variable('candidate/biases', [UNITS], initializer=tf.zeros_initializer())
    candidate = tf.tanh(tf.matmul(tf.concat([x_hat, r * (h * keep), observed], 1), w_c) + b_c)
    return (1.0 - z) * h + z * candidate


def gru_d(features, observed, elapsed, lengths, num_tasks, is_training):
  """Returns a dictionary of logits [batch, tasks], attention [batch, steps] and the last state.

  features, observed (0 or 1), elapsed (hours since the last observation): [batch, steps, features]; lengths: [batch].
  """
  steps = int(features.shape[1])
  with tf.variable_scope('gru_d', initializer=tf.random_uniform_initializer(-0.1, 0.1)):
    batch = tf.shape(features)[0]
    means = tf.constant(FEATURE_MEANS)
    h = tf.zeros([batch, UNITS])
    x_last = tf.zeros_like(features[:, 0]) + means
    keep = tf.ones([batch, UNITS])
    if is_training:
      keep = tf.nn.dropout(keep, rate=STATE_DROPOUT)  # one mask for all steps

    states = []
    for t in range(steps):
      if t > 0 and t % BPTT_STEPS == 0:
        h = tf.stop_gradient(h)  # truncated backpropagation
      x, m = features[:, t], observed[:, t]
      new_h = _cell(x, x_last, m, elapsed[:, t], h, keep, means)
      x_last = m * x + (1.0 - m) * x_last
      alive = tf.expand_dims(tf.cast(t < lengths, tf.float32), 1)
      h = alive * new_h + (1.0 - alive) * h
      states.append(h)
    states = tf.stack(states, axis=1)

    with tf.variable_scope('attention'):
      w = tf.get_variable('weights', [UNITS, ATTENTION_UNITS], regularizer=_l2)
      b = tf.get_variable('biases', [ATTENTION_UNITS], initializer=tf.zeros_initializer())
      v = tf.get_variable('query', [ATTENTION_UNITS])
      keys = tf.tanh(tf.tensordot(states, w, [[2], [0]]) + b)
      scores = tf.reduce_sum(keys * v, -1)
      valid = tf.sequence_mask(lengths, steps, dtype=tf.float32)
      attention = tf.nn.softmax(scores - 1e9 * (1.0 - valid))
      context = tf.reduce_sum(tf.expand_dims(attention, -1) * states, 1)

    with tf.variable_scope('head'):
      net = tf.concat([context, h], 1)
      if is_training:
        net = tf.nn.dropout(net, rate=OUTPUT_DROPOUT)
      w = tf.get_variable('weights', [2 * UNITS, num_tasks], regularizer=_l2)
      b = tf.get_variable('biases', [num_tasks], initializer=tf.zeros_initializer())
      logits = tf.matmul(net, w) + b
  return {'logits': logits, 'attention': attention, 'state': h}


def loss(logits, labels):
  """Weighted cross-entropy, averaged over the known labels; a label of -1 is unknown."""
  known = tf.cast(labels >= 0.0, tf.float32)
  targets = tf.maximum(labels, 0.0)
  each = tf.nn.weighted_cross_entropy_with_logits(targets, logits, pos_weight=POSITIVE_WEIGHT)
  return tf.reduce_sum(known * each) / tf.maximum(tf.reduce_sum(known), 1.0)


def train_op(total_loss, learning_rate=0.01, decay_steps=2, decay_rate=0.5, clip_norm=0.2):
  """Adam, a staircase schedule, and gradients clipped by their global norm."""
  global_step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(learning_rate, global_step, decay_steps, decay_rate, staircase=True)
  optimizer = tf.train.AdamOptimizer(rate, beta1=0.9, beta2=0.99)
  variables = tf.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf.gradients(total_loss, variables), clip_norm)
  return optimizer.apply_gradients(zip(gradients, variables), global_step=global_step)
