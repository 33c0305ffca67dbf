import numpy as np
from absl.testing import absltest

import tf2verify  # noqa: F401

# isort: split
import tensorflow as tf

from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.tf1.graphs import initializers as tf1_initializers

v1 = tf.compat.v1
# No other test names a cell so: TensorFlow counts names for as long as the process lives.
_CELL = 'cell_of_initializers'
tracked = v1.keras.utils.track_tf1_style_variables


class _Layer(tf.keras.layers.Layer):
  def __init__(self, build):
    super().__init__()
    self._build = build

  @tracked
  def call(self, inputs):
    return self._build(inputs)


def _initial_values(build, mode, as_in_tf1=True):
  """Returns the initial values of a layer of TF1-style code."""
  with process_state.preserved(), randomness.seeded(mode):
    layer = _Layer(build)
    if as_in_tf1:
      with tf1_initializers.as_in_tf1():
        layer(tf.ones((2, 4)))
    else:
      layer(tf.ones((2, 4)))
  return {variable.name: variable.numpy() for variable in layer.variables}


def _get_variables(inputs):
  # What TensorFlow 1.x makes of tf.layers.dense, and of a cell.
  glorot = v1.glorot_uniform_initializer()
  with v1.variable_scope('dense'):
    kernel = v1.get_variable('kernel', (4, 3), initializer=glorot)
    v1.get_variable('bias', (3,), initializer=v1.zeros_initializer())
  with v1.variable_scope(_CELL):
    v1.get_variable('kernel', (7, 16), initializer=glorot)
    v1.get_variable('bias', (16,), initializer=v1.zeros_initializer())
  return tf.matmul(inputs, kernel)


def _layers(inputs):
  found = v1.layers.dense(inputs, 3, name='dense')
  cell = v1.nn.rnn_cell.BasicLSTMCell(4, name=_CELL)
  cell(found, cell.zero_state(2, tf.float32))
  return found


class AsInTf1Test(absltest.TestCase):
  def test_layers_and_cells_draw_what_get_variable_draws(self):
    for mode in (randomness.CONSTANT, randomness.NUM_RANDOM_OPS):
      with self.subTest(mode):
        expected = _initial_values(_get_variables, mode)
        found = _initial_values(_layers, mode)
        self.assertEqual(found.keys(), expected.keys())
        for name, value in expected.items():
          np.testing.assert_array_equal(found[name], value, name)

  def test_without_it_they_draw_by_keras(self):
    found = _initial_values(_layers, randomness.CONSTANT, as_in_tf1=False)
    expected = _initial_values(_get_variables, randomness.CONSTANT)
    self.assertTrue(np.any(found['dense/kernel:0'] != expected['dense/kernel:0']))

  def test_an_initializer_that_is_given_stays(self):
    def given(inputs):
      return v1.layers.dense(inputs, 3, kernel_initializer=v1.ones_initializer(), name='dense')

    def of_the_scope(inputs):
      with v1.variable_scope('scope', initializer=v1.ones_initializer()):
        return v1.layers.dense(inputs, 3, name='dense')

    for build in (given, of_the_scope):
      found = _initial_values(build, randomness.CONSTANT)
      kernel = next(value for name, value in found.items() if 'kernel' in name)
      np.testing.assert_array_equal(kernel, np.ones((4, 3), np.float32))

  def test_layers_of_keras_stay(self):
    dense = []

    def keras(inputs):
      if not dense:
        dense.append(tf.keras.layers.Dense(3, name='dense'))
      return dense[0](inputs)

    with_it = _initial_values(keras, randomness.CONSTANT)
    dense.clear()
    without = _initial_values(keras, randomness.CONSTANT, as_in_tf1=False)
    for name, value in without.items():
      np.testing.assert_array_equal(with_it[name], value, name)


if __name__ == '__main__':
  absltest.main()
