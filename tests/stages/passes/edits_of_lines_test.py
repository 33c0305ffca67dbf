"""Mistakes that edits of lines tell where few operations have a partner, or several are wrong."""

import abc
import unittest.mock

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of
from tf2verify.diagnosis.search import line_edits

v1 = tf.compat.v1
_HEADS, _SIZE, _STEPS, _WIDTH = 2, 3, 10, 4


class Graph(keras.layers.Layer):
  """Graph attention with all heads in one kernel."""

  def __init__(self, slope, **settings):
    super().__init__(**settings)
    self.slope = slope

  def build(self, shape):
    self.kernel = self.add_weight(shape=(_WIDTH, _HEADS, _SIZE), name='kernel')
    self.own = self.add_weight(shape=(_SIZE, _HEADS), name='own')
    self.other = self.add_weight(shape=(_SIZE, _HEADS), name='other')

  def call(self, net):
    ops = keras.ops
    rows = ops.einsum('bnf,fhd->bnhd', net, self.kernel)
    own = ops.einsum('bnhd,dh->bnh', rows, self.own)
    other = ops.einsum('bnhd,dh->bnh', rows, self.other)
    scores = own[:, :, None, :] + other[:, None, :, :]
    scores = ops.leaky_relu(scores, negative_slope=self.slope)
    weights = ops.softmax(scores, axis=2)
    net = ops.einsum('bnmh,bmhd->bnhd', weights, rows)
    net = ops.reshape(net, (*ops.shape(net)[:2], _HEADS * _SIZE))
    net = ops.elu(net)
    net = ops.reshape(net, (*ops.shape(net)[:2], _HEADS, _SIZE))
    return ops.mean(net, 2)


class Heads(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = tf2verify.VariableMap(
    tuple(
      tf2verify.MapEntry(
        tuple(f'head_{n}/{one}' for n in range(_HEADS)), (f'graph/{one}',), layout, {'x': 1, 'y': 1}
      )
      for one, layout in (
        ('kernel', 'a (x b), a (y b) -> a (x+y) b'),
        ('own', 'a x, a y -> a (x+y)'),
        ('other', 'a x, a y -> a (x+y)'),
      )
    )
  )
  slope = 0.2

  def build_tf1_graph(self, inputs, training):
    found = []
    for n in range(_HEADS):
      with v1.variable_scope(f'head_{n}'):
        kernel = v1.get_variable('kernel', [_WIDTH, _SIZE])
        rows = tf.tensordot(inputs, kernel, 1)
        own, other = (
          tf.tensordot(rows, v1.get_variable(name, [_SIZE, 1]), 1) for name in ('own', 'other')
        )
        scores = tf.nn.leaky_relu(own + tf.transpose(other, [0, 2, 1]))
        found.append(tf.nn.elu(tf.matmul(tf.nn.softmax(scores), rows)))
    return tf.add_n(found) / _HEADS

  def make_tf2_layer(self):
    return Graph(self.slope, name='graph')

  def make_inputs(self):
    return tf2verify.normal_inputs((3, _STEPS, _WIDTH))


class Dilated(keras.Model):
  """Filters and gates apart, of which TF1 has one kernel."""

  def __init__(self, dilations):
    super().__init__(name='dilated')
    self.parts = [
      [
        keras.layers.Conv1D(_WIDTH, 2, dilation_rate=by, padding='causal', name=f'{name}_{n}')
        for name in ('filter', 'gate')
      ]
      for n, by in enumerate(dilations)
    ]

  def call(self, net):
    for made, gate in self.parts:
      net = net + keras.ops.tanh(made(net)) * keras.ops.sigmoid(gate(net))
    return net


class Causal(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = tf2verify.VariableMap(
    tuple(
      tf2verify.MapEntry(
        (f'layer_{n}/{one}',),
        tuple(f'dilated/{name}_{n}/{one}' for name in ('filter', 'gate')),
        layout,
        {'x': _WIDTH, 'y': _WIDTH},
      )
      for n in range(3)
      for one, layout in (('kernel', 'k i (x+y) -> k i x, k i y'), ('bias', '(x+y) -> x, y'))
    )
  )
  dilations = (1, 2, 4)

  def build_tf1_graph(self, inputs, training):
    net = inputs
    for n, by in enumerate((1, 2, 4)):
      with v1.variable_scope(f'layer_{n}'):
        kernel = v1.get_variable('kernel', [2, _WIDTH, 2 * _WIDTH])
        padded = tf.pad(net, [[0, 0], [by, 0], [0, 0]])
        made = tf.nn.convolution(padded, kernel, padding='VALID', dilations=[by])
        made, gate = tf.split(made + v1.get_variable('bias', [2 * _WIDTH]), 2, 2)
        net += tf.tanh(made) * tf.sigmoid(gate)
    return net

  def make_tf2_layer(self):
    return Dilated(self.dilations)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, _STEPS, _WIDTH))


class Highway(keras.layers.Layer):
  """A transform gate and a candidate in one kernel."""

  def __init__(self, exchanged, **settings):
    super().__init__(**settings)
    self.exchanged = exchanged
    self.both = keras.layers.Dense(2 * _WIDTH, name='both')

  def build(self, shape):
    self.both.build(shape)

  def call(self, net):
    gate, made = keras.ops.split(self.both(net), 2, axis=-1)
    if self.exchanged:
      gate, made = made, gate
    gate, made = keras.ops.sigmoid(gate), keras.ops.relu(made)
    return made * gate + net * (1.0 - gate)


class Highways(keras.Model):
  def __init__(self, exchanged, scale):
    super().__init__(name='highways')
    self.scale = scale
    self.parts = [Highway(exchanged, name=f'highway_{n}') for n in range(2)]

  def call(self, net):
    net = keras.ops.tanh(net) * self.scale
    for part in self.parts:
      net = part(net)
    return net


class Gated(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = tf2verify.VariableMap(
    tuple(
      tf2verify.MapEntry(
        (f'highway_{n}/T/{one}', f'highway_{n}/H/{one}'),
        (f'highways/highway_{n}/both/{one}',),
        layout,
      )
      for n in range(2)
      for one, layout in (('kernel', 'a x, a y -> a (x+y)'), ('bias', 'x, y -> (x+y)'))
    )
  )
  exchanged = False
  scale = 1.0

  def build_tf1_graph(self, inputs, training):
    net = tf.tanh(inputs) * 1.5
    for n in range(2):
      with v1.variable_scope(f'highway_{n}'):
        made = v1.layers.dense(net, _WIDTH, tf.nn.relu, name='H')
        gate = v1.layers.dense(net, _WIDTH, tf.nn.sigmoid, name='T')
        net = made * gate + net * (1.0 - gate)
    return net

  def make_tf2_layer(self):
    return Highways(self.exchanged, self.scale)

  def make_inputs(self):
    return tf2verify.normal_inputs((6, _WIDTH))


class EditsOfLinesTest(absltest.TestCase):
  def test_right(self):
    for parent, settings in ((Heads, {}), (Causal, {}), (Gated, {'scale': 1.5})):
      found, text = causes_of(self, parent, **settings)
      self.assertEmpty(found, text)
      self.assertNotIn('FAILED', text)

  def test_settings_of_all_lines_come_before_other_edits_of_any(self):
    tried = []
    mends = line_edits._Again.mends

    def watched(again, changes):
      tried.extend(changes)
      return mends(again, changes)

    with unittest.mock.patch.object(line_edits._Again, 'mends', watched):
      [found], text = causes_of(self, Heads, slope=0.01)
    self.assertIn('the slope of the leaky relu is 0.2 in tf1 and 0.01 in the port', found, text)
    self.assertNotEmpty(tried)
    # The axis of a softmax is a setting, and is tried with two transposes.
    put = {one.op_type for change in tried for one in change.inserted}
    self.assertLessEqual(put, {'Transpose'})

  def test_setting_with_which_the_port_does_not_run_is_likely(self):
    found, text = causes_of(self, Causal, dilations=(1, 4, 2))
    self.assertRegex(found[0], r'paddings of .*Pad \(Pad\) is .*\[4, 0\].* in the port, .*\[2, 0\]')
    self.assertIn('likely cause: paddings', text)

  def test_mistake_that_another_one_hides(self):
    found, text = causes_of(self, Gated, exchanged=True, scale=1.25)
    self.assertLen(found, 2, text)
    self.assertIn('1.25 in the port, 1.5 in tf1', found[0], text)
    self.assertRegex(found[1], r'part_0 .*part_1 .* in place of each other at .*, each of the 2 ')
    self.assertIn('or the map of the variables has them so', found[1])


if __name__ == '__main__':
  absltest.main()
