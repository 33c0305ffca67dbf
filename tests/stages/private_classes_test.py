"""Ports whose classes are private: TensorFlow refuses the scopes that Keras names by them."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class _Scale(keras.layers.Layer):
  def build(self, _):
    self.scale = self.add_weight(name='scale', shape=(3,), initializer='ones')

  def call(self, x):
    return x * self.scale


class _Net(keras.Model):
  """Keras' symbolic pass fails in it, is given up, and leaves a scope open."""

  def __init__(self):
    super().__init__()
    self.dense, self.scale = keras.layers.Dense(3, 'tanh'), _Scale()

  def call(self, x):
    return self.scale(self.dense(x))


class Inner(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    scale = v1.get_variable('scale', [3], initializer=v1.ones_initializer())
    return v1.layers.dense(inputs, 3, tf.tanh) * scale

  def make_tf2_layer(self):
    return _Net()

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 6))


class Outer(Inner, abc.ABC):
  """The layer alone."""

  def build_tf1_graph(self, inputs, training):
    return inputs * v1.get_variable('scale', [3], initializer=v1.ones_initializer())

  def make_tf2_layer(self):
    return _Scale()

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 3))


class PrivateClassesTest(absltest.TestCase):
  def test_right_ports_climb_all_stages(self):
    for case in (Inner, Outer):
      with self.subTest(case.__name__):
        verdict = tf2verify.verify(type('Case', (case,), {}))
        self.assertTrue(verdict.passed, verdict)

  def test_note(self):
    verdict = tf2verify.verify(type('Case', (Outer,), {}), ['execution_modes'])
    self.assertIn("the layer is called '__scale'", ' '.join(verdict.stages[-1].notes))

  def test_wrong_port_is_diagnosed(self):
    class Twice(_Scale):
      def call(self, x):
        return x * self.scale * 2.0

    wrong = type('Case', (Outer,), {'make_tf2_layer': lambda self: type('_Twice', (Twice,), {})()})
    failure = tf2verify.verify(wrong, ['zero_randomness']).first_failure
    self.assertIn('cause (proven', failure.to_text())


if __name__ == '__main__':
  absltest.main()
