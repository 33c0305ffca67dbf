"""A sentence encoder with masked attention; the port has layers of tf-keras."""

import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1
WIDTH = 8


def layer_norm(x, name):
  with v1.variable_scope(name):
    beta = v1.get_variable('beta', [WIDTH], initializer=v1.zeros_initializer())
    gamma = v1.get_variable('gamma', [WIDTH], initializer=v1.ones_initializer())
  mean, variance = tf.nn.moments(x, [-1], keepdims=True)
  return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)


def tf1_encoder(inputs):
  with v1.variable_scope('encoder'):
    table = v1.get_variable('words', [30, WIDTH])
    kinds = v1.get_variable('kinds', [4, WIDTH])
    places = v1.get_variable('places', [64, WIDTH])
    place = tf.minimum(tf.range(tf.shape(inputs['ids'])[1]), 63)
    x = tf.gather(table, inputs['ids']) + tf.gather(places, place)
    x += tf.gather(kinds, tf.clip_by_value(inputs['kinds'], 0, 3))
    x = layer_norm(x, 'norm')
    query, key, value = (v1.layers.dense(x, WIDTH, name=n) for n in ('query', 'key', 'value'))
    scores = tf.matmul(query, key, transpose_b=True) / WIDTH**0.5
    scores += (1.0 - inputs['mask'][:, None, :]) * -1e9
    x = tf.matmul(tf.nn.softmax(scores), value)
    total = tf.reduce_sum(x * inputs['mask'][:, :, None], 1)
    pooled = total / tf.maximum(tf.reduce_sum(inputs['mask'], 1, keepdims=True), 1.0)
    return v1.layers.dense(pooled, 1, name='score')


class Encoder(tf.keras.Model):
  def __init__(self):
    super().__init__(name='encoder')
    layers = tf.keras.layers
    self.words = layers.Embedding(30, WIDTH, 'glorot_uniform', name='words')
    self.kinds = layers.Embedding(4, WIDTH, 'glorot_uniform', name='kinds')
    self.places = layers.Embedding(64, WIDTH, 'glorot_uniform', name='places')
    self.norm = layers.LayerNormalization(epsilon=1e-12, name='norm')
    self.query = layers.Dense(WIDTH, name='query')
    self.key = layers.Dense(WIDTH, name='key')
    self.value = layers.Dense(WIDTH, name='value')
    self.score = layers.Dense(1, name='score')

  def call(self, inputs):
    mask = inputs['mask']
    place = tf.minimum(tf.range(tf.shape(inputs['ids'])[1]), 63)
    x = self.words(inputs['ids']) + self.places(place)
    x += self.kinds(tf.clip_by_value(inputs['kinds'], 0, 3))
    x = self.norm(x)
    scores = tf.matmul(self.query(x), self.key(x), transpose_b=True) / WIDTH**0.5
    scores += (1.0 - mask[:, None, :]) * -1e9
    x = tf.matmul(tf.nn.softmax(scores), self.value(x))
    total = tf.reduce_sum(x * mask[:, :, None], 1)
    length = tf.maximum(tf.reduce_sum(mask, 1, keepdims=True), 1.0)
    return self.score(total / length)


class Momentum(tf.keras.optimizers.legacy.SGD):
  """Keeps the sum of the gradients, as TF1 does; Keras keeps it times the rates of the steps."""

  def _resource_apply_dense(self, grad, var, apply_state=None):
    sums = self.get_slot(var, 'momentum')
    sums.assign(self._get_hyper('momentum', var.dtype) * sums + grad)
    return var.assign_sub(self._decayed_lr(var.dtype) * sums)


class ModelCase(tf2verify.EquivalenceCase):
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    return tf1_encoder(inputs)

  def make_tf2_layer(self):
    return Encoder()

  def make_inputs(self):
    random = np.random.RandomState(0)
    mask = np.ones((4, 7), np.float32)
    mask[1, 4:] = 0
    return {
      'ids': random.randint(0, 30, (4, 7)).astype(np.int32),
      'kinds': random.randint(0, 3, (4, 7)).astype(np.int32),
      'mask': mask,
    }

  def make_labels(self):
    return np.full((4, 1), 0.5, np.float32)  # unknown: between the two classes

  def tf1_loss(self, outputs, labels):
    return v1.losses.sigmoid_cross_entropy(labels, outputs, label_smoothing=0.1)

  def tf2_loss(self, outputs, labels):
    loss = tf.keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1)
    return loss(labels, outputs)

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(0.05, step, 1000, 0.9, staircase=True)
    optimizer = v1.train.MomentumOptimizer(rate, 0.9)
    pairs = optimizer.compute_gradients(loss)
    pairs = [(tf.clip_by_value(tf.convert_to_tensor(g), -50.0, 50.0), v) for g, v in pairs]
    return optimizer.apply_gradients(pairs, step)

  def make_tf2_optimizer(self):
    schedules = tf.keras.optimizers.schedules
    rate = schedules.ExponentialDecay(0.05, 1000, 0.9, staircase=True)
    return Momentum(rate, momentum=0.9)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs), labels)
    grads = tape.gradient(loss, layer.trainable_variables)
    grads = [tf.clip_by_value(tf.convert_to_tensor(g), -50.0, 50.0) for g in grads]
    optimizer.apply_gradients(zip(grads, layer.trainable_variables, strict=True))
    return loss
