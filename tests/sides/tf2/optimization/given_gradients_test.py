"""Tests of tf2verify.sides.tf2.optimization.given_gradients."""

import types

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.records.observation import Slices, TensorRecord
from tf2verify.records.training import TrainingStep
from tf2verify.sides.graphs.step_run import StepVariable, update_target
from tf2verify.sides.tf2.graphs.edited_step import EditableStep
from tf2verify.sides.tf2.optimization.given_gradients import GivenGradients
from tf2verify.tensorflow_internals import graphs


class _AsTheyAre:
  """Layouts of variables that lie as in tf1."""

  def ungrouped(self, values):
    return values

  def to_tf2(self, name, value, constants=True):
    del name, constants
    return value


def _step(number, values):
  value = np.asarray(values, np.float32)
  rows = np.flatnonzero(value.any(axis=1))
  slices = Slices(len(rows), float(np.linalg.norm(value)))
  gradients = (TensorRecord('w', value, slices),)
  return TrainingStep(number, None, None, None, gradients, (), (), ())


class GivenGradientsTest(absltest.TestCase):
  def test_steps_with_rows_are_one_graph(self):
    table = tf.Variable(tf.ones([4, 2]), name='w')
    given = GivenGradients(_AsTheyAre(), {'w': 'w'}, applied=False)

    def traced(step):
      given.begin_trace(step)
      graph = graphs.FuncGraph('step')
      with graph.as_default(), given.recorder().recording():
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(tf.gather(table, [0, 2]))
        found = tape.gradient(loss, table)
        self.assertIsInstance(found, tf.IndexedSlices)
        tf.identity(found.values, 'rows')
      read = {id(outer) for outer, _ in graph.captures}
      rows = [v.numpy().tolist() for v in given.variables if id(v.handle) in read]
      return graph.as_graph_def(), rows

    ones, others = [[1, 2], [0, 0], [3, 4], [0, 0]], [[5, 6], [0, 0], [7, 8], [0, 0]]
    one, rows = traced(_step(1, ones))
    self.assertEqual(rows, [[[1, 2], [3, 4]]])
    other, rows = traced(_step(2, others))
    self.assertEqual(rows, [[[5, 6], [7, 8]]])
    self.assertEqual([n.attr['value'] for n in one.node], [n.attr['value'] for n in other.node])
    rows_elsewhere, _ = traced(_step(3, ones[::-1]))
    self.assertNotEqual(
      [n.attr['value'] for n in one.node], [n.attr['value'] for n in rows_elsewhere.node]
    )

  def test_no_step_leaves_them_behind(self):
    names = ('w', 'given_gradient_0 of tf2')
    variables = {name: StepVariable(name, np.zeros(2, np.float32)) for name in names}
    step = types.SimpleNamespace(variables=variables)
    values = {update_target(name): (np.ones(2, np.float32),) for name in names}
    for given, left in ((frozenset(), set(names)), (frozenset(names[1:]), {'w'})):
      known = EditableStep(step, None, None, (), given)
      self.assertEqual(known.left_behind(values).keys(), left)


if __name__ == '__main__':
  absltest.main()
