"""What is not said of operations that a side has in another form."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_FACTORS = np.arange(1.0, 241.0, dtype=np.float32).reshape(60, 4) / 100.0


class _Gates(keras.layers.Layer):
  """A kernel for each of two gates, where tf1 has one for both."""

  order = 'ab'

  def build(self, _):
    kernels = {
      name: self.add_weight(name=name, shape=(5, 6), initializer='glorot_uniform') for name in 'ab'
    }
    self.one, self.other = (kernels[name] for name in self.order)

  def call(self, x):
    return keras.ops.tanh(x @ self.one) * keras.ops.sigmoid(x @ self.other)


class Gates(tf2verify.EquivalenceCase, abc.ABC):
  order = 'ab'
  gates = {'x': 6, 'y': 6}
  variable_map = tf2verify.VariableMap(
    [tf2verify.MapEntry(('d/kernel',), ('gates/a', 'gates/b'), 'i (x+y) -> i x, i y', sizes=gates)]
  )

  def build_tf1_graph(self, inputs, training):
    both = v1.layers.dense(inputs, 12, use_bias=False, name='d')
    one, other = tf.split(both, 2, axis=1)
    return tf.tanh(one) * tf.sigmoid(other)

  def make_tf2_layer(self):
    return type('Gates', (_Gates,), {'order': self.order})(name='gates')

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))


class Factors(tf2verify.EquivalenceCase, abc.ABC):
  """Constants that tf1 slices in the graph, and the port before it."""

  factors = _FACTORS[:, 2:]

  def build_tf1_graph(self, inputs, training):
    return tf.tanh(v1.layers.dense(inputs, 2, name='d')) * tf.constant(_FACTORS)[:, 2:]

  def make_tf2_layer(self):
    factors = self.factors

    class Layer(keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.d = keras.layers.Dense(2, name='d')

      def call(self, x):
        return keras.ops.tanh(self.d(x)) * factors

    return Layer()

  def make_inputs(self):
    return tf2verify.normal_inputs((60, 5))


class RespelledTest(absltest.TestCase):
  def _text(self, case, **changed):
    verdict = tf2verify.verify(type('Case', (case,), changed), ['zero_randomness'])
    failed = verdict.first_failure
    return '' if failed is None else ' '.join(failed.to_text().split())

  def test_right_ports(self):
    for case in (Gates, Factors):
      with self.subTest(case.__name__):
        self.assertEqual(self._text(case), '')

  def test_gates_of_kernels_of_their_own(self):
    text = self._text(Gates, order='ba')
    self.assertIn('first divergence', text)
    for untrue in ('which tf1 does not have', 'the port lacks'):
      self.assertNotIn(untrue, text)

  def test_another_constant(self):
    text = self._text(Factors, factors=_FACTORS[:, :1:-1])
    self.assertIn('is another constant in the port, StridedSlice[:, 2:] of a constant in tf1', text)
    self.assertNotIn('the port lacks', text)


if __name__ == '__main__':
  absltest.main()
