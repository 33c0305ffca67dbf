"""Levels of a pyramid whose operations have the names of each other's in the port."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_STAGE = 'zero_randomness'


def boxes(features, indexing):
  size = int(features.shape[1])
  grid = tf.stack(tf.meshgrid(tf.range(size), tf.range(size), indexing=indexing), axis=-1)
  return (tf.sigmoid(features) + tf.cast(grid, tf.float32)[None]) * (16.0 / size)


class Levels(keras.layers.Layer):
  """The levels of TF1, the smaller one first."""

  def __init__(self, indexing):
    super().__init__(name='net')
    self.indexing = indexing
    self.dense = keras.layers.Dense(2, name='dense')

  def call(self, inputs):
    features = self.dense(inputs)
    small = boxes(tf.nn.avg_pool2d(features, 2, 2, 'VALID'), self.indexing)
    return {'large': boxes(features, self.indexing), 'small': small}


class Pyramid(tf2verify.EquivalenceCase, abc.ABC):
  indexing = 'xy'

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 8, 8, 3))

  def build_tf1_graph(self, inputs, training):
    features = v1.layers.dense(inputs, 2, name='dense')
    large = boxes(features, 'xy')
    return {'large': large, 'small': boxes(tf.nn.avg_pool2d(features, 2, 2, 'VALID'), 'xy')}

  def make_tf2_layer(self):
    return Levels(self.indexing)


class CrossedLevelsTest(absltest.TestCase):
  def test_exchanged_axes(self):
    class Case(Pyramid):
      indexing = 'ij'

    text = ' '.join(tf2verify.verify(Case, [_STAGE]).first_failure.to_text().split())
    self.assertNotIn('is 4 in the port, 8 in tf1', text)
    self.assertNotIn('is 8 in the port, 4 in tf1', text)

  def test_the_right_port(self):
    class Case(Pyramid):
      pass

    verdict = tf2verify.verify(Case, [_STAGE])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
