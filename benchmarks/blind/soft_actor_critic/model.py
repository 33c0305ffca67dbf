"""Soft actor-critic, TF1 code of 2018 in the style of Spinning Up, with `tf.get_variable`.

After Haarnoja, Zhou, Abbeel, Levine 2018, 'Soft Actor-Critic: Off-Policy Maximum Entropy Deep
Reinforcement Learning with a Stochastic Actor': a squashed Gaussian policy, two Q-networks, a value
and its target, two optimizers in a row, and averages of the policy.
"""

import numpy as np
import tensorflow.compat.v1 as tf

ACT, GAMMA, ALPHA, POLYAK, EMA = 2, 0.99, 0.2, 0.995, 0.99
LOG_STD_MIN, LOG_STD_MAX, LIMIT = -20, 2, 1.5


def fc(x, units, name, activation=None):
  with tf.variable_scope(name):
    w = tf.get_variable('w', [int(x.shape[-1]), units], initializer=tf.glorot_normal_initializer())
    b = tf.get_variable('b', [units], initializer=tf.zeros_initializer())
    x = tf.matmul(x, w) + b
    return activation(x) if activation else x


def mlp(x, sizes, name):
  with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
    for i, size in enumerate(sizes[:-1]):
      x = fc(x, size, 'fc%d' % i, tf.nn.relu)
    return fc(x, sizes[-1], 'out')


def gaussian_likelihood(x, mu, log_std):
  pre_sum = -0.5 * (((x - mu) / (tf.exp(log_std) + 1e-8)) ** 2 + 2 * log_std + np.log(2 * np.pi))
  return tf.reduce_sum(pre_sum, axis=1)


def policy(obs):
  with tf.variable_scope('pi'):
    net = fc(fc(obs, 10, 'fc0', tf.nn.relu), 10, 'fc1', tf.nn.relu)
    mu = fc(net, ACT, 'mu')
    log_std = fc(net, ACT, 'log_std', tf.tanh)
    log_std = LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (log_std + 1)
    pi = mu + tf.random_normal(tf.shape(mu)) * tf.exp(log_std)
    logp = gaussian_likelihood(pi, mu, log_std)
    mu, pi = tf.tanh(mu), tf.tanh(pi)
    logp -= tf.reduce_sum(tf.log(tf.clip_by_value(1 - pi**2, 0.0, 1.0) + 1e-6), axis=1)
    return mu, pi, logp


def actor_critic(inputs):
  obs, act, obs2 = inputs['obs'], inputs['act'], inputs['obs2']
  critic = lambda a, name: tf.squeeze(mlp(tf.concat([obs, a], -1), [10, 10, 1], name), 1)
  with tf.variable_scope('main'):
    mu, pi, logp = policy(obs)
    mu, pi = mu * LIMIT, pi * LIMIT
    out = {
      'mu': mu,
      'pi': pi,
      'logp': logp,
      'q1': critic(act, 'q1'),
      'q1_pi': critic(pi, 'q1'),
      'q2': critic(act, 'q2'),
      'q2_pi': critic(pi, 'q2'),
      'v': tf.squeeze(mlp(obs, [10, 1], 'v'), 1),
    }
  with tf.variable_scope('target'):
    out['v_targ'] = tf.squeeze(mlp(obs2, [10, 1], 'v'), 1)
  return out


def losses(o, batch):
  q_backup = tf.stop_gradient(batch['rew'] + GAMMA * (1 - batch['done']) * o['v_targ'])
  v_backup = tf.stop_gradient(tf.minimum(o['q1_pi'], o['q2_pi']) - ALPHA * o['logp'])
  pi_loss = tf.reduce_mean(ALPHA * o['logp'] - o['q1_pi'])
  q1_loss = 0.5 * tf.reduce_mean((q_backup - o['q1']) ** 2)
  q2_loss = 0.5 * tf.reduce_mean((q_backup - o['q2']) ** 2)
  v_loss = 0.5 * tf.reduce_mean((v_backup - o['v']) ** 2)
  return {'pi_loss': pi_loss, 'value_loss': q1_loss + q2_loss + v_loss}


def get_vars(scope):
  return [v for v in tf.trainable_variables() if v.name.startswith(scope + '/')]


def train_op(loss):
  pi_op = tf.train.AdamOptimizer(1e-3).minimize(loss['pi_loss'], var_list=get_vars('main/pi'))
  value_vars = get_vars('main/q1') + get_vars('main/q2') + get_vars('main/v')
  step = tf.train.get_or_create_global_step()
  with tf.control_dependencies([pi_op]):
    value_op = tf.train.AdamOptimizer(3e-3).minimize(loss['value_loss'], step, var_list=value_vars)
  with tf.control_dependencies([value_op]):
    target = [
      tf.assign(t, POLYAK * t + (1 - POLYAK) * m)
      for m, t in zip(get_vars('main/v'), get_vars('target/v'))
    ]
    averages = tf.train.ExponentialMovingAverage(EMA).apply(get_vars('main/pi'))
  return tf.group(averages, *target)
