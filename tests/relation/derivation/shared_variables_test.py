from absl.testing import absltest

from tf2verify.records.op_graph import TARGET, VARIABLE, OpGraph, OpRecord
from tf2verify.relation.derivation.shared_variables import shared_by


def _graph(side, **readers):
  """Returns a graph of variables, each read by a number of operations."""
  ops = [OpRecord(name, VARIABLE, ()) for name in readers]
  for position, count in enumerate(readers.values()):
    ops += [OpRecord(f'read_{position}_{n}', 'GatherV2', ((position, 0),)) for n in range(count)]
  ops.append(OpRecord('update of a', TARGET, ((0, 0),)))
  return OpGraph(side, tuple(ops))


_SHAPES = {'a': (9, 6), 'b': (9, 6), 'c': (4, 6)}, {'x': (9, 6), 'z': (4, 6)}


class SharedByTest(absltest.TestCase):
  def shared(self, tf1, tf2, partner, shapes=_SHAPES):
    return shared_by('b', partner, shapes, (_graph('tf1', **tf1), _graph('tf2', **tf2)))

  def test_one_table_for_two(self):
    found = self.shared({'a': 1, 'b': 1, 'c': 1}, {'x': 2, 'z': 1}, {'a': 'x', 'c': 'z'})
    self.assertEqual(found, ('x', 'a'))

  def test_read_as_often_as_its_partner(self):
    self.assertIsNone(self.shared({'a': 2, 'b': 1}, {'x': 2}, {'a': 'x'}))

  def test_another_shape(self):
    self.assertIsNone(self.shared({'c': 1, 'b': 1}, {'z': 2}, {'c': 'z'}))

  def test_two_that_may_be_it(self):
    shapes = {'a': (9, 6), 'b': (9, 6), 'c': (9, 6)}, {'x': (9, 6), 'z': (9, 6)}
    known = {'a': 'x', 'c': 'z'}
    self.assertIsNone(self.shared({'a': 1, 'b': 1, 'c': 1}, {'x': 2, 'z': 2}, known, shapes))


if __name__ == '__main__':
  absltest.main()
