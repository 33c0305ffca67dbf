"""Tests of variables that a loop reads, and no output depends on."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import kernel

v1 = tf.compat.v1
_STAGE = 'gradients'


class _Looped(tiny_models.Affine, abc.ABC):
  """A loop with a second state that nothing reads after it."""

  in_loop, reads_it = True, False

  def build_tf1_graph(self, inputs, training):
    return self.looped(inputs, self.in_loop)

  def model(self, inputs, training):
    return self.looped(inputs, not self.in_loop)

  def looped(self, inputs, in_loop):
    first, second = inputs @ kernel(), tf.zeros_like(inputs[:, :3])
    idle = v1.get_variable('idle', [3])

    def body(n, first, second):
      return n + 1, 0.5 * first, second + idle

    if in_loop:
      _, first, second = tf.while_loop(lambda n, *_: n < 2, body, [0, first, second])
    else:
      for n in range(2):
        _, first, second = body(n, first, second)
    return first + second if self.reads_it else first


class _Trained(_Looped, abc.ABC):
  """The same with a loss and Adam; the variable that no output depends on has no gradient."""

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


class UnreadVariablesTest(LadderTestCase):
  def test_steps(self):
    self.assert_passes(_Trained, 'training_steps')

  def test_zeros_of_a_loop_are_no_gradient(self):
    class Other(_Looped):
      in_loop = False

    for case in (_Looped, Other):
      self.assert_passes(case, _STAGE)

  def test_cut_gradient_of_what_is_dead_for_these_inputs(self):
    class Case(_Looped):
      def build_tf1_graph(self, inputs, training):
        first, idle = inputs @ kernel(), v1.get_variable('idle', [3])
        return first + tf.nn.relu(idle - 1e6)

      def model(self, inputs, training):
        first, idle = inputs @ kernel(), v1.get_variable('idle', [3])
        return first + tf.nn.relu(tf.stop_gradient(idle) - 1e6)

    self.assert_first_failure(Case, _STAGE, 'gradient idle', 'presence differs')

  def test_cut_gradient_of_what_a_loop_adds_and_an_output_reads(self):
    class Case(_Looped):
      reads_it = True

      def model(self, inputs, training):
        first, idle = inputs @ kernel(), v1.get_variable('idle', [3])
        return 0.25 * first + 2.0 * tf.stop_gradient(idle)

    self.assert_first_failure(Case, _STAGE, 'gradient idle', 'presence differs')


if __name__ == '__main__':
  absltest.main()
