"""Tests of examples without steps, and of one step, where lengths or masks tell of them."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
_SAID = 'both sides agree, with an example of'
_LENGTHS, _MASK = [4, 2, 3], [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1]]
_LEAST = -(2.0**32) + 1


class _Port(keras.layers.Layer):
  """Takes the mean of steps by a softmax of their scores, of those that are kept."""

  def __init__(self, how):
    super().__init__(name='pool')
    self.how = how
    self.score = keras.layers.Dense(1, name='score')

  def call(self, inputs):
    steps = inputs['steps']
    if self.how == 'sum':
      kept = keras.ops.cast(_kept(inputs), 'float32')
      total = keras.ops.sum(self.score(steps)[..., 0] * kept, 1)
      return total / keras.ops.maximum(keras.ops.sum(kept, 1), 2.0)
    scores = keras.ops.where(_kept(inputs), self.score(steps)[..., 0], _LEAST)
    weights = keras.ops.softmax(scores, axis=-1)
    if self.how == 'after':
      weights = weights * keras.ops.cast(_kept(inputs), 'float32')
    return keras.ops.einsum('bt,btd->bd', weights, steps)


def _kept(inputs):
  if 'mask' in inputs:
    return inputs['mask'] > 0
  return tf.sequence_mask(inputs['lengths'], 4)


def _case(how, kept):
  class Case(tf2verify.EquivalenceCase):
    training_modes = (False,)

    def build_tf1_graph(self, inputs, training):
      steps = inputs['steps']
      scores = tf.squeeze(v1.layers.dense(steps, 1, name='score'), -1)
      if how == 'sum':
        kept = tf.cast(_kept(inputs), tf.float32)
        return tf.reduce_sum(scores * kept, 1) / tf.reduce_sum(kept, 1)
      scores = tf.where(_kept(inputs), scores, tf.fill(tf.shape(scores), _LEAST))
      return tf.reduce_sum(steps * tf.nn.softmax(scores)[..., None], 1)

    def make_tf2_layer(self):
      return _Port(how)

    def make_inputs(self):
      return {'steps': tf2verify.normal_inputs((3, 4, 5)), **kept}

  return Case


class ShortExamplesTest(parameterized.TestCase):
  def spots(self, how, name, values, dtype):
    case = _case(how, {name: np.array(values, dtype)})
    verdict = tf2verify.verify(case, stages=['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())
    return [spot for spot in verdict.stages[-1].blind_spots if _SAID in spot]

  @parameterized.parameters(
    ('lengths', _LENGTHS, np.int32), ('mask', _MASK, np.float32), ('mask', _MASK, np.int64)
  )
  def test_mask_behind_the_softmax(self, name, values, dtype):
    (spot,) = self.spots('after', name, values, dtype)
    self.assertIn(f"inputs['{name}'] that is empty they differ (output (the output)[1, ", spot)
    self.assertIn(': tf1 ', spot)
    self.assertIn(', tf2 0), first at ', spot)
    self.assertIn('in the port (with short_examples_test.py:', spot)

  @parameterized.parameters(('lengths', _LENGTHS, np.int32), ('mask', _MASK, np.float32))
  def test_mask_before_the_softmax(self, name, values, dtype):
    self.assertEmpty(self.spots('before', name, values, dtype))

  def test_bound_that_one_step_is_below(self):
    (spot,) = self.spots('sum', 'lengths', _LENGTHS, np.int32)
    self.assertIn('that is of one step they differ', spot)  # an empty one is 0 / 0 in tf1


if __name__ == '__main__':
  absltest.main()
