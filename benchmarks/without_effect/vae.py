"""A variational autoencoder: tf.layers in TF1, a model of tf-keras in the port."""

import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1


def tf1_vae(inputs):
  net = v1.layers.dense(inputs['x'], 8, name='encoder')
  net = tf.where(net < 100.0, tf.nn.softplus(net), net)
  mean = v1.layers.dense(net, 3, name='mean')
  log_var = tf.minimum(v1.layers.dense(net, 3, name='log_var'), 60.0)
  z = mean + tf.exp(0.1 * log_var) * inputs['noise']
  z = tf.nn.relu(inputs['mask']) * z
  logits = v1.layers.dense(z, 5, name='decoder')
  norm = tf.sqrt(tf.reduce_sum(tf.square(inputs['x']), 1, keepdims=True) + 1e-10)
  return {'mean': mean, 'log_var': log_var, 'logits': logits / norm}


class Vae(tf.keras.Model):
  def __init__(self):
    super().__init__()
    self.encoder = tf.keras.layers.Dense(8, name='encoder')
    self.mean = tf.keras.layers.Dense(3, name='mean')
    self.log_var = tf.keras.layers.Dense(3, name='log_var')
    self.decoder = tf.keras.layers.Dense(5, name='decoder')

  def call(self, inputs):
    net = self.encoder(inputs['x'])
    net = tf.where(net < 100.0, tf.nn.softplus(net), net)
    mean, log_var = self.mean(net), self.log_var(net)
    log_var = tf.minimum(log_var, 60.0)
    z = mean + tf.exp(0.1 * log_var) * inputs['noise']
    z = tf.nn.relu(inputs['mask']) * z
    square = tf.reduce_sum(tf.square(inputs['x']), 1, keepdims=True)
    norm = tf.sqrt(square + 1e-10)
    return {'mean': mean, 'log_var': log_var, 'logits': self.decoder(z) / norm}


class ModelCase(tf2verify.EquivalenceCase):
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    return tf1_vae(inputs)

  def make_tf2_layer(self):
    return Vae()

  def make_inputs(self):
    return {
      'x': tf2verify.normal_inputs((6, 5)),
      'noise': tf2verify.normal_inputs((6, 3), seed=1),
      'mask': np.ones((6, 1), np.float32),
    }

  def make_labels(self):
    return np.random.RandomState(0).uniform(0.1, 0.9, (6, 5)).astype(np.float32)

  def tf1_loss(self, outputs, labels):
    mean, log_var = outputs['mean'], outputs['log_var']
    bits = 0.5 * (tf.square(mean) + tf.exp(0.1 * log_var) - 1.0 - 0.1 * log_var)
    bits = tf.reduce_sum(tf.maximum(bits, 1e-6), 1)
    each = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=outputs['logits'])
    return {'bits': tf.reduce_mean(bits), 'pixels': tf.reduce_mean(tf.reduce_sum(each, 1))}

  def tf2_loss(self, outputs, labels):
    mean, log_var = outputs['mean'], outputs['log_var']
    bits = 0.5 * (tf.square(mean) + tf.exp(0.1 * log_var) - 1.0 - 0.1 * log_var)
    bits = tf.reduce_sum(tf.maximum(bits, 1e-6), 1)
    each = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=outputs['logits'])
    return {'bits': tf.reduce_mean(bits), 'pixels': tf.reduce_mean(tf.reduce_sum(each, 1))}
