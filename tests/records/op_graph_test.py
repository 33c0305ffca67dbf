"""Tests of tf2verify.records.op_graph."""

from absl.testing import absltest

from tf2verify.records.op_graph import CONSTANT, INPUT, TARGET, VARIABLE, OpGraph, OpRecord

_GRAPH = OpGraph(
  'tf1',
  (
    OpRecord('(the input)', INPUT, ()),
    OpRecord('w', VARIABLE, ()),
    OpRecord('net/Mul', 'Mul', ((0, 0), (1, 0)), attributes=(('T', 'float32'), ('alpha', 0.2))),
    OpRecord('one', CONSTANT, ()),
    OpRecord('net/add', 'AddV2', ((2, 0), (2, 0))),
    OpRecord('output a', TARGET, ((2, 0),)),
    OpRecord('output b', TARGET, ((4, 0),)),
  ),
)


class OpRecordTest(absltest.TestCase):
  def test_attribute(self):
    self.assertEqual(_GRAPH.ops[2].attribute('alpha'), 0.2)
    self.assertIsNone(_GRAPH.ops[2].attribute('beta'))

  def test_leaves_come_from_outside(self):
    self.assertEqual([op.is_leaf for op in _GRAPH.ops], [True, True, False, True] + [False] * 3)


class OpGraphTest(absltest.TestCase):
  def test_targets(self):
    self.assertEqual(_GRAPH.targets(), {'output a': 5, 'output b': 6})

  def test_consumers(self):
    self.assertEqual(
      _GRAPH.consumers(), [[(2, 0)], [(2, 1)], [(4, 0), (4, 1), (5, 0)], [], [(6, 0)], [], []]
    )

  def test_graph_without_operations(self):
    self.assertEqual(OpGraph('tf2', ()).targets(), {})
    self.assertEqual(OpGraph('tf2', ()).consumers(), [])


if __name__ == '__main__':
  absltest.main()
