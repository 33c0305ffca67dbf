"""Image models written with `tf.layers` from their papers, against `keras.applications`.

DenseNet-121: arXiv:1608.06993. MobileNet: arXiv:1704.04861. MobileNetV2: arXiv:1801.04381.
Xception: arXiv:1610.02357.
"""

import tensorflow as tf

from benchmarks.map_pairs.image_case import ImageCase

v1 = tf.compat.v1


def _norm(net, training, epsilon=1e-3):
  return v1.layers.batch_normalization(net, epsilon=epsilon, training=training)


def _conv(net, filters, size, strides=1, padding='same'):
  return v1.layers.conv2d(net, filters, size, strides, padding, use_bias=False)


def _depthwise(net, strides=1, name='depthwise'):
  """Convolves every channel for itself, with a raw kernel as models of 2017 have it."""
  shape = [3, 3, net.shape[-1].value, 1]
  with v1.variable_scope(None, name):
    kernel = v1.get_variable('depthwise_weights', shape)
  return tf.nn.depthwise_conv2d(net, kernel, [1, strides, strides, 1], 'SAME')


class Densenet121Case(ImageCase):
  def build_tf1_graph(self, inputs, training):
    def normed_conv(net, filters, size):
      return _conv(tf.nn.relu(_norm(net, training, 1.001e-5)), filters, size)

    net = _conv(tf.pad(inputs, [[0, 0], [3, 3], [3, 3], [0, 0]]), 64, 7, 2, 'valid')
    net = tf.nn.relu(_norm(net, training, 1.001e-5))
    net = v1.layers.max_pooling2d(tf.pad(net, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2)
    for number, blocks in enumerate((6, 12, 24, 16)):
      if number:
        net = v1.layers.average_pooling2d(normed_conv(net, net.shape[-1].value // 2, 1), 2, 2)
      for _ in range(blocks):
        net = tf.concat([net, normed_conv(normed_conv(net, 128, 1), 32, 3)], 3)
    net = tf.reduce_mean(tf.nn.relu(_norm(net, training, 1.001e-5)), [1, 2])
    return v1.layers.dense(net, self.classes, name='classes')

  def make_tf2_layer(self):
    return self.application('DenseNet121')


class MobilenetCase(ImageCase):
  """The last layer is a product here, and a convolution in the port."""

  def build_tf1_graph(self, inputs, training):
    net = tf.nn.relu6(_norm(_conv(inputs, 32, 3, 2), training))
    for filters, strides in (
      ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)) + 5 * ((512, 1),)
    ) + ((1024, 2), (1024, 1)):
      net = tf.nn.relu6(_norm(_depthwise(net, strides), training))
      net = tf.nn.relu6(_norm(_conv(net, filters, 1), training))
    return v1.layers.dense(tf.reduce_mean(net, [1, 2]), self.classes)

  def make_tf2_layer(self):
    return self.application('MobileNet')


class MobilenetV2Case(ImageCase):
  pixels = 96

  def build_tf1_graph(self, inputs, training):
    net = tf.nn.relu6(_norm(_conv(inputs, 32, 3, 2), training))
    for expansion, filters, count, first in (
      (1, 16, 1, 1),
      (6, 24, 2, 2),
      (6, 32, 3, 2),
      (6, 64, 4, 2),
      (6, 96, 3, 1),
      (6, 160, 3, 2),
      (6, 320, 1, 1),
    ):
      for number in range(count):
        before = net
        if expansion > 1:
          wide = _conv(net, expansion * net.shape[-1].value, 1)
          net = tf.nn.relu6(_norm(wide, training))
        net = _depthwise(net, 1 if number else first)
        net = _norm(_conv(tf.nn.relu6(_norm(net, training)), filters, 1), training)
        if number:
          net += before
    net = tf.nn.relu6(_norm(_conv(net, 1280, 1), training))
    return v1.layers.dense(tf.reduce_mean(net, [1, 2]), self.classes)

  def make_tf2_layer(self):
    return self.application('MobileNetV2')


class XceptionCase(ImageCase):
  pixels = 71

  def build_tf1_graph(self, inputs, training):
    def separable(net, filters):
      made = v1.layers.separable_conv2d(net, filters, 3, padding='same', use_bias=False)
      return _norm(made, training)

    def reduced(net, first, filters, starts_with_relu=True):
      side = _norm(_conv(net, filters, 1, 2), training)
      net = separable(tf.nn.relu(net) if starts_with_relu else net, first)
      net = separable(tf.nn.relu(net), filters)
      return v1.layers.max_pooling2d(net, 3, 2, 'same') + side

    net = tf.nn.relu(_norm(_conv(inputs, 32, 3, 2, 'valid'), training))
    net = tf.nn.relu(_norm(_conv(net, 64, 3, 1, 'valid'), training))
    net = reduced(net, 128, 128, starts_with_relu=False)
    net = reduced(reduced(net, 256, 256), 728, 728)
    for _ in range(8):
      before = net
      for _ in range(3):
        net = separable(tf.nn.relu(net), 728)
      net += before
    net = reduced(net, 728, 1024)
    net = tf.nn.relu(separable(tf.nn.relu(separable(net, 1536)), 2048))
    return v1.layers.dense(tf.reduce_mean(net, [1, 2]), self.classes)

  def make_tf2_layer(self):
    return self.application('Xception')
