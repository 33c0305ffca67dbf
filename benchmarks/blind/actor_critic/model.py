"""Advantage actor-critic: a convolutional network with a policy and a value.

After Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning" (2016), in the synchronous form:
rollouts of T steps of B games, n-step returns from the value behind the last step, advantages that
train the policy only, an entropy bonus, RMSProp at a rate that falls linearly to zero, gradients of
limited norm. The network also reads the last action and reward, and an average of the weights is
kept for evaluation.
"""

import tensorflow.compat.v1 as tf

ACTIONS = 4
GAMMA = 0.99
ENTROPY = 0.01
VALUE = 0.5


def network(inputs, training):
  """Takes frames (T + 1, B, C, H, W) of bytes; returns logits, values and actions."""
  frames = inputs['frames']
  steps, games = frames.shape[0], frames.shape[1]
  with tf.variable_scope('actor_critic'):
    net = tf.reshape(frames, [-1] + frames.shape.as_list()[2:])
    net = tf.transpose(tf.cast(net, tf.float32) / 255.0, [0, 2, 3, 1])
    wide = tf.orthogonal_initializer(2.0**0.5)
    net = tf.layers.conv2d(
      net, 6, 4, strides=2, activation=tf.nn.relu, kernel_initializer=wide, name='c1'
    )
    net = tf.layers.conv2d(
      net, 8, 3, strides=2, padding='same', activation=tf.nn.relu, kernel_initializer=wide,
      name='c2',
    )
    net = tf.layers.flatten(net)
    last_action = tf.one_hot(tf.reshape(inputs['last_action'], [-1]), ACTIONS)
    last_reward = tf.clip_by_value(tf.reshape(inputs['last_reward'], [-1, 1]), -1.0, 1.0)
    net = tf.concat([net, last_action, last_reward], axis=1)
    net = tf.layers.dense(net, 16, activation=tf.nn.relu, kernel_initializer=wide, name='fc1')
    logits = tf.layers.dense(
      net, ACTIONS, kernel_initializer=tf.orthogonal_initializer(0.01), name='pi'
    )
    values = tf.layers.dense(net, 1, name='v')[:, 0]
    if training:
      noise = tf.random_uniform(tf.shape(logits))
      actions = tf.argmax(logits - tf.log(-tf.log(noise)), axis=1)
    else:
      actions = tf.argmax(logits, axis=1)
    return {
      'logits': tf.reshape(logits, [steps, games, ACTIONS]),
      'values': tf.reshape(values, [steps, games]),
      'actions': tf.reshape(actions, [steps, games]),
    }


def returns(rewards, dones, bootstrap):
  """n-step returns; what comes behind the end of a game does not count."""
  rewards = tf.clip_by_value(rewards, -1.0, 1.0)
  value = bootstrap
  result = []
  for reward, done in reversed(list(zip(tf.unstack(rewards), tf.unstack(dones)))):
    value = reward + GAMMA * value * (1.0 - done)
    result.append(value)
  return tf.stack(result[::-1])


def loss(outputs, labels):
  """The policy's loss, half of the squared error of the values, less the entropy bonus."""
  logits, values = outputs['logits'][:-1], outputs['values'][:-1]
  target = tf.stop_gradient(
    returns(labels['rewards'], labels['dones'], outputs['values'][-1])
  )
  advantage = target - values
  neglogp = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels['actions'], logits=logits)
  policy = tf.reduce_mean(tf.stop_gradient(advantage) * neglogp)
  value = tf.reduce_mean(tf.square(advantage))
  shifted = logits - tf.reduce_max(logits, axis=-1, keepdims=True)
  exponents = tf.exp(shifted)
  total = tf.reduce_sum(exponents, axis=-1, keepdims=True)
  entropy = tf.reduce_mean(
    tf.reduce_sum(exponents / total * (tf.log(total) - shifted), axis=-1)
  )
  return policy + VALUE * value - ENTROPY * entropy


def train_op(total_loss):
  """RMSProp with a linear schedule; then the averages, which start faster than they go on."""
  step = tf.train.get_or_create_global_step()
  rate = tf.train.polynomial_decay(7e-3, step, 3, end_learning_rate=0.0)
  optimizer = tf.train.RMSPropOptimizer(rate, decay=0.99, epsilon=1e-5)
  variables = tf.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf.gradients(total_loss, variables), 0.5)
  update = optimizer.apply_gradients(list(zip(gradients, variables)), global_step=step)
  with tf.control_dependencies([update]):
    return tf.train.ExponentialMovingAverage(0.99, num_updates=step).apply(variables)
