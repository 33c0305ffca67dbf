"""A forecaster that scales each series by its mean; the port is a model of tf-keras."""

import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1


def tf1_forecast(inputs):
  demand, seen = inputs['demand'], inputs['seen']
  count = tf.reduce_sum(seen, 1, keepdims=True)
  mean = tf.reduce_sum(tf.abs(demand) * seen, 1, keepdims=True) / tf.maximum(count, 1.0)
  scale = tf.maximum(tf.where(count > 0.0, mean, tf.ones_like(mean)), 1e-6)
  x = tf.stack([tf.minimum(demand / scale, 50.0), seen], 2)
  with v1.variable_scope('cell'):
    kernel = v1.get_variable('kernel', [6, 4])
    bias = v1.get_variable('bias', [4])
  state = tf.zeros_like(x[:, 0, :1]) * tf.zeros([1, 4])
  for step in range(5):
    state = tf.nn.tanh(tf.matmul(tf.concat([x[:, step], state], 1), kernel) + bias)
  rate = tf.nn.softplus(v1.layers.dense(state, 1, name='rate'))
  return {'rate': tf.minimum(rate * scale, 1e5), 'scale': tf.math.log(scale + 1e-9)}


class Forecast(tf.keras.Model):
  def __init__(self):
    super().__init__()
    self.kernel = self.add_weight(name='cell/kernel', shape=[6, 4])
    self.bias = self.add_weight(name='cell/bias', shape=[4])
    self.rate = tf.keras.layers.Dense(1, 'softplus', name='rate')

  def call(self, inputs):
    demand, seen = inputs['demand'], inputs['seen']
    count = tf.reduce_sum(seen, 1, keepdims=True)
    total = tf.reduce_sum(tf.abs(demand) * seen, 1, keepdims=True)
    mean = total / tf.maximum(count, 1.0)
    scale = tf.where(count > 0.0, mean, tf.ones_like(mean))
    scale = tf.maximum(scale, 1e-6)
    share = tf.minimum(demand / scale, 50.0)
    x = tf.stack([share, seen], 2)
    state = tf.zeros([tf.shape(x)[0], 4])
    for step in range(5):
      state = tf.tanh(tf.concat([x[:, step], state], 1) @ self.kernel + self.bias)
    rate = tf.minimum(self.rate(state) * scale, 1e5)
    return {'rate': rate, 'scale': tf.math.log(scale + 1e-9)}


class ModelCase(tf2verify.EquivalenceCase):
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    return tf1_forecast(inputs)

  def make_tf2_layer(self):
    return Forecast()

  def make_inputs(self):
    random = np.random.RandomState(0)
    seen = np.ones((4, 5), np.float32)
    seen[2, :2] = 0
    return {'demand': random.poisson(3, (4, 5)).astype(np.float32) + 1, 'seen': seen}

  def make_labels(self):
    return np.array([[2], [4], [3], [1]], np.float32)

  def tf1_loss(self, outputs, labels):
    rate = tf.maximum(outputs['rate'], 1e-3)
    return tf.reduce_mean(rate - labels * tf.math.log(rate))

  def tf2_loss(self, outputs, labels):
    rate = tf.maximum(outputs['rate'], 1e-3)
    return tf.reduce_mean(rate - labels * tf.math.log(rate))

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    with tf.control_dependencies([train]):
      return [w.assign(tf.clip_by_norm(w, 40.0)) for w in v1.trainable_variables()]

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.01)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs), labels)
    weights = layer.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    for weight in weights:
      weight.assign(tf.clip_by_norm(weight, 40.0))
    return loss
