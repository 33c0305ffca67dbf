"""Tests of losses with weights that are no labels, but computed of them."""

import functools

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


def _weights(labels):
  return tf.gather([1.0, 2.0, 0.0], tf.argmax(labels, -1))


def _entropy(labels, outputs, **arguments):
  loss = keras.losses.CategoricalCrossentropy(from_logits=True, **arguments)
  return loss(labels, outputs, _weights(labels))


def _present(labels):
  return tf.cast(tf.math.count_nonzero(_weights(labels)), tf.float32)


def _case(tf2, smoothing=0.0):
  class Case(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      return v1.layers.dense(inputs, 3, name='fc')

    def make_tf2_layer(self):
      return keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, name='fc')])

    def make_inputs(self):
      return tf2verify.normal_inputs((4, 3))

    def make_labels(self):
      return np.eye(3, dtype=np.float32)[[0, 2, 1, 1]]

    def tf1_loss(self, outputs, labels):
      weights = _weights(labels)
      return v1.losses.softmax_cross_entropy(labels, outputs, weights, label_smoothing=smoothing)

    def tf2_loss(self, outputs, labels):
      return tf2(outputs, labels)

  return Case


def _right(outputs, labels, **arguments):
  summed = _entropy(labels, outputs, reduction='sum', **arguments)
  return tf.math.divide_no_nan(summed, _present(labels))


class ComputedWeightsTest(absltest.TestCase):
  def said(self, case):
    return tf2verify.verify(case, stages=['loss']).first_failure.to_text()

  def test_denominator(self):
    text = self.said(_case(lambda outputs, labels: _entropy(labels, outputs)))
    self.assertIn('divided by the number of weights that are not zero in tf1', text)
    self.assertIn('by the batch size in tf2', text)
    self.assertRegex(text, r'the weights of computed_weights_test\.py:\d+')

  def test_smoothing(self):
    self.assertIn('tf1 smooths its labels by 0.1, tf2 does not', self.said(_case(_right, 0.1)))

  def test_smoothing_and_denominator_are_both_said(self):
    text = self.said(_case(lambda outputs, labels: _entropy(labels, outputs), 0.1))
    self.assertIn('tf1 smooths its labels by 0.1, tf2 does not', text)
    self.assertIn('not zero in tf1 and by the batch size in tf2', text)

  def test_right_ports_pass(self):
    for smoothing in (0.0, 0.1):
      port = functools.partial(_right, label_smoothing=smoothing)
      verdict = tf2verify.verify(_case(port, smoothing), stages=['loss'])
      self.assertIsNone(verdict.first_failure, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
