"""A deep Q-network for small frames, TF1 code of 2017.

After van Hasselt et al. 2015, 'Deep Reinforcement Learning with Double Q-learning', Wang et al. 2015,
'Dueling Network Architectures', Fortunato et al. 2017, 'Noisy Networks for Exploration' (factorised
noise), Schaul et al. 2015, 'Prioritized Experience Replay' (the weights), with returns of several
steps and the soft update of Lillicrap et al. 2015.
"""

import math

import tensorflow.compat.v1 as tf

NUM_ACTIONS = 5
FILTERS = (6, 8)
HIDDEN = 12
SIGMA0 = 0.4
GAMMA = 0.9
TAU = 0.05
CLIP = 0.2
ILLEGAL = -1e9


def _noise(size):
  eps = tf.random_normal([size])
  return tf.sign(eps) * tf.sqrt(tf.abs(eps))


def noisy_dense(net, size, name, training, trainable):
  with tf.variable_scope(name):
    fan_in = int(net.shape[1])
    bound = 1.0 / math.sqrt(fan_in)
    mu_init = tf.random_uniform_initializer(-bound, bound)
    sigma_init = tf.constant_initializer(SIGMA0 * bound)
    w = tf.get_variable('w', [fan_in, size], initializer=mu_init, trainable=trainable)
    b = tf.get_variable('b', [size], initializer=mu_init, trainable=trainable)
    w_sigma = tf.get_variable('w_sigma', [fan_in, size], initializer=sigma_init, trainable=trainable)
    b_sigma = tf.get_variable('b_sigma', [size], initializer=sigma_init, trainable=trainable)
    if training:
      rows, columns = _noise(fan_in), _noise(size)
      w = w + w_sigma * tf.expand_dims(rows, 1) * tf.expand_dims(columns, 0)
      b = b + b_sigma * columns
    return tf.matmul(net, w) + b


def scale_gradient(net, scale):
  return (1.0 - scale) * tf.stop_gradient(net) + scale * net


def q_network(frames, scope, training, trainable=True, reuse=None):
  init = tf.variance_scaling_initializer(2.0, 'fan_in', 'uniform')
  with tf.variable_scope(scope, reuse=reuse):
    net = tf.cast(frames, tf.float32) / 255.0
    net = tf.layers.conv2d(
        net, FILTERS[0], 4, strides=2, padding='same', activation=tf.nn.relu,
        kernel_initializer=init, trainable=trainable, name='conv1')
    net = tf.layers.conv2d(
        net, FILTERS[1], 3, activation=tf.nn.relu,
        kernel_initializer=init, trainable=trainable, name='conv2')
    # both streams send a gradient back
    net = scale_gradient(tf.layers.flatten(net), 1.0 / math.sqrt(2.0))
    value = tf.nn.relu(noisy_dense(net, HIDDEN, 'value_hidden', training, trainable))
    value = noisy_dense(value, 1, 'value', training, trainable)
    advantage = tf.nn.relu(noisy_dense(net, HIDDEN, 'advantage_hidden', training, trainable))
    advantage = noisy_dense(advantage, NUM_ACTIONS, 'advantage', training, trainable)
    return value + advantage - tf.reduce_mean(advantage, 1, keepdims=True)


def double_dqn(inputs, training):
  q = q_network(inputs['state'], 'online', training)
  next_q = q_network(inputs['next_state'], 'online', training, reuse=True)
  next_target = q_network(inputs['next_state'], 'target', training, trainable=False)
  outputs = {'q': q, 'next_q': next_q, 'next_target': next_target}
  if not training:
    outputs['action'] = tf.argmax(q, 1)
  return outputs


def huber(x, delta=1.0):
  size = tf.abs(x)
  return tf.where(size <= delta, 0.5 * tf.square(x), delta * (size - 0.5 * delta))


def targets(outputs, labels):
  """The discounted rewards until the episode ends, and what follows them."""
  rewards = tf.clip_by_value(labels['rewards'], -1.0, 1.0)
  goes_on = 1.0 - tf.cast(labels['dones'], tf.float32)
  steps = int(rewards.shape[1])
  discounts = tf.constant([GAMMA ** i for i in range(steps)])
  returns = tf.reduce_sum(rewards * discounts * tf.cumprod(goes_on, 1, exclusive=True), 1)
  legal = labels['next_legal']
  scores = tf.where(legal, outputs['next_q'], tf.fill(tf.shape(legal), ILLEGAL))
  best = tf.one_hot(tf.argmax(scores, 1), NUM_ACTIONS)
  bootstrap = tf.reduce_sum(best * outputs['next_target'], 1)
  return tf.stop_gradient(returns + GAMMA ** steps * tf.reduce_prod(goes_on, 1) * bootstrap)


def dqn_loss(outputs, labels):
  chosen = tf.reduce_sum(outputs['q'] * tf.one_hot(labels['action'], NUM_ACTIONS), 1)
  td_error = chosen - targets(outputs, labels)
  return tf.reduce_mean(labels['weights'] * huber(td_error))


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.polynomial_decay(0.01, step, 6, 0.001)
  optimizer = tf.train.RMSPropOptimizer(rate, decay=0.95, momentum=0.6, epsilon=0.01, centered=True)
  online = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, 'online')
  target = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, 'target')
  gradients = optimizer.compute_gradients(loss, var_list=online)
  clipped = [(tf.clip_by_norm(g, CLIP), v) for g, v in gradients if g is not None]
  train = optimizer.apply_gradients(clipped, global_step=step)
  with tf.control_dependencies([train]):
    pairs = zip(sorted(online, key=lambda v: v.name), sorted(target, key=lambda v: v.name))
    return tf.group(*[
        t.assign(TAU * o.read_value() + (1.0 - TAU) * t.read_value()) for o, t in pairs])
