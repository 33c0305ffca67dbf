"""Tests of tf2verify.sides.graphs.rewriting.whole_writes: rows that are written, as assignments."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tf2verify.sides.graphs.rewriting.whole_writes import with_whole_writes, written_by

v1 = tf.compat.v1
_CENTERS = np.arange(8, dtype=np.float32).reshape(4, 2)
_LABELS = np.array([2, 0, 2], np.int32)


def _written(scatter, rewritten):
  """Returns what a write leaves of a variable, as it is or as an assignment."""
  with tf.Graph().as_default() as graph:
    variable = tf.Variable(_CENTERS, name='centers')
    scatter(variable)
    graph_def = graph.as_graph_def()
    (handle,) = (op for op in graph.get_operations() if op.type == 'VarHandleOp')
    (write,) = (op for op in graph.get_operations() if 'Scatter' in op.type)
  if rewritten:
    with_whole_writes(graph_def)
  with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
    tf.import_graph_def(graph_def, name='')
    node = graph.get_operation_by_name(write.name)
    (start,) = (op for op in graph.get_operations() if op.name.endswith('/Assign'))
    session.run(start)
    session.run(node)
    dtype = tf.float32
    handle = graph.get_operation_by_name(handle.name).outputs[0]
    return node.type, session.run(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))


def _rows(kind):
  values = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
  if kind.startswith('nd'):
    return lambda v: getattr(v, f'scatter_{kind}')(_LABELS[1:, None], values[1:])
  return lambda v: getattr(v, f'scatter_{kind}')(tf.IndexedSlices(values[1:], _LABELS[1:]))


class WholeWritesTest(parameterized.TestCase):
  @parameterized.parameters('add', 'sub', 'update', 'nd_add', 'nd_sub', 'nd_update')
  def test_the_variable_becomes_the_same(self, kind):
    known = _written(_rows(kind), False)
    found = _written(_rows(kind), True)
    self.assertIn('Scatter', known[0])
    self.assertEqual(found[0], 'AssignVariableOp')
    np.testing.assert_array_equal(found[1], known[1])
    self.assertTrue(np.any(known[1] != _CENTERS))

  def test_names(self):
    self.assertEqual(written_by('a/Scatter/as_assignment/indices'), 'a/Scatter')
    self.assertEqual(written_by('a/b'), 'a/b')


class Centers(tiny_models.OneModel, abc.ABC):
  """Moves the rows of the classes of a batch, each label counted."""

  def centers(self):
    return v1.get_variable('centers', [4, 3], trainable=False)

  def model(self, inputs, training):
    centers = self.centers()
    if training:
      moved = self.moved(tf.gather(centers, [2, 0, 2, 1]) - inputs)
      v1.add_to_collection(
        v1.GraphKeys.UPDATE_OPS, v1.scatter_sub(centers, tf.constant([2, 0, 2, 1]), moved)
      )
    return inputs * tf.reduce_sum(v1.get_variable('scale', [3]))

  def port(self, inputs, training):
    centers = self.centers()
    if training:
      rows = tf.constant([2, 0, 2, 1])
      moved = self.port_moved(tf.gather(centers, rows) - inputs)
      centers.assign(tf.tensor_scatter_nd_sub(centers, rows[:, None], moved))
    return inputs * tf.reduce_sum(v1.get_variable('scale', [3]))

  def moved(self, apart):
    return 0.5 * apart / tf.constant([[3.0], [2.0], [3.0], [2.0]])

  port_moved = moved


class OthersCount(Centers, abc.ABC):
  def port_moved(self, apart):
    return 0.5 * apart / tf.constant([[2.0], [1.0], [2.0], [1.0]])


class ScatteredStateTest(absltest.TestCase):
  def _verdict(self, case):
    return tf2verify.verify(type('Case', (case,), {'other_sizes': ()}), ['seeded_constant'])

  def test_right_port(self):
    verdict = self._verdict(Centers)
    self.assertIs(verdict.stages[-1].status, tf2verify.Status.PASSED, verdict.to_text())

  def test_a_mistake_in_what_is_written(self):
    text = ' '.join(self._verdict(OthersCount).to_text().split())
    self.assertIn('state after the call centers', text)
    self.assertIn('cause (proven', text)
    self.assertIn('RealDiv', text)
    self.assertNotIn('traced as a graph, the port agrees', text)


if __name__ == '__main__':
  absltest.main()
