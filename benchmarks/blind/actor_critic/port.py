"""The actor-critic in native layers of Keras 2, with a trainer in eager style."""

import tensorflow as tf

layers = tf.keras.layers
ACTIONS, GAMMA, ENTROPY, VALUE = 4, 0.99, 0.01, 0.5


class ActorCritic(tf.keras.Model):
  """Policy and value of frames, last actions and last rewards."""

  def __init__(self):
    super().__init__(name='actor_critic')
    wide = tf.keras.initializers.Orthogonal
    self.conv1 = layers.Conv2D(
      6, 4, strides=2, activation='relu', kernel_initializer=wide(2.0**0.5), name='c1'
    )
    self.conv2 = layers.Conv2D(
      8, 3, 2, padding='same', activation='relu', kernel_initializer=wide(2.0**0.5), name='c2'
    )
    self.flatten = layers.Flatten()
    self.hidden = layers.Dense(
      16, activation='relu', kernel_initializer=wide(2.0**0.5), name='fc1'
    )
    self.policy = layers.Dense(ACTIONS, kernel_initializer=wide(0.01), name='pi')
    self.value = layers.Dense(1, name='v')

  def call(self, inputs, training=False):
    frames = inputs['frames']
    steps, games = tf.shape(frames)[0], tf.shape(frames)[1]
    net = tf.reshape(frames, tf.concat([[-1], tf.shape(frames)[2:]], 0))
    net = tf.ensure_shape(net, [None, *frames.shape[2:]])
    net = tf.transpose(net, [0, 2, 3, 1])
    net = tf.cast(net, tf.float32) / 255.0
    net = self.conv1(net)
    net = self.conv2(net)
    net = self.flatten(net)
    last_action = tf.one_hot(tf.reshape(inputs['last_action'], [-1]), ACTIONS)
    last_reward = tf.reshape(inputs['last_reward'], [-1, 1])
    last_reward = tf.clip_by_value(last_reward, -1.0, 1.0)
    net = tf.concat([net, last_action, last_reward], axis=-1)
    net = self.hidden(net)
    logits = self.policy(net)
    values = tf.squeeze(self.value(net), -1)
    scores = logits
    if training:
      noise = tf.random.uniform(tf.shape(logits))
      scores = logits - tf.math.log(-tf.math.log(noise))
    actions = tf.argmax(scores, axis=-1)
    return {
      'logits': tf.reshape(logits, [steps, games, ACTIONS]),
      'values': tf.reshape(values, [steps, games]),
      'actions': tf.reshape(actions, [steps, games]),
    }


def n_step_returns(rewards, dones, bootstrap):
  """Returns of every step, from the last to the first."""
  rewards = tf.clip_by_value(rewards, -1.0, 1.0)
  result, following = [], bootstrap
  for t in reversed(range(rewards.shape[0])):
    following = rewards[t] + GAMMA * (1.0 - dones[t]) * following
    result.insert(0, following)
  return tf.stack(result)


def actor_critic_loss(outputs, labels):
  logits = outputs['logits'][:-1]
  values = outputs['values'][:-1]
  bootstrap = outputs['values'][-1]
  target = tf.stop_gradient(n_step_returns(labels['rewards'], labels['dones'], bootstrap))
  advantage = target - values
  log_p = tf.nn.log_softmax(logits)
  chosen = tf.gather(log_p, labels['actions'], batch_dims=2)
  policy_loss = -tf.reduce_mean(tf.stop_gradient(advantage) * chosen)
  value_loss = tf.reduce_mean(tf.square(advantage))
  p = tf.exp(log_p)
  entropy = -tf.reduce_mean(tf.reduce_sum(p * log_p, axis=-1))
  return policy_loss + VALUE * value_loss - ENTROPY * entropy


class RMSProp(tf.keras.optimizers.RMSprop):
  """That of TF1: the mean of the squares starts at one."""

  def build(self, variables):
    first = not getattr(self, '_built', False)  # it is called at every step
    super().build(variables)
    for mean_square in self._velocities if first else ():
      mean_square.assign(tf.ones_like(mean_square))


class Trainer(tf.Module):
  """An optimizer and averages of the weights."""

  def __init__(self):
    super().__init__()
    rate = tf.keras.optimizers.schedules.PolynomialDecay(7e-3, 3, end_learning_rate=0.0)
    self.optimizer = RMSProp(rate, rho=0.99, epsilon=1e-5)
    self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name='step')
    self.ema = tf.train.ExponentialMovingAverage(0.99, num_updates=self.step)

  def train_step(self, model, inputs, labels):
    """Takes a step and returns the loss."""
    with tf.GradientTape() as tape:
      loss = actor_critic_loss(model(inputs, training=True), labels)
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    if self.step == 0:
      self.ema.apply(variables)  # the shadows start at the initial values
    self.optimizer.apply_gradients(zip(gradients, variables))
    self.step.assign_add(1)
    self.ema.apply(variables)
    return loss
