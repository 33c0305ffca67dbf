"""Tests of heads that are layers of their own in TF1, and one variable in the port."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tf2verify.commands.variable_map import derived_of

v1 = tf.compat.v1
STAGE = 'zero_randomness'
NODES, UNITS = 6, 5


def head(inputs, units, name, adds_inputs):
  """A head of a graph attention network."""
  with v1.variable_scope(name):
    values = v1.layers.dense(inputs, units, use_bias=False, name='values')
    own = v1.layers.dense(values, 1, name='own')
    others = v1.layers.dense(values, 1, name='others')
    weights = tf.nn.softmax(tf.nn.leaky_relu(own + 0.5 * tf.transpose(others, [0, 2, 1])))
    bias = v1.get_variable('bias', [units], initializer=v1.zeros_initializer())
    found = tf.matmul(weights, values) + bias
    if adds_inputs:
      found += v1.layers.dense(inputs, units, name='residual')
    return tf.nn.elu(found)


class Heads(keras.layers.Layer):
  """All heads at once."""

  def __init__(self, heads, units, adds_inputs, slope, **settings):
    super().__init__(**settings)
    self.heads, self.units, self.slope = heads, units, slope
    self.residual = keras.layers.Dense(heads * units, name='residual') if adds_inputs else None

  def build(self, shape):
    heads, units = self.heads, self.units
    self.kernel = self.add_weight(shape=(shape[-1], heads, units), name='kernel')
    self.own = self.add_weight(shape=(units, heads), name='own')
    self.own_bias = self.add_weight(shape=(heads,), initializer='zeros', name='own_bias')
    self.others = self.add_weight(shape=(units, heads), name='others')
    self.others_bias = self.add_weight(shape=(heads,), initializer='zeros', name='others_bias')
    self.bias = self.add_weight(shape=(heads * units,), initializer='zeros', name='bias')
    if self.residual is not None:
      self.residual.build(shape)

  def call(self, inputs):
    ops = keras.ops
    values = ops.einsum('bnf,fhd->bnhd', inputs, self.kernel)
    own = ops.einsum('bnhd,dh->bnh', values, self.own) + self.own_bias
    others = ops.einsum('bnhd,dh->bnh', values, self.others) + self.others_bias
    scores = own[:, :, None, :] + 0.5 * others[:, None, :, :]
    weights = ops.softmax(ops.leaky_relu(scores, self.slope), axis=2)
    found = ops.einsum('bnmh,bmhd->bnhd', weights, values)
    shape = -1, ops.shape(inputs)[1], self.heads * self.units
    found = ops.reshape(found, shape) + self.bias
    return ops.elu(found if self.residual is None else found + self.residual(inputs))


class Port(keras.Model):
  def __init__(self, heads, slope):
    super().__init__(name='port')
    self.first = Heads(heads, UNITS, False, slope, name='first')
    self.second = Heads(heads, UNITS, True, slope, name='second')

  def call(self, inputs):
    return self.second(self.first(inputs))


class Network(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = 'derive'
  heads = 3
  slope = 0.2

  def build_tf1_graph(self, inputs, training):
    net = inputs
    for layer in ('one', 'two'):
      found = [
        head(net, UNITS, f'{layer}_head{n}', adds_inputs=layer == 'two') for n in range(self.heads)
      ]
      net = tf.concat(found, -1)
    return net

  def make_tf2_layer(self):
    return Port(self.heads, self.slope)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, NODES, 7))


def derived(**hooks):
  return derived_of(type('Case', (Network,), {'__module__': __name__, **hooks}), lambda _: None)


class StackedHeadsTest(absltest.TestCase):
  def test_heads_in_one_variable(self):
    for heads in (2, 3):
      found = derived(heads=heads)
      self.assertTrue(found.outputs_agree, found.doubts)
      self.assertEqual(found.doubts, ())
      entries = {entry.tf2[0]: entry for entry in found.variable_map.entries}
      self.assertEqual(
        entries['port/second/own'].tf1, tuple(f'two_head{n}/own/kernel' for n in range(heads))
      )
      ends = [f'z{n + 1}' for n in range(heads)]
      self.assertEqual(
        entries['port/first/own_bias'].layout, f'{", ".join(ends)} -> ({"+".join(ends)})'
      )

  def test_a_mistake_unmaps_nothing(self):
    right, wrong = (
      {entry.tf1: entry.tf2 for entry in derived(slope=slope).variable_map.entries}
      for slope in (0.2, 0.01)
    )
    self.assertEqual(right, wrong)


class LadderTest(LadderTestCase):
  def test_right(self):
    class Case(Network):
      pass

    self.assert_passes(Case, STAGE)

  def test_another_slope(self):
    class Case(Network):
      slope = 0.01

    self.assert_first_failure(Case, STAGE)

  def test_heads_that_are_interleaved_in_one_layer(self):
    class Turned(Port):
      def call(self, inputs):
        net = keras.ops.reshape(self.first(inputs), (-1, NODES, self.first.heads, UNITS))
        net = keras.ops.transpose(net, (0, 1, 3, 2))
        return keras.ops.reshape(net, (-1, NODES, self.first.heads * UNITS))

    class Case(Network):
      def build_tf1_graph(self, inputs, training):
        found = [head(inputs, UNITS, f'one_head{n}', False) for n in range(self.heads)]
        return tf.concat(found, -1)

      def make_tf2_layer(self):
        return Turned(self.heads, self.slope)

    self.assert_first_failure(Case, STAGE)


if __name__ == '__main__':
  absltest.main()
