"""Ports for one size in training alone."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
STAGE = 'gradients'


class Dropped(tiny_models.OneModel, abc.ABC):
  """An affine map with dropout, whose outputs are weighted in training."""

  def model(self, inputs, training, weights=None):
    found = v1.layers.dropout(inputs @ kernel() + bias(), 0.5, training=training)
    if not training:
      return found
    return found * (tf.ones([tf.shape(inputs)[0], 1]) if weights is None else weights(inputs))


class SizeInTrainingTest(LadderTestCase):
  def test_examples_beyond_a_fixed_batch_are_left_out(self):
    class Case(Dropped):
      def port(self, inputs, training):
        def weights(inputs):
          beyond = tf.zeros([tf.shape(inputs)[0] - 4, 1])
          return tf.concat([tf.ones([4, 1]), beyond], 0)

        return self.model(inputs, training, weights)

    self.assert_first_failure(Case, STAGE, '[training, distinct values, batch 5]')

  def test_a_port_that_raises(self):
    class Case(Dropped):
      def port(self, inputs, training):
        return self.model(inputs, training, lambda _: tf.ones([4, 1]))

    text = self.assert_first_failure(Case, STAGE, 'the reference accepts batch 5 in training')
    self.assertIn('hard-coded in what the port does only in training', text)

  def test_a_right_port(self):
    class Case(Dropped):
      pass

    verdict = tf2verify.verify(Case, stages=[STAGE])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_a_declared_size_is_tried(self):
    class Case(Dropped):
      other_sizes = (7, 3)

      def port(self, inputs, training):
        return self.model(inputs, training, lambda _: tf.ones([4, 1]))

    self.assert_first_failure(Case, STAGE, 'accepts inputs of shape (7, 3) in training')

  def test_none_where_the_case_forbids_it(self):
    class Case(Dropped):
      other_sizes = ()

      def port(self, inputs, training):
        return self.model(inputs, training, lambda _: tf.ones([4, 1]))

    verdict = tf2verify.verify(Case, stages=[STAGE])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
