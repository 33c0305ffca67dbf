"""Maps derived of the small pairs of `benchmarks/map_pairs`, and what is said of a wrong port."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from benchmarks.map_pairs import cells, others
from tf2verify.commands.variable_map import derived_of
from tf2verify.relation.variable_map import VariableMap

v1 = tf.compat.v1


def derived(case):
  return derived_of(case, lambda _: None)


def variant(case, **hooks):
  return type('Other', (case,), {'__module__': __name__, **hooks})


class DerivedCellsTest(absltest.TestCase):
  def check(self, case, variables):
    found = derived(case)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertLen(found.variable_map.tf1_names, variables)
    self.assertEqual(found.doubts, ())
    self.assertEqual(found.ambiguous, ())

  def test_peepholes_and_a_projection(self):
    self.check(cells.ProjectedLstmCase, 14)

  def test_a_cell_whose_steps_are_written_out_beside_one_in_a_loop(self):
    self.check(others.TranslatorCase, 15)

  def test_a_cell_of_convolutions(self):
    self.check(others.ConvLstmCase, 4)


class WrongPortTest(absltest.TestCase):
  def test_what_the_port_exchanges_is_judged_as_the_names_say(self):
    found = derived(others.ExchangedCase)
    self.assertFalse(found.outputs_agree)
    pairs = {entry.tf1: entry.tf2 for entry in found.variable_map.entries}
    self.assertEqual(pairs['query/kernel',], ('siamese/query/kernel',))
    self.assertIn(('query/kernel', 'siamese/query/kernel'), found.exchanged)
    self.assertIn('with the two exchanged the outputs agree', found.doubts[0])
    self.assertIsInstance(found.variable_map, VariableMap)

  def test_nothing_is_exchanged_in_a_right_port(self):
    found = derived(variant(others.ExchangedCase, make_tf2_layer=lambda _: others.Siamese(True)))
    self.assertTrue(found.outputs_agree)
    self.assertEqual((found.exchanged, found.doubts), ((), ()))

  def test_the_forget_bias_is_added_beside_a_mistake_after_the_cells(self):
    """The port starts with no forget bias, since it is loaded: what the cells compute tells."""
    for activation, agree in (('softplus', True), ('exponential', False)):
      found = derived(variant(_ForecastCase, activation=activation))
      self.assertIs(found.outputs_agree, agree)
      entries = {entry.tf1: entry for entry in found.variable_map.entries}
      self.assertTrue(entries['rnn/lstm/bias',].added, activation)

  def test_the_first_place_is_told_and_no_operation_is_blamed(self):
    found = derived(variant(_PoolCase))
    self.assertFalse(found.outputs_agree)
    told = ' '.join(found.doubts)
    self.assertIn('the numbers of both sides differ first at b/kernel: there, or just', told)
    self.assertNotRegex(told, 'in tf1, .* in the port')

  def test_what_one_side_alone_has_is_said_to_be_its_own(self):
    told = ' '.join(derived(variant(_PoolCase, make_tf2_layer=lambda _: _with_one_more())).doubts)
    self.assertRegex(told, r'more/kernel of the port has no partner in tf1: \(5, 5\), and no var')
    self.assertNotIn('of tf1 has no partner', told)

  def test_variables_that_the_port_makes_and_does_not_read_are_told_first(self):
    found = derived(variant(_GainCase))
    self.assertFalse(found.outputs_agree)
    self.assertIn('the outputs of the port do not read', found.doubts[0])
    self.assertIn('first/length, ', found.doubts[0])
    told = ' '.join(derived(variant(_GainCase, reads=True)).doubts)
    self.assertNotIn('do not read', told)


class _ForecastCase(tf2verify.EquivalenceCase, abc.ABC):
  activation = 'softplus'

  def build_tf1_graph(self, inputs, training):
    cell = v1.nn.rnn_cell.LSTMCell(6, name='lstm')
    out, _ = v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
    return v1.layers.dense(out, 1, tf.nn.softplus, name='head')

  def make_tf2_layer(self):
    cell = keras.layers.LSTM(6, return_sequences=True, unit_forget_bias=False, name='cells')
    return keras.Sequential([cell, keras.layers.Dense(1, self.activation, name='end')])

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 5, 4))


class _GainCase(tf2verify.EquivalenceCase, abc.ABC):
  """Two layers with normalized kernels, whose gains the port makes and forgets."""

  reads = False

  def build_tf1_graph(self, inputs, training):
    for name, size in (('a', 5), ('b', 3)):
      with v1.variable_scope(name):
        kernel = v1.get_variable('V', [inputs.shape[-1], size])
        gain = v1.get_variable('g', [size], initializer=v1.ones_initializer())
        bias = v1.get_variable('b', [size], initializer=v1.zeros_initializer())
        inputs = tf.nn.relu(tf.matmul(inputs, gain * tf.nn.l2_normalize(kernel, 0)) + bias)
    return inputs

  def make_tf2_layer(self):
    import keras

    reads = self.reads

    class Normed(keras.layers.Layer):
      def __init__(self, size, name):
        super().__init__(name=name)
        self._size = size

      def build(self, shape):
        self.direction = self.add_weight(shape=(shape[-1], self._size), name='direction')
        self.length = self.add_weight(shape=(self._size,), initializer='ones', name='length')
        self.bias = self.add_weight(shape=(self._size,), initializer='zeros', name='bias')

      def call(self, inputs):
        kernel = tf.nn.l2_normalize(keras.ops.convert_to_tensor(self.direction), 0)
        kernel = kernel * self.length if reads else kernel
        return keras.ops.relu(inputs @ kernel + self.bias)

    return keras.Sequential([Normed(5, 'first'), Normed(3, 'second')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 6))


def _with_one_more():
  import keras

  return keras.Sequential([*_port(1).layers, keras.layers.Dense(5, name='more')])


def _port(strides):
  import keras

  layers = keras.layers
  return keras.Sequential(
    [
      layers.Conv2D(4, 3, strides, padding='same', name='first'),
      layers.BatchNormalization(epsilon=1e-5, name='second'),
      layers.ZeroPadding2D(1),
      layers.MaxPooling2D(3, 2),
      layers.Conv2D(5, 3, 1 if strides == 2 else 2, padding='same', name='third'),
      layers.GlobalAveragePooling2D(),
    ]
  )


class _PoolCase(tf2verify.EquivalenceCase, abc.ABC):  # no test of its own: the port is wrong
  training_modes = (False,)
  variable_map = 'derive'

  def build_tf1_graph(self, inputs, training):
    import tensorflow as tf

    layers = tf.compat.v1.layers
    net = layers.conv2d(inputs, 4, 3, padding='same', name='a')
    net = layers.batch_normalization(net, training=training, name='norm')
    net = layers.max_pooling2d(net, 3, 2, 'same')
    net = layers.conv2d(net, 5, 3, 2, padding='same', name='b')
    return tf.reduce_mean(net, [1, 2])

  def make_tf2_layer(self):
    return _port(strides=2)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 16, 16, 3))


if __name__ == '__main__':
  absltest.main()
