"""Ports that hold one variable of TF1 as several: halves of fused gates, of normalized kernels."""

import abc

import keras
from absl.testing import absltest

import tf2verify
from tests.stages.passes.block_cases import UNITS, BlockCase, Port, derived, entry_of

# isort: split
import tensorflow as tf

v1 = tf.compat.v1


class NormalizedConv(keras.layers.Layer):
  """A convolution whose kernel is direction and gain."""

  def __init__(self, name, width=2):
    super().__init__(name=name)
    self.width = width

  def build(self, shape):
    drawn = keras.initializers.RandomNormal(stddev=1.0)
    self.direction = self.add_weight((self.width, shape[-1], UNITS), drawn, name='direction')
    self.magnitude = self.add_weight((UNITS,), drawn, name='magnitude')
    self.bias = self.add_weight((UNITS,), drawn, name='bias')

  def call(self, x, gain=None, bias=None):
    length = tf.sqrt(tf.reduce_sum(tf.square(self.direction), [0, 1]))
    kernel = (self.magnitude if gain is None else gain) * self.direction / length
    return tf.nn.conv1d(x, kernel, 1, 'SAME') + (self.bias if bias is None else bias)


class Gated(keras.layers.Layer):
  """Two convolutions for the fused one; `wrong` tells how the halves are mixed up."""

  def __init__(self, name, wrong=''):
    super().__init__(name=name)
    self.wrong = wrong
    self.norm = keras.layers.LayerNormalization(epsilon=1e-6)
    self.filter_conv, self.gate_conv = NormalizedConv('filter_conv'), NormalizedConv('gate_conv')

  def call(self, x):
    net = self.norm(x)
    self.filter_conv(net), self.gate_conv(net)  # so that both have their variables
    one, other = self.filter_conv, self.gate_conv
    if self.wrong == 'halves':
      one, other = other, one
    own = {'gain': [one.magnitude, other.magnitude], 'bias': [one.bias, other.bias]}
    if self.wrong:
      own.get(self.wrong, []).reverse()
    ones, others = ({key: its[n] for key, its in own.items()} for n in (0, 1))
    return x + tf.sigmoid(other(net, **others)) * tf.tanh(one(net, **ones))


class NormalizedCase(BlockCase, abc.ABC):
  """Fused gates of a weight-normalized convolution, beside layer norm that is written out."""

  def block(self, net):
    gain = v1.get_variable('gain', [UNITS], initializer=v1.ones_initializer())
    offset = v1.get_variable('offset', [UNITS], initializer=v1.zeros_initializer())
    mean, variance = v1.nn.moments(net, [-1], keep_dims=True)
    normed = gain * (net - mean) * v1.rsqrt(variance + 1e-6) + offset
    v = v1.get_variable('v', [2, UNITS, 2 * UNITS])
    g, b = v1.get_variable('g', [2 * UNITS]), v1.get_variable('b', [2 * UNITS])
    both = v1.nn.convolution(normed, g * v1.nn.l2_normalize(v, [0, 1]), padding='SAME') + b
    one, other = v1.split(both, 2, axis=-1)
    return net + tf.tanh(one) * tf.sigmoid(other)

  def make_tf2_layer(self):
    return Port(Gated('a'), Gated('b'))


class NormalizedTest(absltest.TestCase):
  def test_direction_gain_and_bias_are_split_beside_layer_normalization(self):
    found = derived(NormalizedCase)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertLen(found.variable_map.tf1_names, 12)
    self.assertEqual(found.doubts, ())
    for name, part in (('v', 'direction'), ('g', 'magnitude'), ('b', 'bias')):
      entry = entry_of(found, f'block_1/{name}')
      self.assertEqual(
        entry.tf2, (f'port/b/filter_conv/{part}', f'port/b/gate_conv/{part}'), str(entry)
      )

  def test_the_stages_pass_through_it(self):
    case = type('Variant', (NormalizedCase,), {'__module__': __name__})
    stages = ['variable_inventory', 'zero_randomness', 'gradients']
    verdict = tf2verify.verify(case, stages)
    self.assertTrue(verdict.passed, verdict.to_text())

  def test_gains_of_the_other_half_stay_a_finding(self):
    self.check_wrong('gain')

  def test_biases_of_the_other_half_stay_a_finding(self):
    self.check_wrong('bias')

  def check_wrong(self, what):
    found = derived(
      NormalizedCase, make_tf2_layer=lambda _: Port(Gated('a', what), Gated('b', what))
    )
    self.assertFalse(found.outputs_agree)
    self.assertLen(found.variable_map.tf1_names, 12)

  def test_halves_exchanged_in_one_layer_stay_a_finding(self):
    port = lambda _: Port(Gated('a'), Gated('b', 'halves'))  # noqa: E731
    found = derived(NormalizedCase, make_tf2_layer=port)
    self.assertFalse(found.outputs_agree)
    case = type('Variant', (NormalizedCase,), {'__module__': __name__, 'make_tf2_layer': port})
    verdict = tf2verify.verify(case, ['zero_randomness'])
    self.assertFalse(verdict.passed)

  def test_halves_exchanged_in_all_layers_are_told(self):
    found = derived(
      NormalizedCase, make_tf2_layer=lambda _: Port(Gated('a', 'halves'), Gated('b', 'halves'))
    )
    self.assertTrue(found.outputs_agree)
    (doubt,) = found.doubts
    self.assertIn('in a different order from that of the port (and 5 more entries)', doubt)
    self.assertIn('port/a/filter_conv/', doubt)


class Halves(keras.layers.Layer):
  """Gates as two Dense layers of Keras, the second one made first."""

  def __init__(self, name):
    super().__init__(name=name)
    self.gate = keras.layers.Dense(UNITS, activation='sigmoid', name='gate')
    self.filter = keras.layers.Dense(UNITS, activation='tanh', name='filter')

  def call(self, x):
    return x + self.filter(x) * self.gate(x)


class RowsCase(BlockCase, abc.ABC):
  """A fused kernel that TF1 keeps transposed, so that its halves are rows."""

  def block(self, net):
    kernel = v1.get_variable('w', [2 * UNITS, UNITS])
    bias = v1.get_variable('b', [2 * UNITS])
    flat = tf.reshape(net, [-1, UNITS])
    both = tf.reshape(tf.matmul(flat, kernel, transpose_b=True), [-1, 7, 2 * UNITS]) + bias
    one, other = v1.split(both, 2, axis=-1)
    return net + tf.tanh(one) * tf.sigmoid(other)

  def make_tf2_layer(self):
    return Port(Halves('a'), Halves('b'))


class StackedCase(RowsCase, abc.ABC):
  """Two kernels one above the other in one variable."""

  def block(self, net):
    kernel = v1.get_variable('w', [2, UNITS, UNITS])
    bias = v1.get_variable('b', [2, UNITS])
    one, other = tf.unstack(
      tf.einsum('bti,gio->gbto', net, kernel) + bias[:, None, None, :], num=2, axis=0
    )
    return net + tf.tanh(one) * tf.sigmoid(other)


class Attention(keras.layers.Layer):
  """Query, key and value as layers of their own."""

  def __init__(self, name, order='qkv'):
    super().__init__(name=name)
    self.parts = [keras.layers.Dense(UNITS, name=name) for name in ('query', 'key', 'value')]
    self.order = order

  def call(self, x):
    made = dict(zip('qkv', (part(x) for part in self.parts), strict=True))
    q, k, v = (made[letter] for letter in self.order)
    return x + tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)


class TwoOfThreeCase(BlockCase, abc.ABC):
  """Query and key fused in TF1, and the value alone."""

  def block(self, net):
    q, k = v1.split(v1.layers.dense(net, 2 * UNITS, name='qk'), 2, axis=-1)
    v = v1.layers.dense(net, UNITS, name='v')
    return net + tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)

  def make_tf2_layer(self):
    return Port(Attention('a'), Attention('b'))


class NamedCase(TwoOfThreeCase, abc.ABC):
  """The same, with the names of the port."""

  def block(self, net):
    q, k = v1.split(v1.layers.dense(net, 2 * UNITS, name='query_and_key'), 2, axis=-1)
    v = v1.layers.dense(net, UNITS, name='value')
    return net + tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)


class Fused(keras.layers.Layer):
  """Keys and values as one product; `exchanged` puts the query in the place of the keys."""

  def __init__(self, name, exchanged=False):
    super().__init__(name=name)
    self.query = keras.layers.Dense(UNITS, name='query')
    self.fused = keras.layers.Dense(2 * UNITS, name='keys_and_values')
    self.exchanged = exchanged

  def call(self, x):
    q, (k, v) = self.query(x), tf.split(self.fused(x), 2, axis=-1)
    if self.exchanged:
      q, k = k, q
    return x + tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)


class SeparateCase(BlockCase, abc.ABC):
  """Three products in TF1, of which the port has two as one."""

  def block(self, net):
    q, k, v = (v1.layers.dense(net, UNITS, name=name) for name in ('query', 'keys', 'values'))
    return net + tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)

  def make_tf2_layer(self):
    return Port(Fused('a'), Fused('b'))


class OtherAxesTest(absltest.TestCase):
  def test_halves_that_are_rows(self):
    found = derived(RowsCase)
    self.assertTrue(found.outputs_agree, found.doubts)
    entry = entry_of(found, 'block_0/w')
    self.assertEqual(entry.layout, '(z2+z1) b -> b z1, b z2')
    self.assertEqual(entry.tf2, ('port/a/gate/kernel', 'port/a/filter/kernel'))

  def test_halves_one_above_the_other(self):
    found = derived(StackedCase)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertEqual(entry_of(found, 'block_0/w').layout, '(z2+z1) a b -> (z1 a) b, (z2 a) b')
    self.assertEqual(entry_of(found, 'block_1/b').layout, '(z2+z1) a -> (z1 a), (z2 a)')


class PartsOfSeveralTest(absltest.TestCase):
  def test_two_of_three_parts_are_fused(self):
    found = derived(TwoOfThreeCase)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertEqual(
      entry_of(found, 'block_1/qk/kernel').tf2, ('port/b/query/kernel', 'port/b/key/kernel')
    )
    self.assertEqual(entry_of(found, 'block_1/v/bias').tf2, ('port/b/value/bias',))

  def test_another_two_of_three(self):
    port = lambda _: Port(Attention('a', 'vqk'), Attention('b', 'vqk'))  # noqa: E731
    found = derived(TwoOfThreeCase, make_tf2_layer=port)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertEqual(
      set(entry_of(found, 'block_1/qk/kernel').tf2), {'port/b/value/kernel', 'port/b/query/kernel'}
    )

  def test_another_two_of_three_than_the_names_tell_stay_a_finding(self):
    right = derived(NamedCase)
    self.assertTrue(right.outputs_agree, right.doubts)
    self.assertEqual(right.doubts, ())
    port = lambda _: Port(Attention('a', 'qvk'), Attention('b', 'qvk'))  # noqa: E731
    found = derived(NamedCase, make_tf2_layer=port)
    self.assertFalse(found.outputs_agree)
    self.assertIn('block_0/value/kernel and port/a/value/kernel belong together', found.doubts[0])
    self.assertEqual(entry_of(found, 'block_0/value/kernel').tf2, ('port/a/value/kernel',))

  def test_two_products_that_the_port_fuses(self):
    found = derived(SeparateCase)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertEqual(
      entry_of(found, 'block_1/keys/kernel').tf1, ('block_1/keys/kernel', 'block_1/values/kernel')
    )
    self.assertEqual(entry_of(found, 'block_0/query/bias').tf2, ('port/a/query/bias',))

  def test_a_fused_product_in_the_place_of_another_stays_a_finding(self):
    port = lambda _: Port(Fused('a', exchanged=True), Fused('b', exchanged=True))  # noqa: E731
    found = derived(SeparateCase, make_tf2_layer=port)
    self.assertFalse(found.outputs_agree)
    self.assertEqual(entry_of(found, 'block_0/query/bias').tf2, ('port/a/query/bias',))
    self.assertIn(('block_0/query/kernel', 'port/a/query/kernel'), found.exchanged)

  def test_another_two_of_three_in_one_layer_stay_a_finding(self):
    port = lambda _: Port(Attention('a'), Attention('b', 'vqk'))  # noqa: E731
    self.assertFalse(derived(TwoOfThreeCase, make_tf2_layer=port).outputs_agree)


if __name__ == '__main__':
  absltest.main()
