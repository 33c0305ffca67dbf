"""Tests of variables that only a branch reads which eager mode does not take."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import kernel

v1 = tf.compat.v1
_STAGE = 'gradients'


class _Branched(tiny_models.Affine, abc.ABC):
  """A variable that only the branch reads which is not taken."""

  def build_tf1_graph(self, inputs, training):
    return self.branched(inputs, lambda idle: idle)

  def model(self, inputs, training):
    return self.branched(inputs, self.read)

  def read(self, idle):
    return idle

  def branched(self, inputs, read):
    found, idle = inputs @ kernel(), v1.get_variable('idle', [3])
    low = tf.reduce_sum(inputs) < -1e6
    return tf.cond(low, lambda: found * read(idle), lambda: found)


class EagerBranchesTest(LadderTestCase):
  def test_no_gradient_in_eager_mode_alone(self):
    self.assert_passes(_Branched, _STAGE)

  def test_cut_gradient_in_the_branch(self):
    class Case(_Branched):
      def read(self, idle):
        return tf.stop_gradient(idle)

    self.assert_first_failure(Case, _STAGE, 'gradient idle', 'presence differs')

  def test_steps(self):
    class Case(_Branched):
      def make_labels(self):
        return tf2verify.normal_inputs((4, 3), seed=1)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs - labels))

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs - labels))

      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(0.1)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.Adam(0.1, epsilon=1e-8)

    self.assert_passes(Case, 'training_steps')


if __name__ == '__main__':
  absltest.main()
