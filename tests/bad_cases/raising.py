"""What the hooks raise."""

import sys

import numpy as np

from tests import small_case
from tests.bad_cases.mistake import error
from tests.small_case import SmallCase

# isort: split
import tensorflow as tf

v1 = tf.compat.v1


class BuilderRaises(SmallCase):
  mistake = error('variable_inventory', 'tf1', "build_tf1_graph raised KeyError: 'width'")

  def build_tf1_graph(self, inputs, training):
    return inputs[:, {}['width']]


class BuilderExits(SmallCase):
  mistake = error(
    'variable_inventory', 'tf1', 'build_tf1_graph raised SystemExit: no dataset given'
  )

  def build_tf1_graph(self, inputs, training):
    sys.exit('no dataset given')


class GraphRaises(SmallCase):
  mistake = error(
    'zero_randomness',
    'tf1',
    'running the graph of build_tf1_graph raised InvalidArgumentError: ',
    'assertion failed: [batch of 5]',
    "(in 'assert_equal",
    "/Assert/Assert')",
  )

  def build_tf1_graph(self, inputs, training):
    with tf.control_dependencies([v1.assert_equal(tf.shape(inputs)[0], 5, message='batch of 5')]):
      return small_case.model(inputs, training)


class LayerRaises(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'call_tf2_layer raised ZeroDivisionError: no steps per epoch ',
    "(in layer 'raising' (type Raising))",
  )

  class Raising(small_case.Port):
    def call(self, inputs, training=False):
      raise ZeroDivisionError('no steps per epoch')

  def make_tf2_layer(self):
    return self.Raising()


class LayerExits(SmallCase):
  mistake = error('no_new_variables', 'tf2', 'call_tf2_layer raised SystemExit: 3')

  class Exiting(small_case.Port):
    def call(self, inputs, training=False):
      sys.exit(3)

  def make_tf2_layer(self):
    return self.Exiting()


class MakeLayerRaises(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    "make_tf2_layer raised TypeError: ('Keyword argument not understood:', 'units')",
  )

  def make_tf2_layer(self):
    return small_case.Port(units=3)


class CallRaises(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'call_tf2_layer raised TypeError: Only integers, slices',
    "got 'logits'",
  )

  def call_tf2_layer(self, layer, inputs, training):
    return layer(inputs)['logits']


class LossRaises(SmallCase):
  mistake = error('gradients', 'tf1', 'loss raised ValueError: no labels')

  def loss(self, outputs):
    raise ValueError('no labels')


class LossIsNoTensor(SmallCase):
  mistake = error(
    'gradients', 'case', 'loss returned a list on the tf1 side; return a scalar tensor'
  )

  def loss(self, outputs):
    return [outputs]


class LossRaisesInTf2(SmallCase):
  mistake = error('gradients', 'tf2', 'loss raised ValueError: not eagerly')

  def loss(self, outputs):
    if tf.executing_eagerly():
      raise ValueError('not eagerly')
    return tf.reduce_sum(outputs)


class MakeInputsRaises(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'make_inputs raised FileNotFoundError: ',
    "No such file or directory: 'no such file.npy'",
  )

  def make_inputs(self):
    with open('no such file.npy', 'rb') as file:
      return np.load(file)


class MakeInputsExits(SmallCase):
  mistake = error('no_new_variables', 'case', 'make_inputs raised SystemExit: no inputs')

  def make_inputs(self):
    sys.exit('no inputs')


class FillRaises(SmallCase):
  mistake = error('zero_randomness', 'case', "fill_values raised KeyError: 'dense/kernel'")

  def fill_values(self, name, shape, dtype):
    raise KeyError(name)


class RegularizationRaises(SmallCase):
  mistake = error(
    'zero_randomness',
    'tf2',
    'tf2_regularization_losses raised AttributeError: ',
    "'Port' object has no attribute 'regularizers'",
  )

  def tf2_regularization_losses(self, layer):
    return layer.regularizers
