"""Masks that the port has, and that a rule must not call missing; and one that goes too far."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1


class Align(keras.layers.Layer):
  """Aligns the steps of one sequence to another, by a softmax over the steps that are there."""

  def __init__(self, axis, masked=True):
    super().__init__(name='net')
    self.axis, self.masked = axis, masked
    self.score = keras.layers.Dense(3, use_bias=False, name='score')

  def call(self, inputs):
    steps = inputs['steps']
    there = keras.ops.arange(keras.ops.shape(steps)[1])[None] < inputs['lengths'][:, None]
    away = (1.0 - keras.ops.cast(there, 'float32')) * -1e9
    logits = keras.ops.einsum('bpd,bhd->bph', self.score(steps), steps)
    logits = logits + away[:, :, None] if self.masked else logits
    return keras.ops.einsum('bph,bpd->bhd', keras.ops.softmax(logits, self.axis), steps)


class Aligned(tf2verify.EquivalenceCase, abc.ABC):
  axis, masked = 1, True

  def make_inputs(self):
    return {'steps': tf2verify.normal_inputs((2, 4, 3)), 'lengths': np.array([4, 2], np.int32)}

  def build_tf1_graph(self, inputs, training):
    steps = inputs['steps']
    scores = v1.layers.dense(steps, 3, use_bias=False, name='score')
    there = tf.sequence_mask(inputs['lengths'], tf.shape(steps)[1], dtype=tf.float32)
    logits = tf.transpose(tf.matmul(scores, steps, transpose_b=True), [0, 2, 1])
    return tf.matmul(tf.nn.softmax(logits + tf.expand_dims((1.0 - there) * -1e9, 1)), steps)

  def make_tf2_layer(self):
    return Align(self.axis, self.masked)


class Normalized(tf2verify.EquivalenceCase, abc.ABC):
  """A batch norm behind a recurrent layer with a mask, which Keras 3 passes on to it."""

  passes_on = False

  def make_inputs(self):
    return {'steps': tf2verify.normal_inputs((3, 4, 2)), 'lengths': np.array([4, 2, 3], np.int32)}

  def build_tf1_graph(self, inputs, training):
    steps = v1.layers.dense(inputs['steps'], 3, name='dense')
    return v1.layers.batch_normalization(steps, training=training, fused=False, name='norm')

  def make_tf2_layer(self):
    case = self

    class Net(keras.layers.Layer):
      def __init__(self):
        super().__init__(name='net')
        self.dense = keras.layers.Dense(3, name='dense')
        self.norm = keras.layers.BatchNormalization(name='norm')

      def call(self, inputs, training=False):
        there = tf.sequence_mask(inputs['lengths'], tf.shape(inputs['steps'])[1])
        steps = self.dense(inputs['steps'])
        return self.norm(steps, training=training, mask=there if case.passes_on else None)

    return Net()


class MaskedPortsTest(LadderTestCase):
  def text(self, case, stage):
    return tf2verify.verify(case, [stage]).first_failure.to_text()

  def test_softmax_over_another_axis(self):
    class Case(Aligned):
      axis = -1

    self.assertNotIn('not masked', self.text(Case, 'zero_randomness'))

  def test_softmax_without_the_mask(self):
    class Case(Aligned):
      masked = False

    self.assertIn('in the port are not masked', self.text(Case, 'zero_randomness'))

  def test_softmax_of_the_right_port(self):
    class Case(Aligned):
      pass

    verdict = tf2verify.verify(Case, ['zero_randomness'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_batch_norm_of_masked_steps(self):
    class Case(Normalized):
      passes_on = True

    text = ' '.join(self.text(Case, 'seeded_constant').split())
    self.assertIn('over the elements alone that a mask leaves', text)
    self.assertNotIn('uses its moving averages', text)

  def test_batch_norm_of_the_right_port(self):
    class Case(Normalized):
      pass

    verdict = tf2verify.verify(Case, ['seeded_constant'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
