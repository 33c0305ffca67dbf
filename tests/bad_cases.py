"""Cases with one mistake each, and what a report has to say of it."""

import dataclasses
import random
import re
import sys
import warnings
from typing import Any

import numpy as np

import tf2verify
from tests import small_case
from tests.small_case import SmallCase

# isort: split
import tensorflow as tf
from tensorflow.compat.v1 import disable_eager_execution, disable_v2_behavior

Status = tf2verify.Status
v1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class BadCase:
  """A mistake and the first verdict that is not PASSED.

  Attributes:
    case: the class.
    stage: the stage that finds it.
    status: its status.
    side: of the error; '' for a FAILED stage.
    text: what the report says, as a regular expression.
  """

  case: type[tf2verify.EquivalenceCase]
  stage: str
  status: tf2verify.Status
  side: str
  text: str


# What the builder returns.


class BuilderReturnsNone(SmallCase):
  def build_tf1_graph(self, inputs, training):
    small_case.model(inputs, training)


class BuilderReturnsText(SmallCase):
  def build_tf1_graph(self, inputs, training):
    small_case.model(inputs, training)
    return {'logits': 'logits'}


class BuilderReturnsObject(SmallCase):
  def build_tf1_graph(self, inputs, training):
    return {'logits': small_case.model(inputs, training), 'scope': v1.get_variable_scope()}


class BuilderReturnsEmpty(SmallCase):
  def build_tf1_graph(self, inputs, training):
    small_case.model(inputs, training)
    return {}


class StructuresDiffer(SmallCase):
  def build_tf1_graph(self, inputs, training):
    outputs = small_case.model(inputs, training)
    return outputs, {'logits': outputs}


# What the builder does to the process.


class BuilderDisablesV2(SmallCase):
  def build_tf1_graph(self, inputs, training):
    v1.disable_v2_behavior()
    return small_case.model(inputs, training)


class BuilderDisablesV2ByName(SmallCase):
  def build_tf1_graph(self, inputs, training):
    disable_v2_behavior()
    return small_case.model(inputs, training)


class BuilderDisablesEager(SmallCase):
  def build_tf1_graph(self, inputs, training):
    v1.disable_eager_execution()
    return small_case.model(inputs, training)


class BuilderDisablesEagerByName(SmallCase):
  def build_tf1_graph(self, inputs, training):
    disable_eager_execution()
    return small_case.model(inputs, training)


class BuilderMakesGraph(SmallCase):
  def build_tf1_graph(self, inputs, training):
    del inputs
    with tf.Graph().as_default():
      return small_case.model(v1.placeholder(tf.float32, (4, 3)), training)


class BuilderMixesGraphs(SmallCase):
  def build_tf1_graph(self, inputs, training):
    with tf.Graph().as_default():
      return small_case.model(inputs, training)


class BuilderResetsGraph(SmallCase):
  def build_tf1_graph(self, inputs, training):
    v1.reset_default_graph()
    return small_case.model(inputs, training)


class BuilderOpensSession(SmallCase):
  def build_tf1_graph(self, inputs, training):
    outputs = small_case.model(inputs, training)
    with v1.Session() as session:
      session.run(v1.global_variables_initializer())
    return outputs


class BuilderOpensInteractiveSession(SmallCase):
  def build_tf1_graph(self, inputs, training):
    v1.InteractiveSession()
    return small_case.model(inputs, training)


class BuilderUsesContrib(SmallCase):
  def build_tf1_graph(self, inputs, training):
    return tf.contrib.layers.fully_connected(inputs, 2)


class BuilderImportsContrib(SmallCase):
  def build_tf1_graph(self, inputs, training):
    import tensorflow.contrib.slim as slim

    return slim.fully_connected(inputs, 2)


# What the builder, the layer and the hooks raise.


class BuilderRaises(SmallCase):
  def build_tf1_graph(self, inputs, training):
    return inputs[:, {}['width']]


class BuilderExits(SmallCase):
  def build_tf1_graph(self, inputs, training):
    sys.exit('no dataset given')


class BuilderWithoutTraining(SmallCase):
  def build_tf1_graph(self, inputs):
    return small_case.model(inputs, False)


class GraphRaises(SmallCase):
  def build_tf1_graph(self, inputs, training):
    with tf.control_dependencies([v1.assert_equal(tf.shape(inputs)[0], 5, message='batch of 5')]):
      return small_case.model(inputs, training)


class LayerRaises(SmallCase):
  class Raising(small_case.Port):
    def call(self, inputs, training=False):
      raise ZeroDivisionError('no steps per epoch')

  def make_tf2_layer(self):
    return self.Raising()


class LayerExits(SmallCase):
  class Exiting(small_case.Port):
    def call(self, inputs, training=False):
      sys.exit(3)

  def make_tf2_layer(self):
    return self.Exiting()


class MakeLayerRaises(SmallCase):
  def make_tf2_layer(self):
    return small_case.Port(units=3)


class CallRaises(SmallCase):
  def call_tf2_layer(self, layer, inputs, training):
    return layer(inputs)['logits']


class LossRaises(SmallCase):
  def loss(self, outputs):
    raise ValueError('no labels')


class LossIsNoTensor(SmallCase):
  def loss(self, outputs):
    return [outputs]


class LossRaisesInTf2(SmallCase):
  def loss(self, outputs):
    if tf.executing_eagerly():
      raise ValueError('not eagerly')
    return tf.reduce_sum(outputs)


class MakeInputsRaises(SmallCase):
  def make_inputs(self):
    with open('no such file.npy', 'rb') as file:
      return np.load(file)


class MakeInputsExits(SmallCase):
  def make_inputs(self):
    sys.exit('no inputs')


class FillRaises(SmallCase):
  def fill_values(self, name, shape, dtype):
    raise KeyError(name)


class RegularizationRaises(SmallCase):
  def tf2_regularization_losses(self, layer):
    return layer.regularizers


# What the layer is.


class UndecoratedCountsUp(SmallCase):
  class Undecorated(tf.keras.layers.Layer):
    def call(self, inputs):
      return small_case.dense(inputs)

  def build_tf1_graph(self, inputs, training):
    return small_case.dense(inputs)

  def make_tf2_layer(self):
    return self.Undecorated()


class UndecoratedKeepsFirst(UndecoratedCountsUp):
  """Makes its variable once, but not so that Keras would know of it."""

  class Undecorated(tf.keras.layers.Layer):
    def build(self, shape):
      kernel = tf.Variable(tf.ones((3, 2)), name='dense/kernel')
      self.multiply = lambda inputs: tf.matmul(inputs, kernel)

    def call(self, inputs):
      return self.multiply(inputs)


class SameLayerTwice(SmallCase):
  layers: list[Any] = []

  def make_tf2_layer(self):
    if not self.layers:
      self.layers.append(small_case.Port())
    return self.layers[0]


class LayerAlreadyBuilt(SmallCase):
  def make_tf2_layer(self):
    layer = small_case.Port()
    layer(np.ones((4, 3), np.float32))
    return layer


class LayerIsFunction(SmallCase):
  def make_tf2_layer(self):
    return small_case.model


class LayerIsNone(SmallCase):
  def make_tf2_layer(self):
    small_case.Port()


class LayerIsClass(SmallCase):
  def make_tf2_layer(self):
    return small_case.Port


class LayerIsKeras3(SmallCase):
  def make_tf2_layer(self):
    import keras

    return keras.layers.Dense(2)


class ModuleNotCallable(SmallCase):
  def make_tf2_layer(self):
    return tf.Module()


class LayerReturnsNone(SmallCase):
  class Silent(tf.keras.layers.Layer):
    @small_case.tracked
    def call(self, inputs):
      small_case.dense(inputs)

  def make_tf2_layer(self):
    return self.Silent()


class LayerReturnsObject(SmallCase):
  def call_tf2_layer(self, layer, inputs, training):
    return {'logits': layer(inputs, training=training), 'layer': layer}


# Inputs.


class InputsAreTensors(SmallCase):
  def make_inputs(self):
    return {'image': tf.ones((4, 3))}


class InputsAreLists(SmallCase):
  def make_inputs(self):
    return [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


class InputsHaveNan(SmallCase):
  def make_inputs(self):
    return np.array([[0.0, np.nan, 2.0], [3.0, np.nan, 5.0]], np.float32)


class InputsAreObjects(SmallCase):
  def make_inputs(self):
    return np.array([[1.0], [1.0, 2.0]], dtype=object)


class InputsAreNone(SmallCase):
  def make_inputs(self):
    np.ones((4, 3))


class InputsAreEmptyNest(SmallCase):
  def make_inputs(self):
    return {}


class InputsHaveNoElement(SmallCase):
  def make_inputs(self):
    return np.ones((0, 3), np.float32)


class InputsOfWrongShape(SmallCase):
  def make_inputs(self):
    return np.ones((4, 5), np.float32)


# What there is nothing of.


class NoVariables(SmallCase):
  class Nothing(tf.keras.layers.Layer):
    def call(self, inputs):
      return 2.0 * inputs

  def build_tf1_graph(self, inputs, training):
    return 2.0 * inputs

  def make_tf2_layer(self):
    return self.Nothing()


class NoTrainableVariables(SmallCase):
  class Frozen(tf.keras.layers.Layer):
    @small_case.tracked
    def call(self, inputs):
      return small_case.dense(inputs, trainable=False)

  def build_tf1_graph(self, inputs, training):
    return small_case.dense(inputs, trainable=False)

  def make_tf2_layer(self):
    return self.Frozen()


# Attributes.


class StageUnknown(SmallCase):
  stages = ('no_new_variables', 'gradient')


class StageWithoutReason(SmallCase):
  stages = ('no_new_variables', 'variable_inventory')


class StagesAreText(SmallCase):
  stages = 'gradients'


class ToleranceIsNumber(SmallCase):
  tolerance = 1e-3  # type: ignore[assignment]


class GradientToleranceOfUnknownDtype(SmallCase):
  gradient_tolerance = {'float31': tf2verify.Tolerance(1e-3, 1e-3)}


class TrainingModesEmpty(SmallCase):
  training_modes = ()


class TrainingModesAreTexts(SmallCase):
  training_modes = ('train', 'eval')  # type: ignore[assignment]


class TrainingModesIsBool(SmallCase):
  training_modes = True  # type: ignore[assignment]


class VariableNamesIsList(SmallCase):
  variable_names = ['dense/kernel']  # type: ignore[assignment]


class VariableNamesUnknown(SmallCase):
  variable_names = {'dense/kernal': 'kernel'}


class VariableNamesRaises(SmallCase):
  def variable_names(self, name):
    return {}[name]


class FillOfWrongShape(SmallCase):
  def fill_values(self, name, shape, dtype):
    return np.zeros((7,), dtype)


class FillOfWrongType(SmallCase):
  def fill_values(self, name, shape, dtype):
    return [0.5, 0.25]


class FillOfWrongDtype(SmallCase):
  def fill_values(self, name, shape, dtype):
    return np.full(shape, 'x')
