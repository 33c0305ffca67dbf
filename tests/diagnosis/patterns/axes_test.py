from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.patterns.axes import are_same_axes


class AxesTest(absltest.TestCase):
  def _same(self, tf1, tf2, what='axis', op_type='Mean', shape=(2, 3, 4)):
    made = HandMade('tf1')
    start = made.op('Relu', 'start', made.constant(1.0), shape=shape)
    made.op(op_type, 'op', start, made.constant(0))
    graph = made.graph()
    return are_same_axes(graph, graph.ops[-1], what, 1, tf1, tf2)

  def test_other_spellings(self):
    for tf1, tf2 in ((-1, [2]), ([1, 2], [-1, 1]), ([2], [-1]), (0, -3)):
      self.assertTrue(self._same(tf1, tf2))
    self.assertTrue(self._same(-1, 3, op_type='ExpandDims'))

  def test_other_axes(self):
    for tf1, tf2 in ((-1, [1]), ([1, 2], [2]), (0, 1)):
      self.assertFalse(self._same(tf1, tf2))

  def test_no_axes_or_no_rank(self):
    self.assertFalse(self._same(-1, 2, what='perm'))
    self.assertFalse(self._same(-1, 2, shape=None))
    self.assertFalse(self._same(-1.0, 2.0))


if __name__ == '__main__':
  absltest.main()
