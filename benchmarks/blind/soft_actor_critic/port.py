"""The right port of the soft actor-critic: under the shim, with a trainer in eager style."""

import math

import tensorflow as tf

v1 = tf.compat.v1
ACT, GAMMA, ALPHA, POLYAK, EMA = 2, 0.99, 0.2, 0.995, 0.99
LOG_STD_MIN, LOG_STD_MAX, LIMIT = -20.0, 2.0, 1.5


def dense(x, units, name, activation=tf.identity):
  with v1.variable_scope(name):
    kernel = v1.get_variable('w', [x.shape[-1], units], initializer=v1.glorot_normal_initializer())
    bias = v1.get_variable('b', [units], initializer=v1.zeros_initializer())
    return activation(x @ kernel + bias)


def value_net(x, hidden, name):
  with v1.variable_scope(name, reuse=v1.AUTO_REUSE):
    for i, units in enumerate(hidden):
      x = dense(x, units, f'fc{i}', tf.nn.relu)
    return dense(x, 1, 'out')[:, 0]


class ActorCritic(tf.keras.layers.Layer):
  def policy(self, obs):
    with v1.variable_scope('pi'):
      net = dense(dense(obs, 10, 'fc0', tf.nn.relu), 10, 'fc1', tf.nn.relu)
      mu = dense(net, ACT, 'mu')
      log_std = dense(net, ACT, 'log_std', tf.tanh)
      log_std = LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (log_std + 1)
      std = tf.exp(log_std)
      raw = mu + std * tf.random.normal(tf.shape(mu))
      z = (raw - mu) / (std + 1e-8)
      logp = -0.5 * tf.reduce_sum(z**2 + 2 * log_std + math.log(2 * math.pi), -1)
      action = tf.tanh(raw)
      logp -= tf.reduce_sum(tf.math.log(tf.clip_by_value(1 - action**2, 0.0, 1.0) + 1e-6), -1)
      return tf.tanh(mu) * LIMIT, action * LIMIT, logp

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    obs, act, obs2 = inputs['obs'], inputs['act'], inputs['obs2']
    with v1.variable_scope('main'):
      mu, pi, logp = self.policy(obs)
      taken, chosen = tf.concat([obs, act], -1), tf.concat([obs, pi], -1)
      q1, q1_pi = value_net(taken, [10, 10], 'q1'), value_net(chosen, [10, 10], 'q1')
      q2, q2_pi = value_net(taken, [10, 10], 'q2'), value_net(chosen, [10, 10], 'q2')
      v = value_net(obs, [10], 'v')
    with v1.variable_scope('target'):
      v_targ = value_net(obs2, [10], 'v')
    return {
      'mu': mu,
      'pi': pi,
      'logp': logp,
      'q1': q1,
      'q1_pi': q1_pi,
      'q2': q2,
      'q2_pi': q2_pi,
      'v': v,
      'v_targ': v_targ,
    }


def losses(out, batch):
  q_target = tf.stop_gradient(batch['rew'] + GAMMA * (1 - batch['done']) * out['v_targ'])
  v_target = tf.stop_gradient(tf.minimum(out['q1_pi'], out['q2_pi']) - ALPHA * out['logp'])
  pi_loss = tf.reduce_mean(ALPHA * out['logp'] - out['q1_pi'])
  value_loss = 0.5 * sum(
    tf.reduce_mean(tf.square(target - value))
    for target, value in ((q_target, out['q1']), (q_target, out['q2']), (v_target, out['v']))
  )
  return {'pi_loss': pi_loss, 'value_loss': value_loss}


class Trainer:
  def __init__(self):
    self.pi_optimizer = tf.keras.optimizers.Adam(1e-3, epsilon=1e-8)
    self.value_optimizer = tf.keras.optimizers.Adam(3e-3, epsilon=1e-8)
    self.averages = None

  def step(self, agent, inputs, batch):
    with tf.GradientTape(persistent=True) as tape:
      loss = losses(agent(inputs), batch)
    of = lambda scope: [w for w in agent.trainable_variables if w.name.startswith(scope + '/')]
    pi, critics = of('main/pi'), of('main/q1') + of('main/q2') + of('main/v')
    if self.averages is None:
      self.averages = tf.train.ExponentialMovingAverage(EMA)
      self.averages.apply(pi)
    pi_grads = tape.gradient(loss['pi_loss'], pi)
    value_grads = tape.gradient(loss['value_loss'], critics)
    self.pi_optimizer.apply_gradients(zip(pi_grads, pi))
    self.value_optimizer.apply_gradients(zip(value_grads, critics))
    for main, target in zip(of('main/v'), of('target/v')):
      target.assign(POLYAK * target + (1 - POLYAK) * main)
    self.averages.apply(pi)
    return loss
