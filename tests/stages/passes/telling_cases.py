"""Ports that differ where the case's own inputs do not show it."""

import abc

import numpy as np
import tensorflow as tf

from tests.stages.tiny_models import OneModel

v1 = tf.compat.v1


class Differing(OneModel, abc.ABC):
  """One operation after a dense layer, which is another one in the port."""

  training_modes = (False,)
  scale = 1.5  # of inputs, some of which are beyond 1

  def fill_values(self, name, shape, dtype):
    return (np.arange(np.prod(shape)).reshape(shape) % 3 - 0.9).astype(dtype)

  def make_inputs(self):
    return np.linspace(-self.scale, self.scale, 12, dtype='float32').reshape(4, 3)

  def model(self, inputs, training):
    return self.one(v1.layers.dense(inputs, 3, name='d'))

  def port(self, inputs, training):
    return self.other(v1.layers.dense(inputs, 3, name='d'))


class Bound(Differing):
  def one(self, net):
    return tf.clip_by_value(net, -200.0, 20.0)

  def other(self, net):
    return tf.clip_by_value(net, -50.0, 20.0)


class Capped(Differing):
  def one(self, net):
    return tf.nn.relu(net)

  def other(self, net):
    return tf.nn.relu6(net)


class Epsilon(Differing):
  def one(self, net):
    return tf.nn.l2_normalize(net, -1, epsilon=1e-8)

  def other(self, net):
    return tf.nn.l2_normalize(net, -1, epsilon=1e-12)

  def model(self, inputs, training):
    return self.one(v1.layers.dense(inputs, 3, use_bias=False, name='d'))

  def port(self, inputs, training):
    return self.other(v1.layers.dense(inputs, 3, use_bias=False, name='d'))


class Bounded(Capped):
  """Inputs that may be bounded: they are not made greater than they ever are."""

  scale = 1.0


class NotFinite(Differing):
  """The reference is not defined where the sides would differ."""

  def one(self, net):
    return tf.nn.relu(net) + 0.0 * tf.exp(tf.square(net))

  def other(self, net):
    return tf.nn.relu6(net) + 0.0 * tf.exp(tf.square(net))


class Slight(Epsilon):
  """An epsilon that is a little greater, which many have."""

  def other(self, net):
    return tf.nn.l2_normalize(net, -1, epsilon=1.001e-8)


class Mask(Capped):
  """A mask is not a number that could be greater."""

  def make_inputs(self):
    return np.array([[0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1]], 'float32')


class Ids(Capped):
  """Ids are not scaled: there are no others."""

  def make_inputs(self):
    return np.array([[0, 1, 4], [1, 2, 3]], 'int32')

  def embedded(self, inputs):
    return tf.gather(v1.get_variable('table', (5, 3)), inputs)

  def model(self, inputs, training):
    return self.one(self.embedded(inputs))

  def port(self, inputs, training):
    return self.other(self.embedded(inputs))


class Right(Differing):
  def one(self, net):
    return tf.nn.relu6(net)

  def other(self, net):
    return tf.minimum(tf.nn.relu(net), 6.0)
