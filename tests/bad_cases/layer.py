"""What the layer is, and what there is nothing of."""

from typing import Any

import numpy as np

from tests import small_case
from tests.bad_cases.mistake import error, failed, not_applicable
from tests.small_case import SmallCase

# isort: split
import tensorflow as tf

v1 = tf.compat.v1


class TurnsEagerOff(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'make_tf2_layer raised RuntimeError: eager execution is off after it',
    'remove the call',
  )

  def make_tf2_layer(self):
    v1.disable_eager_execution()
    return super().make_tf2_layer()


class UndecoratedCountsUp(SmallCase):
  mistake = failed(
    'no_new_variables',
    'dense/kernel: call 2 (inference), call 3 (training) and call 4 (training) created it',
    'kernel = v1.get_variable(',
    'decorate the method with tf.compat.v1.keras.utils.track_tf1_style_variables',
  )

  class Undecorated(tf.keras.layers.Layer):
    def call(self, inputs):
      return small_case.dense(inputs)

  def build_tf1_graph(self, inputs, training):
    return small_case.dense(inputs)

  def make_tf2_layer(self):
    return self.Undecorated()


class UndecoratedKeepsFirst(UndecoratedCountsUp):
  """Makes its variable once, but not so that Keras would know of it."""

  mistake = failed(
    'variable_inventory',
    'layer.variables is empty after a call: decorate the method ',
    'track_tf1_style_variables',
  )

  class Undecorated(tf.keras.layers.Layer):
    def build(self, shape):
      kernel = tf.Variable(tf.ones((3, 2)), name='dense/kernel')
      self.multiply = lambda inputs: tf.matmul(inputs, kernel)

    def call(self, inputs):
      return self.multiply(inputs)


class ScopeCountsUp(SmallCase):
  mistake = failed('no_new_variables', 'the scope counts up at each call (block → block_1)')

  class Counting(tf.keras.layers.Layer):
    def call(self, inputs):
      with v1.variable_scope(None, default_name='block'):
        return small_case.dense(inputs)

  def make_tf2_layer(self):
    return self.Counting()


class SameLayerTwice(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'make_tf2_layer returned the same object twice',
    'construct the layer inside make_tf2_layer',
  )

  layers: list[Any] = []

  def make_tf2_layer(self):
    if not self.layers:
      self.layers.append(small_case.Port())
    return self.layers[0]


class LayerAlreadyBuilt(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'a layer that is already built (variables: ',
    'dense/kernel',
    'return the layer without calling or building it',
  )

  def make_tf2_layer(self):
    layer = small_case.Port()
    layer(np.ones((4, 3), np.float32))
    return layer


class LayerIsFunction(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'returned <function model ',
    ' of type function, which is not a layer; return an instance of a tf.keras.layers.Layer',
  )

  def make_tf2_layer(self):
    return small_case.model


class LayerIsNone(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'returned None of type NoneType, which is not a layer; usually a missing `return`',
  )

  def make_tf2_layer(self):
    small_case.Port()


class LayerIsClass(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'which is not a layer; it is the class: return an instance, Port(...)',
  )

  def make_tf2_layer(self):
    return small_case.Port


class LayerIsKeras3(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'make_tf2_layer returned <keras.src.initializers',
    ' which is not a layer; it is an object of Keras 3, but no layer: return a keras.Layer or',
  )

  def make_tf2_layer(self):
    import keras

    return keras.initializers.Zeros()


class ModuleNotCallable(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'returned a Module without __call__; a tf.Module needs a __call__ decorated with',
  )

  def make_tf2_layer(self):
    return tf.Module()


class LayerReturnsNone(SmallCase):
  mistake = error(
    'no_new_variables', 'tf2', "the layer's call returned None: usually a missing `return`"
  )

  class Silent(tf.keras.layers.Layer):
    @small_case.tracked
    def call(self, inputs):
      small_case.dense(inputs)

  def make_tf2_layer(self):
    return self.Silent()


class LayerReturnsObject(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    "something that is not a tensor: ['layer'] is of type Port; return tensors",
  )

  def call_tf2_layer(self, layer, inputs, training):
    return {'logits': layer(inputs, training=training), 'layer': layer}


class NoVariables(SmallCase):
  mistake = not_applicable(
    'variable_inventory', 'neither side has a variable; if the model should have some'
  )

  class Nothing(tf.keras.layers.Layer):
    def call(self, inputs):
      return 2.0 * inputs

  def build_tf1_graph(self, inputs, training):
    return 2.0 * inputs

  def make_tf2_layer(self):
    return self.Nothing()


class NoTrainableVariables(SmallCase):
  mistake = not_applicable('gradients', 'no variable is trainable on either side')

  class Frozen(tf.keras.layers.Layer):
    @small_case.tracked
    def call(self, inputs):
      return small_case.dense(inputs, trainable=False)

  def build_tf1_graph(self, inputs, training):
    return small_case.dense(inputs, trainable=False)

  def make_tf2_layer(self):
    return self.Frozen()
