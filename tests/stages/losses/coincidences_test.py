"""Losses in which numbers of the two sides agree by chance, or stand for one another."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_TARGET = np.array([1, 0, 0, 1, 1, 0, 1, 0], np.float32)[:, None]
_WEIGHT = np.array([1, 1, 0, 0, 1, 0, 1, 0], np.float32)[:, None]  # half of them count


def _case(tf1, tf2):
  class Case(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      return v1.layers.dense(inputs, 1, name='fc')

    def make_tf2_layer(self):
      return keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name='fc')])

    def make_inputs(self):
      return tf2verify.normal_inputs((8, 3))

    def make_labels(self):
      return {'target': _TARGET, 'weight': _WEIGHT}

    def tf1_loss(self, outputs, labels):
      return tf1(outputs, labels)

    def tf2_loss(self, outputs, labels):
      return tf2(outputs, labels)

  return Case


def _found(tf1, tf2):
  verdict = tf2verify.verify(_case(tf1, tf2), stages=['loss'])
  return next(stage for stage in verdict.stages if stage.stage == 'loss')


def _entropy(outputs, labels):
  return tf.nn.sigmoid_cross_entropy_with_logits(labels['target'], outputs)


class CoincidencesTest(absltest.TestCase):
  def test_half_of_the_examples_and_a_weight_of_one_half(self):
    """The port's mean over all examples is TF1's mean over those that count, times 0.5."""

    def tf1(outputs, labels):
      part = v1.losses.sigmoid_cross_entropy(labels['target'], outputs, labels['weight'])
      return {'all': tf.reduce_mean(_entropy(outputs, labels)), 'part': 0.5 * part}

    def tf2(outputs, labels, count=tf.size):
      summed = tf.reduce_sum(_entropy(outputs, labels) * labels['weight'])
      part = tf.math.divide_no_nan(summed, tf.cast(count(labels['weight']), tf.float32))
      return {'all': tf.reduce_mean(_entropy(outputs, labels)), 'part': 0.5 * part}

    def right(outputs, labels):
      return tf2(outputs, labels, tf.math.count_nonzero)

    self.assertIs(_found(tf1, right).status, tf2verify.Status.PASSED)
    failed = _found(tf1, tf2)
    (cause,) = failed.diagnosis.causes
    self.assertTrue(cause.is_proven, failed.to_text())
    self.assertIn('is Cast(x=8) in the port, Sum', cause.text)

  def test_a_number_that_the_port_holds_for_each_element(self):
    def tf1(outputs, labels):
      return tf.reduce_mean(v1.squared_difference(outputs, 0.9)) / 2

    def squared(number):
      def loss(outputs, labels):
        ones = tf.ones_like(outputs)
        wanted = ones if number == 1.0 else number * ones
        return 0.5 * tf.keras.losses.MeanSquaredError()(wanted, outputs)

      return loss

    self.assertIs(_found(tf1, squared(0.9)).status, tf2verify.Status.PASSED)
    failed = _found(tf1, squared(1.0))
    (cause,) = failed.diagnosis.causes
    self.assertTrue(cause.is_proven, failed.to_text())
    self.assertIn('is 1 everywhere in the port, 0.9 in tf1', cause.text)

  def test_a_sign_in_another_place_is_no_difference(self):
    """A sum of negated terms: without its sign the port would not agree."""

    def tf1(outputs, labels):
      p = tf.clip_by_value(tf.sigmoid(outputs), 1e-4, 1 - 1e-4)
      terms = tf.math.log(p) * tf.pow(1 - p, 2) * labels['target']
      others = tf.math.log(1 - p) * tf.pow(p, 2) * (1 - labels['target'])
      summed = tf.reduce_sum(terms) + tf.reduce_sum(others)
      return -summed / tf.maximum(tf.reduce_sum(labels['weight']), 1.0)

    def tf2(outputs, labels):
      p = tf.clip_by_value(tf.sigmoid(outputs), 1e-4, 1 - 1e-4)
      terms = -tf.square(1.0 - p) * tf.math.log(p)
      others = -tf.square(p) * tf.math.log(1.0 - p)
      summed = tf.reduce_sum(tf.where(labels['target'] == 1.0, terms, others))
      return summed / tf.maximum(tf.reduce_sum(labels['weight']), 1.0)

    found = _found(tf1, tf2)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertNotIn('computes Neg', ' '.join(found.blind_spots))


if __name__ == '__main__':
  absltest.main()
