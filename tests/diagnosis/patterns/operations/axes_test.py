from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.patterns.operations.axes import are_same_axes


class AxesTest(absltest.TestCase):
  def _same(self, tf1, tf2, what='axis', op_type='Mean', shape=(2, 3, 4), of_port=None):
    graphs = []
    for side, shown in (('tf1', shape), ('tf2', of_port or shape)):
      made = HandMade(side)
      start = made.op('Relu', 'start', made.constant(1.0), shape=shown)
      made.op(op_type, 'op', start, made.constant(0))
      graphs.append(made.graph())
    ops = [graph.ops[-1] for graph in graphs]
    return are_same_axes(tuple(graphs), tuple(ops), what, 1, (tf1, tf2))

  def test_other_spellings(self):
    for tf1, tf2 in ((-1, [2]), ([1, 2], [-1, 1]), ([2], [-1]), (0, -3)):
      self.assertTrue(self._same(tf1, tf2))
    self.assertTrue(self._same(-1, 3, op_type='ExpandDims'))

  def test_each_side_counts_those_of_its_own_tensor(self):
    self.assertTrue(self._same(1, -1, shape=(2, 3, 1), of_port=(2, 3)))
    self.assertFalse(self._same(1, -1, shape=(2, 3, 1), of_port=(2, 3, 1)))

  def test_other_axes(self):
    for tf1, tf2 in ((-1, [1]), ([1, 2], [2]), (0, 1)):
      self.assertFalse(self._same(tf1, tf2))

  def test_no_axes_or_no_rank(self):
    self.assertFalse(self._same(-1, 2, what='perm'))
    self.assertFalse(self._same(-1, 2, shape=None))
    self.assertFalse(self._same(-1.0, 2.0))


if __name__ == '__main__':
  absltest.main()
