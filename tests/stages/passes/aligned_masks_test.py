"""Tests of masks that are ones and then zeros in every example of a case."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_SAID = 'is ones and then zeros, and both sides agree; from its end'
_ALIGNED = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]


class _Port(keras.layers.Layer):
  """Takes the mean of the steps that a mask keeps, or of as many first ones."""

  def __init__(self, counts):
    super().__init__(name='pool')
    self.counts = counts
    self.dense = keras.layers.Dense(3, name='dense')

  def call(self, inputs):
    kept = inputs['mask']
    if self.counts:
      ends = tf.cast(tf.reduce_sum(kept, 1), tf.int32)
      kept = tf.sequence_mask(ends, tf.shape(kept)[1], tf.float32)
    net = self.dense(inputs['steps'])
    return keras.ops.einsum('btd,bt->bd', net, kept) / keras.ops.sum(kept, 1, keepdims=True)


def _case(counts, mask=_ALIGNED):
  class Case(tf2verify.EquivalenceCase):
    training_modes = (False,)

    def build_tf1_graph(self, inputs, training):
      net, kept = v1.layers.dense(inputs['steps'], 3, name='dense'), inputs['mask'][:, :, None]
      return tf.reduce_sum(net * kept, 1) / tf.reduce_sum(kept, 1)

    def make_tf2_layer(self):
      return _Port(counts)

    def make_inputs(self):
      return {'steps': tf2verify.normal_inputs((3, 4, 5)), 'mask': np.array(mask, np.float32)}

  return Case


class AlignedMasksTest(absltest.TestCase):
  def verdict(self, *arguments):
    return tf2verify.verify(_case(*arguments), stages=['zero_randomness'])

  def spots(self, *arguments):
    verdict = self.verdict(*arguments)
    self.assertIsNone(verdict.first_failure, verdict.to_text())
    return [spot for spot in verdict.stages[-1].blind_spots if _SAID in spot]

  def test_port_that_counts(self):
    (spot,) = self.spots(True)
    self.assertIn("every example of inputs['mask'] is", spot)

  def test_port_that_reads_the_mask(self):
    self.assertEmpty(self.spots(False))

  def test_mask_that_is_not_aligned_fails(self):
    mask = [[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0]]
    self.assertIsNotNone(self.verdict(True, mask).first_failure)
    self.assertEmpty(self.spots(False, mask))


if __name__ == '__main__':
  absltest.main()
