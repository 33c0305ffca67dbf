"""Networks of `tf_slim.nets` against those of `keras.applications`."""

import abc
import contextlib

import tensorflow as tf
import tf_slim as slim
from tf_slim.nets import inception_v3, resnet_v1, resnet_v2, vgg

from benchmarks.map_pairs.image_case import ImageCase

# Regularization losses and initial values are not what a map is about; `keras.applications` have
# others, which stages 3 and 4 would stop at.
_NO_DECAY = {'weight_decay': 0.0}
_NO_BIAS = 'slim has no bias before a batch norm, whose beta does the same'


class SlimCase(ImageCase, abc.ABC):
  @contextlib.contextmanager
  def scopes(self, scope):
    """Enters the arg scope of a model, with the initializer that Keras has."""
    glorot = slim.xavier_initializer()
    with (
      slim.arg_scope(scope),
      slim.arg_scope([slim.conv2d, slim.fully_connected], weights_initializer=glorot),
    ):
      yield


class InceptionV3Case(SlimCase):
  pixels = 299

  def build_tf1_graph(self, inputs, training):
    with self.scopes(inception_v3.inception_v3_arg_scope(**_NO_DECAY)):
      return inception_v3.inception_v3(
        inputs, self.classes, is_training=training, create_aux_logits=False
      )[0]

  def make_tf2_layer(self):
    return self.application('InceptionV3')


class Vgg16Case(SlimCase):
  pixels = 224

  def build_tf1_graph(self, inputs, training):
    with self.scopes(vgg.vgg_arg_scope(**_NO_DECAY)):
      return vgg.vgg_16(inputs, self.classes, is_training=training)[0]

  def make_tf2_layer(self):
    return self.application('VGG16')


class ResnetV2Case(SlimCase):
  def build_tf1_graph(self, inputs, training):
    with self.scopes(resnet_v2.resnet_arg_scope(**_NO_DECAY)):
      net, _ = resnet_v2.resnet_v2_50(inputs, self.classes, is_training=training)
    return tf.squeeze(net, [1, 2])

  def make_tf2_layer(self):
    return self.application('ResNet50V2')


class ResnetV1Case(SlimCase):
  tf2_only_variables = {'*conv*/bias': _NO_BIAS}

  def build_tf1_graph(self, inputs, training):
    with self.scopes(resnet_v1.resnet_arg_scope(**_NO_DECAY)):
      net, _ = resnet_v1.resnet_v1_50(inputs, self.classes, is_training=training)
    return tf.squeeze(net, [1, 2])

  def make_tf2_layer(self):
    return self.application('ResNet50')
