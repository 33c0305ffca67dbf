"""Tests of writes of one variable in one call."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.patterns.operations.several_writes import are_of_same_values


def _graph(*read):
  """Returns a graph that averages tensors, each by the name of what is made of the inputs."""
  g = HandMade('tf2')
  x = g.input(np.ones((4, 3)), 'x')
  known = {'x': x}
  for op_type, name in (('Square', 'square'), ('Relu', 'net')):
    known[name] = g.op(op_type, name, x, shape=(4, 3))
  v = g.variable('v', np.ones(3))
  for number, name in enumerate(read, 1):
    mean = g.op('Mean', f'mean_{number}', known[name], shape=(3,))
    v = g.op('AddV2', f'moved_{number}', v, mean, shape=(3,))
    g.target('update of v' + (f' ({number})' if number > 1 else ''), v)
  return g.graph()


class SeveralWritesTest(absltest.TestCase):
  def test_averages_of_the_same_values_prepared_otherwise(self):
    self.assertTrue(are_of_same_values(_graph('x', 'square'), 'v'))

  def test_averages_of_other_values(self):
    self.assertFalse(are_of_same_values(_graph('x', 'net'), 'v'))

  def test_a_single_write_is_unknown(self):
    self.assertIsNone(are_of_same_values(_graph('x'), 'v'))


if __name__ == '__main__':
  absltest.main()
