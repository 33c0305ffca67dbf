"""Tests of sides.graphs.edits.other_traces: edits of one trace by the names of another one."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.records.op_graph import NodeChange
from tf2verify.sides.graphs.edits import repairs as editing
from tf2verify.sides.graphs.edits.other_traces import named_as, renaming
from tf2verify.sides.graphs.edits.repairs import GivenValue, Repair, Transplant
from tf2verify.sides.graphs.graph_defs.rewiring import OtherInput

v1 = tf.compat.v1


class RenamingTest(parameterized.TestCase):
  @parameterized.parameters(
    ('adam_1/Mul', 'adam/Mul'),
    ('adam_1/Mul:1', 'adam/Mul:1'),
    ('^adam_1/Mul', '^adam/Mul'),
    ('adam/Sub', 'adam_1/Sub'),  # the other way round
    ('adam/Mul', 'adam/Mul'),  # has that name in both traces
    ('adam_1/gone', 'adam_1/gone'),
    ('sgd_1/Mul', 'sgd_1/Mul'),
    ('Mul_1', 'Mul_1'),  # the number of an operation is none of a scope
  )
  def test_name(self, name, expected):
    known = {'adam/Mul', 'adam_1/Sub', 'Mul'}
    self.assertEqual(renaming(known)(name), expected)


class NamedAsTest(absltest.TestCase):
  def test_every_part_of_an_edit(self):
    known = {'adam/a', 'adam/b'}
    given = GivenValue('tf1_op', 'adam_1/a', np.float32(1))
    node = v1.NodeDef(name='tf1/inner', op='Add', input=['adam_1/a:0', '^adam_1/b'])
    end = v1.NodeDef(name='adam_1/b', op='Neg', input=['tf1/inner:0'])
    edit = Repair(
      changes=(NodeChange('adam_1/a', inputs=((1, np.float32(0.5)),)),),
      transplants=(Transplant((node,), end, is_update=True, tf1='of_tf1'),),
      values=(given,),
      passing=('adam_1/b',),
      inputs=(OtherInput('adam_1/a', 1, 'adam_1/b:0', (node,)),),
      exchanged=(('adam_1/a:0', 'adam_1/b:0'),),
    )
    found = named_as(edit, known)
    self.assertEqual(found.changes[0].op, 'adam/a')
    self.assertEqual(found.changes[0].inputs, edit.changes[0].inputs)
    (moved,) = found.transplants
    self.assertEqual((moved.end.name, moved.is_update, moved.tf1), ('adam/b', True, 'of_tf1'))
    self.assertEqual(list(moved.inner[0].input), ['adam/a:0', '^adam/b'])
    self.assertEqual((found.values[0].tf1, found.values[0].tf2), ('tf1_op', 'adam/a'))
    self.assertEqual(found.values[0].as_tf2, given.as_tf2)
    self.assertEqual(found.passing, ('adam/b',))
    (other,) = found.inputs
    self.assertEqual((other.op, other.slot, other.tensor), ('adam/a', 1, 'adam/b:0'))
    self.assertEqual(list(other.inner[0].input), ['adam/a:0', '^adam/b'])
    self.assertEqual(found.exchanged, (('adam/a:0', 'adam/b:0'),))
    # The edit of the first trace is as it was.
    self.assertEqual((end.name, list(node.input)), ('adam_1/b', ['adam_1/a:0', '^adam_1/b']))

  def test_edit_runs_in_the_other_trace(self):
    def trace(scope):
      with tf.Graph().as_default() as graph, tf.name_scope(scope):
        tf.multiply(tf.constant([1.0, 2.0], name='x'), 3.0, name='end')
      return graph.as_graph_def()

    edit = Repair(changes=(NodeChange('adam_1/end', inputs=((1, np.float32(0.5)),)),))
    other = trace('adam')
    with self.assertRaises(editing.CannotRepair):
      editing.apply([edit], trace('adam'))
    editing.apply([named_as(edit, {node.name for node in other.node})], other)
    with tf.Graph().as_default() as graph:
      tf.import_graph_def(other, name='')
      with v1.Session(graph=graph) as session:
        np.testing.assert_array_equal(session.run('adam/end:0'), [0.5, 1.0])


if __name__ == '__main__':
  absltest.main()
