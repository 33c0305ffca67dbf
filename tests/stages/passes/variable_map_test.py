"""Ports whose variables have another layout than those of TF1."""

import abc
import functools
import os
import tempfile

import keras
import numpy as np
from absl.testing import absltest

import tf2verify
from tf2verify import MapEntry, VariableMap
from tf2verify.records.difference import Aspect

# isort: split
import tensorflow as tf

v1 = tf.compat.v1
_UNIFORM = {'minval': -0.5, 'maxval': 0.5}
_GATES = {'i': 2, 'c': 2, 'f': 2, 'o': 2}
# The stages after it run a side against itself, whatever the map.
_UP_TO_CHECKPOINT = ('1-9',)


def model(inputs, training):
  uniform = v1.random_uniform_initializer(**_UNIFORM)
  hidden = v1.layers.dense(inputs, 4, tf.nn.tanh, name='hidden', kernel_initializer=uniform)
  cell = v1.nn.rnn_cell.BasicLSTMCell(2, name='lstm')
  with v1.variable_scope('net', initializer=uniform):
    states, _ = v1.nn.dynamic_rnn(cell, hidden, dtype=tf.float32, scope='rnn')
    fused = v1.get_variable('qkv', (1, 2, 6))
  q, k, v = tf.split(tf.tensordot(states, fused[0], 1), 3, axis=-1)
  mixed = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)
  return v1.layers.dropout(mixed, 0.3, training=training)


class Port(tf.keras.Model):
  """Native, with names and shapes of its own."""

  def __init__(self, spread=0.5, kept='glorot'):
    super().__init__()
    del kept
    uniform = tf.keras.initializers.RandomUniform(-0.5, 0.5)
    other = tf.keras.initializers.RandomUniform(-spread, spread)
    self.hidden = Transposed(4, uniform)
    self.lstm = tf.keras.layers.LSTM(
      2,
      return_sequences=True,
      name='memory',
      kernel_initializer=uniform,
      recurrent_initializer=other,
    )
    self.parts = [
      # Parts that shared an initializer would start alike.
      tf.keras.layers.Dense(
        2,
        use_bias=False,
        name=name,
        kernel_initializer=tf.keras.initializers.RandomUniform(-0.5, 0.5),
      )
      for name in ('query', 'key', 'value')
    ]
    self.dropout = tf.keras.layers.Dropout(0.3)

  def call(self, x, training=False):
    states = self.lstm(self.hidden(x))
    q, k, v = (part(states) for part in self.parts)
    mixed = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)
    return self.dropout(mixed, training=training)


class Transposed(tf.keras.layers.Layer):
  """A dense layer that keeps its kernel the other way round."""

  def __init__(self, units, initializer):
    super().__init__(name='features')
    self.units, self.initializer = units, initializer

  def build(self, shape):
    self.kernel = self.add_weight('kernel', (self.units, shape[-1]), initializer=self.initializer)
    self.bias = self.add_weight('bias', (1, self.units), initializer='zeros')

  def call(self, x):
    return tf.tanh(tf.matmul(x, self.kernel, transpose_b=True) + self.bias)


def lstm(order='i f c o', bias=1.0):
  ends = '+'.join(order.split())
  return (
    MapEntry(
      ('net/rnn/lstm/kernel',),
      ('port/memory/lstm_cell/kernel', 'port/memory/lstm_cell/recurrent_kernel'),
      f'(x+h) (i+c+f+o) -> x ({ends}), h ({ends})',
      {'x': 4, 'h': 2, **_GATES},
    ),
    MapEntry(
      ('net/rnn/lstm/bias',),
      ('port/memory/lstm_cell/bias',),
      f'(i+c+f+o) -> ({ends})',
      _GATES,
      {'f': bias},
    ),
  )


_PARTS = ('port/query/kernel', 'port/key/kernel', 'port/value/kernel')


def qkv(layout='1 d (q+k+v) -> d q, d k, d v'):
  return MapEntry(('net/qkv',), _PARTS, layout, {'q': 2, 'k': 2, 'v': 2})


_HIDDEN = (
  MapEntry(('hidden/kernel',), ('port/features/kernel',), 'i o -> o i'),
  MapEntry(('hidden/bias',), ('port/features/bias',), 'o -> 1 o'),
)
_MAP = VariableMap((*_HIDDEN, *lstm(), qkv()))


class MappedCase(tf2verify.EquivalenceCase, abc.ABC):
  """A right port, by a map."""

  variable_map = _MAP

  def build_tf1_graph(self, inputs, training):
    return model(inputs, training)

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 3, 3))

  def make_labels(self):
    return np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 3, 2)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean((outputs - labels) ** 2)

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adam(0.01, epsilon=1e-8)


def found(case, stage, variable_map=_MAP, **hooks):
  """Returns the verdict on a stage of a case with another map, or other hooks."""
  cls = type('Other', (case,), {'variable_map': variable_map, '__module__': __name__, **hooks})
  verdict = tf2verify.verify(cls, stages=[stage])
  return {one.stage: one for one in verdict.stages}


class RightPortTest(absltest.TestCase):
  def test_every_stage_passes(self):
    verdict = tf2verify.verify(MappedCase)
    self.assertLen(verdict.stages, 11)
    for stage in verdict.stages:
      self.assertEqual(stage.status, tf2verify.Status.PASSED, stage.to_text())
    notes = ' '.join(verdict.stages[1].notes)
    self.assertIn('5 entries with a different layout', notes)
    self.assertIn('layout (i+c+f+o) -> (i+f+c+o), 1 added to f', notes)
    seeded = next(one for one in verdict.stages if one.stage == 'seeded_constant')
    self.assertIn('net/qkv', ' '.join(seeded.notes))

  def test_from_a_file_beside_the_case(self):
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, 'port.map')
      _MAP.write(path)
      stages = found(MappedCase, 'zero_randomness', path)
    self.assertEqual(stages['zero_randomness'].status, tf2verify.Status.PASSED)
    self.assertIn('port.map', ' '.join(stages['variable_inventory'].notes))


class WrongPortTest(absltest.TestCase):
  def differences(self, stages, stage):
    self.assertEqual(stages[stage].status, tf2verify.Status.FAILED, stages[stage].to_text())
    return stages[stage].differences

  def test_gates_in_the_wrong_order(self):
    stages = found(MappedCase, 'zero_randomness', VariableMap((*_HIDDEN, *lstm('i c f o'), qkv())))
    (difference, *_) = self.differences(stages, 'zero_randomness')
    self.assertEqual(difference.quantity, 'output')

  def test_no_forget_bias(self):
    stages = found(MappedCase, 'zero_randomness', VariableMap((*_HIDDEN, *lstm(bias=0.0), qkv())))
    self.differences(stages, 'zero_randomness')

  def test_queries_for_values(self):
    swapped = qkv('1 d (q+k+v) -> d v, d k, d q')
    stages = found(MappedCase, 'zero_randomness', VariableMap((*_HIDDEN, *lstm(), swapped)))
    self.differences(stages, 'zero_randomness')
    self.assertNotIn('given up', stages['zero_randomness'].to_text())

  def test_a_wrong_scale_of_one_part_of_a_group(self):
    stages = found(MappedCase, 'seeded_constant', make_tf2_layer=lambda _: Port(spread=0.6))
    differences = self.differences(stages, 'seeded_constant')
    (found_one,) = (d for d in differences if d.aspect is Aspect.DISTRIBUTION)
    self.assertEqual(found_one.tf1_subject, 'net/rnn/lstm/kernel')
    self.assertIn('0.6', found_one.tf2)

  def test_a_variable_that_is_in_no_entry(self):
    stages = found(MappedCase, 'variable_inventory', VariableMap((*_HIDDEN, *lstm())))
    subjects = {d.tf1_subject for d in self.differences(stages, 'variable_inventory')}
    self.assertEqual(subjects, {'net/qkv', *_PARTS})

  def test_a_part_of_a_group_that_is_frozen(self):
    def frozen(_):
      port = Port()
      port.parts[1].trainable = False
      return port

    stages = found(MappedCase, 'variable_inventory', make_tf2_layer=frozen)
    (difference,) = self.differences(stages, 'variable_inventory')
    self.assertEqual((difference.tf1_subject, difference.aspect), ('net/qkv', Aspect.TRAINABLE))


class DerivedCase(MappedCase, abc.ABC):
  """The same port, without a written map."""

  variable_map = 'derive'


class DerivedTest(absltest.TestCase):
  def test_shapes_gates_and_parts_are_found(self):
    found_map = tf2verify.derive_variable_map(DerivedCase)
    self.assertEqual(set(found_map.tf1_names), set(_MAP.tf1_names))
    values = {
      'hidden/kernel': np.arange(12, dtype=np.float32).reshape(3, 4),
      'hidden/bias': np.arange(4, dtype=np.float32),
      'net/rnn/lstm/kernel': np.arange(48, dtype=np.float32).reshape(6, 8),
      'net/rnn/lstm/bias': np.arange(8, dtype=np.float32),
      'net/qkv': np.arange(12, dtype=np.float32).reshape(1, 2, 6),
    }
    one, other = found_map.to_tf2(values), _MAP.to_tf2(values)
    self.assertEqual(set(one), set(other))
    for name, value in other.items():
      np.testing.assert_array_equal(one[name], value, name)

  def test_a_derived_map_is_used(self):
    verdict = tf2verify.verify(DerivedCase, _UP_TO_CHECKPOINT)
    for stage in verdict.stages:
      self.assertEqual(stage.status, tf2verify.Status.PASSED, stage.to_text())
    stages = {stage.stage: stage for stage in verdict.stages}
    self.assertIn('the outputs agree through it', ' '.join(stages['variable_inventory'].notes))

  def test_a_wrong_port_is_mapped_and_fails(self):
    def wrong(_):
      port = Port()
      port.lstm = tf.keras.layers.LSTM(
        2, return_sequences=True, name='memory', activation='relu', kernel_initializer='zeros'
      )
      return port

    stages = found(MappedCase, 'zero_randomness', 'derive', make_tf2_layer=wrong)
    self.assertEqual(stages['zero_randomness'].status, tf2verify.Status.FAILED)
    notes = ' '.join(stages['variable_inventory'].notes)
    self.assertIn('the outputs do not agree through it', notes)


class Encoder(keras.layers.Layer):
  """Three layers under names of its own, two of them of one shape."""

  def __init__(self, names, activation='relu', biases=(True, True, True)):
    super().__init__(name='my')
    ends = (activation, 'tanh', None)
    self.parts = [
      keras.layers.Dense(units, end, use_bias=bias, name=name)
      for units, end, name, bias in zip((3, 3, 2), ends, names, biases, strict=True)
    ]

  def call(self, inputs):
    first, second, last = self.parts
    return last(second(first(inputs)))


class NamesThatDoNotFit(tf2verify.EquivalenceCase, abc.ABC):
  """Nothing is said of the variables."""

  names = 'in', 'middle', 'logits'

  def build_tf1_graph(self, inputs, training):
    with v1.variable_scope('enc'):
      net = v1.layers.dense(inputs, 3, tf.nn.relu, name='first')
      net = v1.layers.dense(net, 3, tf.tanh, name='second')
      return v1.layers.dense(net, 2, name='out')

  def make_tf2_layer(self):
    return Encoder(self.names)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))


class DerivedByDefaultTest(absltest.TestCase):
  def climbed(self, make, last, **hooks):
    hooks = {'make_tf2_layer': lambda _: make(), '__module__': __name__, **hooks}
    verdict = tf2verify.verify(type('Other', (NamesThatDoNotFit,), hooks), stages=[last])
    return {stage.stage: stage for stage in verdict.stages}

  def test_a_native_port_passes_and_one_line_says_so(self):
    stages = self.climbed(lambda: Encoder(('in', 'middle', 'logits')), 'gradients')
    self.assertEqual(stages['gradients'].status, tf2verify.Status.PASSED)
    notes = [note for note in stages['variable_inventory'].notes if 'what they do' in note]
    self.assertLen(notes, 1)
    self.assertIn('since its names do not fit', notes[0])

  def test_one_fault_does_not_unmap_the_rest(self):
    make = functools.partial(Encoder, ('in', 'middle', 'logits'), activation='gelu')
    stages = self.climbed(make, 'zero_randomness')
    self.assertEqual(stages['variable_inventory'].compared.tensors, 6)
    self.assertEqual(stages['variable_inventory'].status, tf2verify.Status.PASSED)
    self.assertEqual(stages['zero_randomness'].status, tf2verify.Status.FAILED)

  def test_two_variables_exchanged_are_a_finding(self):
    class Crossed(keras.layers.Layer):
      """Makes both first, and uses them the other way round."""

      def __init__(self):
        super().__init__(name='my')
        self.first = keras.layers.Dense(3, name='first')
        self.second = keras.layers.Dense(3, name='second')
        self.logits = keras.layers.Dense(2, name='logits')

      def call(self, inputs):
        return self.logits(tf.tanh(self.first(tf.nn.relu(self.second(inputs)))))

    stages = self.climbed(Crossed, 'zero_randomness')
    self.assertEqual(stages['zero_randomness'].status, tf2verify.Status.FAILED)
    self.assertIn('exchanges two variables', ' '.join(stages['variable_inventory'].notes))

  def test_names_that_fit_are_taken(self):
    def functional():
      inputs = keras.Input((3,))
      net = keras.layers.Dense(3, 'relu', name='first')(inputs)
      net = keras.layers.Dense(3, 'tanh', name='second')(net)
      return keras.Model(inputs, keras.layers.Dense(2, name='out')(net), name='enc')

    stages = self.climbed(functional, 'zero_randomness')
    self.assertEqual(stages['zero_randomness'].status, tf2verify.Status.PASSED)
    self.assertNotIn('what they do', ' '.join(stages['variable_inventory'].notes))

  def test_a_missing_variable_stays_one(self):
    def without_bias():
      return Encoder(('first', 'second', 'out'), biases=(True, False, True))

    stages = self.climbed(without_bias, 'variable_inventory')
    differences = stages['variable_inventory'].differences
    self.assertEqual([d.tf1_subject for d in differences], ['enc/second/bias'])


class DeclarationTest(absltest.TestCase):
  def error(self, **attributes):
    stages = found(MappedCase, 'variable_inventory', **attributes)
    return stages['variable_inventory'].error.summary

  def test_a_map_and_names(self):
    self.assertIn('which is it?', self.error(variable_names={}))

  def test_a_mapping_is_no_map(self):
    self.assertIn('VariableMap.of_names', self.error(variable_map={'a': 'b'}))

  def test_no_such_file(self):
    self.assertIn('there is no such file', self.error(variable_map='none.map'))

  def test_a_name_that_the_port_has_not(self):
    known = VariableMap((MapEntry(('hidden/kernel',), ('port/features/kernels',)),))
    self.assertIn('Is port/features/kernel meant?', self.error(variable_map=known))


if __name__ == '__main__':
  absltest.main()
