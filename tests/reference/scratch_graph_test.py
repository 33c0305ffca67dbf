"""Tests of tf2verify.reference.scratch_graph, and of what is not counted because of it."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.reference.scratch_graph import is_scratch_graph
from tf2verify.sides.graphs.lines.op_recorder import OpRecorder
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state


def sequential():
  return tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dropout(0.5)])


def functional():
  inputs = tf.keras.Input([3])
  return tf.keras.Model(inputs, tf.keras.layers.Dropout(0.5)(tf.keras.layers.Dense(3)(inputs)))


class ScratchGraphTest(parameterized.TestCase):
  def test_graphs_of_keras(self):
    graphs = []

    def seen(net):
      graphs.append(net.graph if not tf.executing_eagerly() else None)
      return net

    model = tf.keras.Sequential([tf.keras.layers.Lambda(seen)])
    model(tf.ones([2, 3]))
    self.assertTrue(is_scratch_graph(graphs[0]), graphs)
    self.assertFalse(is_scratch_graph(graphs[-1]), graphs)

  def test_graphs_that_run(self):
    self.assertFalse(is_scratch_graph(None))
    self.assertFalse(is_scratch_graph(tf.Graph()))
    traced = tf.function(lambda net: net + 1).get_concrete_function(tf.ones([2]))
    self.assertFalse(is_scratch_graph(traced.graph))

  def test_graph_within(self):
    outer = tf.__internal__.FuncGraph('dense_scratch_graph')
    with outer.as_default():
      inner = tf.__internal__.FuncGraph('cond_true')
    self.assertTrue(is_scratch_graph(inner))

  @parameterized.parameters((sequential,), (functional,))
  def test_ops_that_never_run_take_no_seed(self, make_model):
    recorder = OpRecorder()
    with process_state.preserved(), randomness.seeded(randomness.NUM_RANDOM_OPS) as scope:
      with recorder.recording('call 1'):
        make_model()(tf.ones([2, 3]), training=True)
      self.assertEqual(scope.tool.operation_seed, 1)
    kinds = [draw.op_type for draw in recorder.random_draws()]
    self.assertEqual(kinds, ['StatelessRandomUniformV2', 'RandomUniform'])

  def test_ops_that_run_take_one_each(self):
    with process_state.preserved(), randomness.seeded(randomness.NUM_RANDOM_OPS) as scope:
      draw = tf.function(lambda: (tf.random.uniform([2]), tf.random.uniform([2])))
      one, other = draw()
      self.assertEqual(scope.tool.operation_seed, 2)
    self.assertFalse(np.array_equal(one, other))


if __name__ == '__main__':
  absltest.main()
