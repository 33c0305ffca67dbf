"""Maps of fused layers whose parts are told by the activations behind them."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tests.stages.passes.block_cases import derived

v1 = tf.compat.v1
STAGE = 'zero_randomness'
UNITS = 4


class Port(keras.Model):
  def __init__(self, first, by_slices):
    super().__init__(name='port')
    self.lift = keras.layers.Dense(UNITS, first, name='lift')
    self.both = keras.layers.Dense(2 * UNITS, name='both')
    self.by_slices = by_slices

  def call(self, inputs):
    lifted = self.lift(inputs)
    both = self.both(lifted)
    if self.by_slices:
      candidate, gate = both[:, UNITS:], both[:, :UNITS]
    else:
      gate, candidate = tf.split(both, 2, axis=-1)
    gate, candidate = tf.sigmoid(gate), tf.nn.relu(candidate)
    return candidate * gate + lifted * (1.0 - gate)


class Highway(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = 'derive'
  first = 'tanh'
  by_slices = False

  def build_tf1_graph(self, inputs, training):
    lifted = v1.layers.dense(inputs, UNITS, tf.tanh, name='lift')
    candidate = v1.layers.dense(lifted, UNITS, tf.nn.relu, name='H')
    gate = v1.layers.dense(lifted, UNITS, tf.sigmoid, name='T')
    return candidate * gate + lifted * (1.0 - gate)

  def make_tf2_layer(self):
    return Port(self.first, self.by_slices)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, UNITS))


class _Heads(keras.layers.Layer):
  def __init__(self, order):
    super().__init__(name='heads')
    self.order = order

  def build(self, shape):
    self.kernel = self.add_weight(shape=(3, shape[-1], 2, 2), name='qkv')

  def call(self, inputs):
    qkv = tf.einsum('be,nehd->nbhd', inputs, self.kernel)
    query, key, value = (qkv[n] for n in self.order)
    scores = tf.nn.softmax(tf.einsum('bhd,chd->hbc', query, key), -1)
    return tf.einsum('hbc,chd->bhd', scores, value)


class StackedHeads(tf2verify.EquivalenceCase, abc.ABC):
  """The kernels of all heads in one variable, beside three matrices of TF1."""

  variable_map = 'derive'
  order = (0, 1, 2)

  def build_tf1_graph(self, inputs, training):
    query, key, value = (
      tf.reshape(v1.layers.dense(inputs, UNITS, use_bias=False, name=name), [-1, 2, 2])
      for name in 'qkv'
    )
    scores = tf.nn.softmax(tf.einsum('bhd,chd->hbc', query, key), -1)
    return tf.einsum('hbc,chd->bhd', scores, value)

  def make_tf2_layer(self):
    return keras.Sequential([_Heads(self.order)])

  def make_inputs(self):
    return tf2verify.normal_inputs((5, UNITS))


class StackedHeadsTest(LadderTestCase):
  def test_in_order(self):
    found = derived(StackedHeads)
    self.assertTrue(found.outputs_agree)
    self.assertEmpty(found.doubts)

  def test_in_another_order(self):
    """Values of TF1's names are those of other parts: that is said."""
    found = derived(StackedHeads, order=(0, 2, 1))
    self.assertTrue(found.outputs_agree)
    (doubt,) = found.doubts
    self.assertIn('in a different order from that of tf1', doubt)


class PartActivationsTest(LadderTestCase):
  def test_parts_behind_a_mistake(self):
    for by_slices in (False, True):

      class Case(Highway):
        first = 'softsign'

      Case.by_slices = by_slices
      with self.subTest(by_slices=by_slices):
        derived = tf2verify.derive_variable_map(Case)
        layouts = {entry.tf1[0]: entry.layout for entry in derived.entries}
        self.assertEqual(layouts['H/kernel'], 'a z1, a z2 -> a (z2+z1)')
        self.assertEqual(layouts['H/bias'], 'z1, z2 -> (z2+z1)')
        text = self.assert_first_failure(Case, STAGE, 'Softsign')
        self.assertNotIn('cause 2 of 2', text)

  def test_right(self):
    for by_slices in (False, True):
      with self.subTest(by_slices=by_slices):
        case = type('Case', (Highway,), {'by_slices': by_slices})
        self.assert_passes(case, STAGE)


if __name__ == '__main__':
  absltest.main()
