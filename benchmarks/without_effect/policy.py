"""A Gaussian policy and its value: tf.layers in TF1, layers of Keras 3 in the port."""

import keras
import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1


def tf1_policy(inputs):
  state = tf.clip_by_value(inputs['state'] / tf.maximum(inputs['spread'], 1e-4), -10.0, 10.0)
  net = v1.layers.dense(state, 8, tf.nn.elu, name='hidden')
  mean = v1.layers.dense(net, 2, name='mean')
  log_std = tf.clip_by_value(v1.layers.dense(net, 2, name='log_std'), -20.0, 20.0)
  gate = tf.clip_by_value(inputs['throttle'], -1.0, 1.0)
  value = v1.layers.dense(net, 1, name='value')
  gain = tf.nn.leaky_relu(inputs['gain'], 0.2)
  return {'mean': mean * gate, 'log_std': log_std, 'value': value[:, 0] * gain}


class Policy(keras.Model):
  def __init__(self):
    super().__init__()
    self.hidden = keras.layers.Dense(8, 'elu', name='hidden')
    self.mean = keras.layers.Dense(2, name='mean')
    self.log_std = keras.layers.Dense(2, name='log_std')
    self.value = keras.layers.Dense(1, name='value')
    self.gain = keras.layers.LeakyReLU(negative_slope=0.2)

  def call(self, inputs):
    spread = keras.ops.maximum(inputs['spread'], 1e-4)
    state = keras.ops.clip(inputs['state'] / spread, -10.0, 10.0)
    net = self.hidden(state)
    log_std = keras.ops.clip(self.log_std(net), -20.0, 20.0)
    gate = keras.ops.hard_tanh(inputs['throttle'])
    value = self.value(net)[:, 0] * self.gain(inputs['gain'])
    return {'mean': self.mean(net) * gate, 'log_std': log_std, 'value': value}


class ModelCase(tf2verify.EquivalenceCase):
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    return tf1_policy(inputs)

  def make_tf2_layer(self):
    return Policy()

  def make_inputs(self):
    random = np.random.RandomState(0)
    return {
      'state': tf2verify.normal_inputs((6, 4)),
      'spread': random.uniform(0.5, 2.0, (4,)).astype(np.float32),
      'throttle': random.uniform(-0.9, 0.9, (6, 2)).astype(np.float32),
      'gain': random.uniform(0.5, 1.5, (6,)).astype(np.float32),
    }

  def make_labels(self):
    random = np.random.RandomState(1)
    return {
      'returns': random.normal(size=6).astype(np.float32),
      'ratio': random.uniform(0.9, 1.1, 6).astype(np.float32),
      'advantage': random.normal(size=6).astype(np.float32),
    }

  def tf1_loss(self, outputs, labels):
    ratio, advantage = labels['ratio'], labels['advantage']
    clipped = tf.clip_by_value(ratio, 0.8, 1.2)
    gain = tf.minimum(ratio * advantage, clipped * advantage)
    gain += 0.01 * tf.reduce_sum(outputs['mean'], 1)
    error = tf.clip_by_value(outputs['value'] - labels['returns'], -500.0, 500.0)
    entropy = tf.reduce_mean(tf.reduce_sum(outputs['log_std'], 1))
    return tf.reduce_mean(tf.square(error)) - tf.reduce_mean(gain) - 0.01 * entropy

  def tf2_loss(self, outputs, labels):
    ratio, advantage = labels['ratio'], labels['advantage']
    clipped = tf.clip_by_value(ratio, 0.8, 1.2)
    gain = tf.minimum(ratio * advantage, clipped * advantage)
    gain += 0.01 * tf.reduce_sum(outputs['mean'], 1)
    error = tf.clip_by_value(outputs['value'] - labels['returns'], -500.0, 500.0)
    entropy = tf.reduce_mean(tf.reduce_sum(outputs['log_std'], 1))
    return tf.reduce_mean(tf.square(error)) - tf.reduce_mean(gain) - 0.01 * entropy

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    warm = tf.minimum(tf.cast(step + 1, tf.float32) / 100.0, 1.0)
    optimizer = v1.train.GradientDescentOptimizer(0.1 * warm)
    grads, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    norm = tf.linalg.global_norm(grads)
    factor = tf.where(norm < 1e5, 1.0, 0.0)
    pairs = [(g * factor, v) for g, v in zip(grads, variables, strict=True)]
    return optimizer.apply_gradients(pairs, step)

  def make_tf2_optimizer(self):
    return {'step': tf.Variable(0, dtype=tf.int64)}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs), labels)
    weights = layer.trainable_variables
    grads = tape.gradient(loss, [w.value for w in weights])
    norm = tf.linalg.global_norm(grads)
    factor = tf.where(norm < 1e5, 1.0, 0.0)
    warm = tf.minimum(tf.cast(optimizer['step'] + 1, tf.float32) / 100.0, 1.0)
    for grad, weight in zip(grads, weights, strict=True):
      weight.assign(weight.value - 0.1 * warm * factor * grad)
    optimizer['step'].assign_add(1)
    return loss
