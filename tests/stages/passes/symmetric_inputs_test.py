"""Tests of matrices of a case that are symmetric: columns are as good as rows."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_SAID = 'is symmetric, and both sides agree'
_EDGES = [[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]]


class _Port(keras.layers.Layer):
  """A layer of a graph network, which takes the mean of what neighbours send."""

  def __init__(self, turns):
    super().__init__(name='net')
    self.turns = turns
    self.dense = keras.layers.Dense(3, name='dense')

  def call(self, inputs):
    edges = inputs['edges']
    if self.turns:
      edges = tf.linalg.matrix_transpose(edges)
    sent = keras.ops.where(edges[..., None] > 0.0, self.dense(inputs['nodes'])[:, None], 0.0)
    return keras.ops.sum(sent, 2) / keras.ops.sum(edges, -1, keepdims=True)


def _case(turns, edges=_EDGES):
  class Case(tf2verify.EquivalenceCase):
    training_modes = (False,)
    other_sizes = ()

    def build_tf1_graph(self, inputs, training):
      edges = inputs['edges']
      net = v1.layers.dense(inputs['nodes'], 3, name='dense')
      return tf.matmul(edges, net) / tf.reduce_sum(edges, -1, keepdims=True)

    def make_tf2_layer(self):
      return _Port(turns)

    def make_inputs(self):
      return {
        'nodes': tf2verify.normal_inputs((2, 4, 5)),
        'edges': np.array([edges] * 2, np.float32),
      }

  return Case


class SymmetricInputsTest(absltest.TestCase):
  def verdict(self, *arguments):
    return tf2verify.verify(_case(*arguments), stages=['zero_randomness'])

  def spots(self, *arguments):
    verdict = self.verdict(*arguments)
    self.assertIsNone(verdict.first_failure, verdict.to_text())
    return [spot for spot in verdict.stages[-1].blind_spots if _SAID in spot]

  def test_port_that_reads_columns_for_rows(self):
    (spot,) = self.spots(True)
    self.assertIn("inputs['edges'] is symmetric", spot)

  def test_right_port(self):
    self.assertEmpty(self.spots(False))

  def test_input_that_is_not_symmetric_tells(self):
    edges = [[1, 1, 0, 0], *_EDGES[1:]]
    self.assertIsNotNone(self.verdict(True, edges).first_failure)


if __name__ == '__main__':
  absltest.main()
