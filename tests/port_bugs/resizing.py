"""Resized images: B34, B35."""

import abc

import tensorflow as tf

from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
_STAGE = 'zero_randomness'


class Resized(tiny_models.OneImageModel, abc.ABC):
  method = v1.image.ResizeMethod.BILINEAR
  size = (9, 9)

  def model(self, inputs, training):
    net = inputs * v1.get_variable('scale', [3])
    return v1.image.resize_images(net, self.size, method=self.method)


class Scaled(tf.keras.layers.Layer):
  def build(self, shape):
    glorot = v1.glorot_uniform_initializer()
    self.scale = self.add_weight(name='scale', shape=shape[-1:], initializer=glorot)

  def call(self, inputs):
    return inputs * self.scale


class UpSampled(Resized):
  size = (12, 12)

  def make_tf2_layer(self):
    return tf.keras.Sequential(
      [Scaled(name='net'), tf.keras.layers.UpSampling2D(2, interpolation='bilinear')]
    )

  def variable_names(self, name):
    return f'net/{name}'


class LegacyBilinear(Resized):
  size = (12, 12)

  def port(self, inputs, training):
    net = inputs * v1.get_variable('scale', [3])
    return v1.image.resize_bilinear(net, [12, 12])


class HalfPixel(Resized, abc.ABC):
  def port(self, inputs, training):
    method = ('bilinear', 'nearest', 'bicubic')[self.method]
    return tf.image.resize(inputs * v1.get_variable('scale', [3]), self.size, method)


class Nearest(HalfPixel):
  method = v1.image.ResizeMethod.NEAREST_NEIGHBOR


class LegacyNearest(Resized):
  method = v1.image.ResizeMethod.NEAREST_NEIGHBOR

  def port(self, inputs, training):
    net = inputs * v1.get_variable('scale', [3])
    return v1.image.resize_nearest_neighbor(net, [9, 9])


class Bicubic(HalfPixel):
  method = v1.image.ResizeMethod.BICUBIC


class LegacyBicubic(Resized):
  method = v1.image.ResizeMethod.BICUBIC

  def port(self, inputs, training):
    net = inputs * v1.get_variable('scale', [3])
    return v1.image.resize_bicubic(net, [9, 9])


PORT_BUGS = (
  PortBug(
    identifier='B34',
    title='bilinear resize',
    tf1='`tf.image.resize_images`: pixel i is sampled at i·scale',
    mistake="`UpSampling2D(interpolation='bilinear')`: at (i + 0.5)·scale - 0.5",
    stage=_STAGE,
    wrong=UpSampled,
    right=LegacyBilinear,
    words=('half_pixel_centers', 'resize_bilinear'),
    causes=('resize_sampling',),
  ),
  PortBug(
    identifier='B35',
    title='nearest resize',
    tf1='`tf.image.resize_images(method=1)`: pixel i is sampled at i·scale',
    mistake="`tf.image.resize(method='nearest')`: at (i + 0.5)·scale",
    stage=_STAGE,
    wrong=Nearest,
    right=LegacyNearest,
    words=('half_pixel_centers', 'resize_nearest_neighbor'),
    causes=('resize_sampling',),
  ),
  PortBug(
    identifier='B35',
    title='bicubic resize',
    tf1='`tf.image.resize_images(method=2)`: legacy centres, and a cubic with a = -0.75',
    mistake="`tf.image.resize(method='bicubic')`: half-pixel centres, and a = -0.5",
    stage=_STAGE,
    wrong=Bicubic,
    right=LegacyBicubic,
    words=('half_pixel_centers', 'resize_bicubic'),
    causes=('resize_sampling',),
  ),
)
