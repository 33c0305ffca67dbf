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

  def test_what_holds_its_variables_is_right(self):
    for layer in (Owned, WithoutVariables):
      with self.subTest(layer.__name__):
        self.assert_passes(type('Case', (Rows,), {'layer': layer}), 'gradients')


if __name__ == '__main__':
  absltest.main()
