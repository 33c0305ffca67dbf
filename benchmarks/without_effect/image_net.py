"""A small network of convolutions: tf.layers in TF1, layers of Keras 3 in the port."""

import keras
import numpy as np
import tensorflow as tf

import tf2verify

v1 = tf.compat.v1


def tf1_net(images):
  net = tf.cast(images, tf.float32) / 255.0
  net = v1.image.resize_bilinear(net, [16, 16], align_corners=False, half_pixel_centers=True)
  net = v1.layers.conv2d(net, 4, 3, padding='same', activation=tf.nn.relu6, name='first')
  net = v1.layers.max_pooling2d(net, 2, 2, padding='same')
  net = v1.layers.conv2d(net, 8, 3, padding='same', name='second')
  net = tf.minimum(tf.nn.leaky_relu(net, 0.1), 100.0)
  net = v1.layers.average_pooling2d(net, 8, 8, padding='valid')
  net = v1.layers.conv2d(net, 6, 1, strides=1, name='third')
  return v1.layers.dense(v1.layers.flatten(net), 3, name='logits')


class Net(keras.Model):
  def __init__(self):
    super().__init__()
    layers = keras.layers
    self.rescale = layers.Rescaling(1 / 255.0)
    self.resize = layers.Resizing(16, 16, interpolation='bilinear')
    self.first = layers.Conv2D(4, 3, padding='same', activation='relu6', name='first')
    self.pool = layers.MaxPooling2D(2, 2, padding='same')
    self.second = layers.Conv2D(8, 3, padding='same', name='second')
    self.average = layers.AveragePooling2D(8, 8, padding='valid')
    self.third = layers.Conv2D(6, 1, strides=1, name='third')
    self.flatten = layers.Flatten()
    self.logits = layers.Dense(3, name='logits')

  def call(self, images):
    images = keras.ops.cast(images, 'float32')
    net = self.pool(self.first(self.resize(self.rescale(images))))
    net = keras.ops.leaky_relu(self.second(net), 0.1)
    net = keras.ops.minimum(net, 100.0)
    return self.logits(self.flatten(self.third(self.average(net))))


class ModelCase(tf2verify.EquivalenceCase):
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    return tf1_net(inputs)

  def make_tf2_layer(self):
    return Net()

  def make_inputs(self):
    return np.random.RandomState(0).randint(0, 256, (3, 16, 16, 3)).astype(np.int32)

  def make_labels(self):
    return np.array([0, 2, 1], np.int32)

  def tf1_loss(self, outputs, labels):
    weights = tf.cast(tf.not_equal(labels, 255), tf.float32)
    known = tf.minimum(labels, 2)
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=known, logits=outputs)
    return v1.div_no_nan(tf.reduce_sum(each * weights), tf.reduce_sum(weights))

  def tf2_loss(self, outputs, labels):
    weights = tf.cast(tf.not_equal(labels, 255), tf.float32)
    known = tf.minimum(labels, 2)
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=known, logits=outputs)
    return tf.math.divide_no_nan(tf.reduce_sum(each * weights), tf.reduce_sum(weights))
