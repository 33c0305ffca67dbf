"""Kernels of experts that the port holds in one variable, as many of them as they have rows."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import first_failure
from tf2verify.stages import STAGES

v1 = tf.compat.v1
_EXPERTS = _SIZE = 3


class _Stacked(tf.Module):
  def __init__(self, equation):
    super().__init__(name='moe')
    self.equation = equation
    draw = v1.glorot_uniform_initializer()
    kernels = [draw((_SIZE, 4)) for _ in range(_EXPERTS)]
    self.kernels = tf.Variable(tf.stack(kernels), name='kernels')
    self.out = tf.Variable(tf.stack([draw((4, 2)) for _ in range(_EXPERTS)]), name='out')

  def __call__(self, inputs, training=False):
    hidden = tf.nn.relu(tf.einsum(self.equation, inputs, self.kernels))
    return tf.einsum('ebh,eho->ebo', hidden, self.out)


class _Experts(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = 'derive'
  equation = 'bd,edh->ebh'

  def build_tf1_graph(self, inputs, training):
    found = []
    for number in range(_EXPERTS):
      with v1.variable_scope(f'expert_{number}'):
        net = v1.layers.dense(inputs, 4, tf.nn.relu, use_bias=False, name='hidden')
        found.append(v1.layers.dense(net, 2, use_bias=False, name='out'))
    return tf.stack(found)

  def make_tf2_layer(self):
    return _Stacked(self.equation)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, _SIZE))


class StackedExpertsTest(absltest.TestCase):
  def test_right_port(self):
    verdict = tf2verify.verify(type('Case', (_Experts,), {}), ['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())

  def test_right_port_with_experts_along_the_second_axis(self):
    class Port(_Stacked):
      def __init__(self):
        super().__init__('bd,deh->ebh')
        self.kernels = tf.Variable(tf.transpose(self.kernels, (1, 0, 2)), name='kernels')

    class Case(_Experts):
      def make_tf2_layer(self):
        return Port()

    verdict = tf2verify.verify(Case, ['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())

  def test_wrong_activation(self):
    class Port(_Stacked):
      def __call__(self, inputs, training=False):
        hidden = tf.nn.elu(tf.einsum(self.equation, inputs, self.kernels))
        return tf.einsum('ebh,eho->ebo', hidden, self.out)

    class Case(_Experts):
      def make_tf2_layer(self):
        return Port(self.equation)

    verdict = first_failure.climbed_to_failure(Case)
    self.assertEqual(verdict.first_failure.stage, STAGES[2].name, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
