"""Features of a spectrum with raw variables; the port keeps them under the shim."""

import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1


def tf1_spectrum(inputs):
  power = tf.square(inputs['wave'])
  loud = tf.math.log(tf.maximum(power, 1e-10))
  with v1.variable_scope('filters'):
    bank = v1.get_variable('bank', [12, 6])
    rows = v1.get_variable('speakers', [16, 6])
  net = tf.clip_by_value(tf.matmul(loud, bank), -200.0, 200.0)
  net += tf.gather(rows, tf.math.floormod(inputs['speaker'], 16))
  place = tf.cast(tf.round(inputs['pitch']), tf.int32)
  net *= tf.cast(tf.one_hot(place, 6), tf.float32) + 0.5
  total = tf.cast(tf.cast(inputs['frames'], tf.float32), tf.float32)
  net /= tf.sqrt(tf.maximum(total, 1.0))[:, None]
  return tf.where(tf.abs(net) < 1e4, net, tf.zeros_like(net))


class Spectrum(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    power = tf.square(inputs['wave'])
    loud = tf.math.log(tf.maximum(power, 1e-10))
    with v1.variable_scope('filters'):
      bank = v1.get_variable('bank', [12, 6])
      rows = v1.get_variable('speakers', [16, 6])
    net = tf.clip_by_value(tf.matmul(loud, bank), -200.0, 200.0)
    net += tf.gather(rows, tf.math.floormod(inputs['speaker'], 16))
    place = tf.cast(tf.round(inputs['pitch']), tf.int32)
    net *= tf.one_hot(place, 6) + 0.5
    total = tf.cast(inputs['frames'], tf.float32)
    net /= tf.sqrt(tf.maximum(total, 1.0))[:, None]
    return tf.where(tf.abs(net) < 1e4, net, tf.zeros_like(net))


class ModelCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return tf1_spectrum(inputs)

  def make_tf2_layer(self):
    return Spectrum()

  def make_inputs(self):
    random = np.random.RandomState(0)
    return {
      'wave': tf2verify.normal_inputs((5, 12)),
      'speaker': random.randint(0, 40, 5).astype(np.int32),
      'pitch': np.array([0.2, 1.3, 2.9, 4.0, 3.8], np.float32),
      'frames': np.array([3, 5, 8, 100, 20], np.int32),
    }

  def make_labels(self):
    return tf2verify.normal_inputs((5, 6), seed=5)

  def tf1_loss(self, outputs, labels):
    cosine = tf.reduce_sum(tf.nn.l2_normalize(outputs, 1, 1e-12) * labels, 1)
    return tf.reduce_mean(tf.nn.relu(3000.0 - cosine))

  def tf2_loss(self, outputs, labels):
    cosine = tf.reduce_sum(tf.nn.l2_normalize(outputs, 1, 1e-12) * labels, 1)
    return tf.reduce_mean(tf.nn.relu(3000.0 - cosine))
