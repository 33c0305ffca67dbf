import abc

import keras as keras3
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1


class Rows(tf2verify.EquivalenceCase, abc.ABC):
  """Looks rows up; the gradient is one of IndexedSlices."""

  layer: type

  def build_tf1_graph(self, inputs, training):
    ones = v1.ones_initializer()
    with v1.variable_scope('rows'):
      return tf.nn.embedding_lookup(v1.get_variable('embeddings', [5, 4], initializer=ones), inputs)

  def make_tf2_layer(self):
    return self.layer()

  def make_inputs(self):
    return np.array([3, 0, 3, 2], np.int32)


def of_keras3():
  return keras3.layers.Embedding(5, 4, embeddings_initializer='ones', name='rows')


class InAnAttribute(tf.Module):
  def __init__(self):
    super().__init__()
    self.rows = of_keras3()

  def __call__(self, inputs):
    return self.rows(inputs)


class ByProperty(InAnAttribute):
  """Says that the variables of Keras 3 are its own."""

  @property
  def variables(self):
    return tuple(self.rows.variables)

  @property
  def trainable_variables(self):
    return tuple(self.rows.trainable_variables)


class InADictionary(tf.Module):
  def __init__(self):
    super().__init__()
    self.parts = {'rows': [of_keras3()]}

  def __call__(self, inputs):
    return self.parts['rows'][0](inputs)


class InALayer(tf.keras.layers.Layer):
  def __init__(self):
    super().__init__()
    self.inner = InAnAttribute()

  def call(self, inputs):
    return self.inner(inputs)


def called_in_a_functional_model():
  """It keeps the operations of the layer, and not the layer."""
  inputs = tf.keras.Input((), dtype='int32')
  return tf.keras.Model(inputs, of_keras3()(inputs))


class Owned(InAnAttribute):
  """Keeps the variables that the layer of Keras 3 computes with."""

  def __call__(self, inputs):
    outputs = self.rows(inputs)
    self.kept = [variable.value for variable in self.rows.variables]
    return outputs


class WithoutVariables(tf.Module):
  def __init__(self):
    super().__init__()
    self.activation = keras3.layers.Activation('linear')
    self.embeddings = None

  def __call__(self, inputs):
    if self.embeddings is None:
      self.embeddings = tf.Variable(tf.ones([5, 4]), name='rows/embeddings')
    return self.activation(tf.nn.embedding_lookup(self.embeddings, inputs))


def of_tf_keras():
  return tf.keras.layers.Embedding(5, 4, embeddings_initializer='ones', name='rows')


class Keeps(keras3.layers.Layer):
  """Calls a layer of tf-keras, which is wherever `keep` has put it."""

  def __init__(self, keep):
    super().__init__()
    self.rows = None
    self.look_up = keep(self)

  def call(self, inputs):
    return self.look_up(inputs)


def in_an_attribute(port):
  port.rows = of_tf_keras()
  return lambda inputs: port.rows(inputs)


def in_a_list(port):
  port.parts = [{'rows': of_tf_keras()}]
  return lambda inputs: port.parts[0]['rows'](inputs)


def in_a_closure(port):
  rows = of_tf_keras()
  return lambda inputs: rows(inputs)


def in_a_lambda(port):
  rows = of_tf_keras()
  return keras3.layers.Lambda(lambda inputs: rows(inputs))


def in_a_plain_object(port):
  port.holder = InAnObject()
  return lambda inputs: port.holder.rows(inputs)


class InAnObject:
  def __init__(self):
    self.rows = of_tf_keras()


def made_in_call(port):
  def look_up(inputs):
    port.rows = port.rows or of_tf_keras()
    return port.rows(inputs)

  return look_up


def in_an_inner_layer(port):
  port.inner = Keeps(in_an_attribute)
  return lambda inputs: port.inner(inputs)


def functional(port):
  del port
  inputs = keras3.Input((), dtype='int32')
  return keras3.Model(inputs, Keeps(in_an_attribute)(inputs))


class OldInNewTest(LadderTestCase):
  """Layers of tf-keras in one of Keras 3."""

  def test_named_with_place_flag_and_fix(self):
    for keep, place in (
      (in_an_attribute, 'Keeps.rows is'),
      (in_a_list, "Keeps.parts[0]['rows'] is"),
      (in_a_closure, 'Keeps.look_up (rows) is'),
      (in_a_lambda, 'Keeps.look_up.function (rows) is'),
      (in_a_plain_object, 'Keeps.holder.rows is'),
      (made_in_call, 'Keeps.rows is'),
      (in_an_inner_layer, 'Keeps.inner.rows is'),
      (functional, 'Keeps.look_up.layers[1].rows is'),
    ):
      with self.subTest(keep.__name__):
        case = type('Case', (Rows,), {'layer': lambda self, keep=keep: Keeps(keep)})
        verdict = tf2verify.verify(case, stages=['gradients'])
        text = verdict.to_text()
        self.assertIs(verdict.stages[0].status, tf2verify.Status.ERROR, text)
        self.assertIn(f'{place} a layer of tf-keras', text)
        self.assertIn('use keras.layers.Embedding of Keras 3', text)
        self.assertRegex(text, r'because .* TF_USE_LEGACY_KERAS=1')

  def test_what_keras_raises_is_explained(self):
    def given_a_tensor(case):
      inputs = keras3.Input((), dtype='int32')
      return keras3.Model(inputs, of_tf_keras()(inputs))

    def given_a_layer(case):
      return keras3.Sequential([of_tf_keras()])

    def the_reverse(case):
      return tf.keras.Sequential([of_keras3()])

    for make, said in (
      (given_a_tensor, 'tf-keras was given a symbolic tensor of Keras 3'),
      (given_a_layer, 'Keras 3 was given Embedding of tf-keras'),
      (the_reverse, 'tf-keras was given Embedding of Keras 3'),
    ):
      with self.subTest(make.__name__):
        verdict = tf2verify.verify(
          type('Case', (Rows,), {'make_tf2_layer': make}), stages=['gradients']
        )
        text = verdict.to_text()
        self.assertIs(verdict.stages[0].status, tf2verify.Status.ERROR, text)
        self.assertIn(said, text)
        self.assertRegex(text, r'because .* TF_USE_LEGACY_KERAS=1')

  def test_a_metric_of_tf_keras_is_no_layer(self):
    def with_metric(port):
      port.metric = tf.keras.metrics.Mean()
      port.rows = of_keras3()
      return lambda inputs: port.rows(inputs)

    case = type('Case', (Rows,), {'layer': lambda self: Keeps(with_metric)})
    verdict = tf2verify.verify(case, stages=['zero_randomness'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


class Keras3PartsTest(LadderTestCase):
  def test_named_with_the_fix(self):
    for layer, place in (
      (InAnAttribute, 'InAnAttribute.rows'),
      (ByProperty, 'ByProperty.rows'),
      (InADictionary, "InADictionary.parts['rows'][0]"),
      (InALayer, 'InALayer.inner.rows'),
    ):
      with self.subTest(layer.__name__):
        case = type('Case', (Rows,), {'layer': layer})
        verdict = tf2verify.verify(case, stages=['gradients'])
        text = verdict.to_text()
        self.assertIs(verdict.stages[0].status, tf2verify.Status.ERROR, text)
        self.assertIn(f"Embedding 'rows' of Keras 3 in {place}: ", text)
        self.assertIn('make it of tf.keras.layers', text)

  def test_only_its_operations_are_there(self):
    case = type('Case', (Rows,), {'layer': lambda self: called_in_a_functional_model()})
    verdict = tf2verify.verify(case, stages=['gradients'])
    text = verdict.to_text()
    self.assertIs(verdict.stages[0].status, tf2verify.Status.ERROR, text)
    self.assertIn("the port computes with 'rows/embeddings' of a layer of Keras 3: ", text)

  def test_what_holds_its_variables_is_right(self):
    for layer in (Owned, WithoutVariables):
      with self.subTest(layer.__name__):
        self.assert_passes(type('Case', (Rows,), {'layer': layer}), 'gradients')


if __name__ == '__main__':
  absltest.main()
