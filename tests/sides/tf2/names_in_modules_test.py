"""Tests of sides.tf2.layers.names_in_common: variables of a tf.Module without own names."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tf2verify.reference.variables import variable_name
from tf2verify.sides.tf2.layers import layer_parts

v1 = tf.compat.v1
_STAGES = ('variable_inventory', 'zero_randomness', 'seeded_constant')


def _variable(shape, initializer, name=None):
  return tf.Variable(initializer(shape, tf.float32), name=name)


class _Block(tf.Module):
  def __init__(self):
    super().__init__()
    self.w = _variable((6, 6), v1.glorot_uniform_initializer())
    self.gain = _variable((6,), tf.ones)

  def __call__(self, x):
    return (x @ self.w) * self.gain


class _Port(tf.Module):
  def __init__(self, activation):
    super().__init__()
    self.blocks = [_Block() for _ in range(3)]
    self.head = {'kernel': _variable((6, 2), v1.glorot_uniform_initializer())}
    self.activation = activation

  def __call__(self, x):
    for number, block in enumerate(self.blocks):
      x = (self.activation if number == 1 else tf.tanh)(block(x))
    return x @ self.head['kernel']


class Modules(tf2verify.EquivalenceCase, abc.ABC):
  activation = staticmethod(tf.tanh)

  def build_tf1_graph(self, inputs, training):
    x = inputs
    for number in range(3):
      with v1.variable_scope(f'layer_{number}'):
        x = v1.layers.dense(x, 6, use_bias=False)
        x = tf.tanh(x * v1.get_variable('scale', [6], initializer=v1.ones_initializer()))
    return v1.layers.dense(x, 2, use_bias=False, name='out')

  def make_tf2_layer(self):
    return _Port(self.activation)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 6))


class _OneColumn(tf.Module):
  """Of each shape it has one variable, but for the axis of length 1."""

  def __init__(self):
    super().__init__()
    self.into = _variable((1, 8), v1.glorot_uniform_initializer(), 'fc0_w')
    self.add = _variable((8,), tf.zeros, 'fc0_b')

  def __call__(self, x):
    return tf.nn.elu(x @ self.into + self.add)


class OneColumn(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 8, tf.nn.elu)

  def make_tf2_layer(self):
    return _OneColumn()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 1))


class _Counting(tf.Module):
  """Has no name, since it does not call its base class, and counts what it has seen."""

  def __init__(self):
    self.average = tf.Variable(tf.zeros(4), trainable=False)
    self.seen = tf.Variable(0, trainable=False)
    self.into = _variable((4, 3), v1.glorot_uniform_initializer())

  def __call__(self, x, training=False):
    if training:
      self.average.assign(0.9 * self.average + 0.1 * tf.reduce_mean(x, 0))
      self.seen.assign_add(1)
    return (x - self.average) @ self.into


class Counting(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    mean = v1.get_variable('mean', [4], initializer=v1.zeros_initializer(), trainable=False)
    zero = v1.zeros_initializer()
    count = v1.get_variable('count', [], tf.int32, initializer=zero, trainable=False)
    used = mean
    if training:
      moved = v1.assign(mean, 0.9 * mean + 0.1 * tf.reduce_mean(inputs, 0))
      with tf.control_dependencies([moved, v1.assign_add(count, 1)]):
        used = mean.read_value()
    return v1.layers.dense(inputs - used, 3, use_bias=False, name='d')

  def make_tf2_layer(self):
    return _Counting()

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4))


class _Looping(tf.Module):
  """AutoGraph rewrites its loop over a tensor, as in every tf.function."""

  def __init__(self):
    super().__init__()
    self.w = _variable((7, 4), v1.glorot_uniform_initializer())
    self.b = _variable((4,), tf.zeros)

  def __call__(self, x):
    state = tf.zeros([tf.shape(x)[0], 4])
    for step in tf.range(tf.shape(x)[1]):
      state = tf.tanh(tf.concat([x[:, step], state], 1) @ self.w + self.b)
    return state


class Looping(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return v1.nn.dynamic_rnn(v1.nn.rnn_cell.BasicRNNCell(4), inputs, dtype=tf.float32)[1]

  def make_tf2_layer(self):
    return _Looping()

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 4, 3))


class _Twice(tf.Module):
  """What `get_variable` makes twice in it is one name twice, and not two paths."""

  def __init__(self):
    super().__init__()
    self.parts = [_Part(), _Part()]
    self.own = [tf.Variable(1.0), tf.Variable(2.0)]


class _Part(tf.Module):
  @v1.keras.utils.track_tf1_style_variables
  def __call__(self, x):
    return v1.layers.dense(x, 3, use_bias=False, name='fc')


class NamesInModulesTest(LadderTestCase):
  def test_names_are_the_paths_of_attributes(self):
    names = [variable_name(one) for one in layer_parts.variables_of(_Port(tf.tanh))]
    blocks = [f'blocks/{number}/{name}' for number in range(3) for name in ('gain', 'w')]
    self.assertCountEqual(names, [*blocks, 'head/kernel'])

  def test_right_port(self):
    verdict = tf2verify.verify(type('Case', (Modules,), {}), _STAGES)
    self.assertTrue(verdict.passed, verdict)

  def test_wrong_port_fails_by_its_mistake(self):
    wrong = type('Case', (Modules,), {'activation': staticmethod(tf.nn.relu)})
    verdict = tf2verify.verify(wrong, _STAGES)
    self.assertEqual(verdict.first_failure.stage, 'zero_randomness')
    self.assertIn('the port computes Relu, tf1 computes Tanh', verdict.first_failure.to_text())

  def test_module_without_a_name_and_its_counter(self):
    verdict = tf2verify.verify(type('Case', (Counting,), {}), _STAGES)
    self.assertTrue(verdict.passed, verdict)

  def test_loop_over_a_tensor_in_all_stages(self):
    verdict = tf2verify.verify(type('Case', (Looping,), {}))
    self.assertTrue(verdict.passed, verdict)
    by_name = {stage.stage: stage for stage in verdict.stages}
    self.assertTrue(by_name['zero_randomness'].proven.is_whole)
    self.assertEqual(by_name['checkpoint'].blind_spots, ())

  def test_axis_of_length_1_tells_variables_apart(self):
    verdict = tf2verify.verify(type('Case', (OneColumn,), {}), _STAGES)
    self.assertTrue(verdict.passed, verdict)

  def test_names_of_get_variable_are_kept(self):
    module = _Twice()
    for part in module.parts:
      part(tf.zeros((2, 3)))
    names = [variable_name(one) for one in layer_parts.variables_of(module)]
    self.assertCountEqual(names, ['own/0', 'own/1', 'fc/kernel', 'fc/kernel'])


if __name__ == '__main__':
  absltest.main()
