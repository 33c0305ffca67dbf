"""Tests of tf2verify.diagnosis.places.update_lines."""

import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.places.update_lines import line_of_others
from tf2verify.records.observation import SourceLine

_NAMES = ('one', 'two')


def _graph(side, line, updated):
  """Returns a graph that updates some variables on one line, and reads them on another one."""
  made = HandMade(side)
  reads = [made.variable(name, np.ones(3, np.float32)) for name in _NAMES]
  after = {
    name: made.op('Mul', f'{name}/Mul', read) for name, read in zip(_NAMES, reads, strict=True)
  }
  for name, read in zip(_NAMES, reads, strict=True):
    made.target(f'update of {name}', after[name] if name in updated else read)
  lines = {'Mul': line, 'variable': 94}
  ops = [
    dataclasses.replace(op, source=SourceLine(f'{side}.py', lines[op.op_type], 'call', ''))
    if op.op_type in lines
    else op
    for op in made.graph().ops
  ]
  return dataclasses.replace(made.graph(), ops=tuple(ops))


def _found(updated, name, by_tf1=_NAMES):
  tf1, tf2 = _graph('tf1', 69, by_tf1), _graph('tf2', 146, updated)
  target = f'update of {name}'
  return line_of_others(tf1, tf1.ops[tf1.targets()[target]], tf2, tf2.ops[tf2.targets()[target]])


class LineOfOthersTest(absltest.TestCase):
  def test_one_of_two_is_left_out(self):
    (line,) = _found(['one'], 'two')
    self.assertEqual(line.short, 'tf2.py:146')

  def test_none_is_updated(self):
    self.assertEqual(_found([], 'two'), (None,))

  def test_what_is_updated_has_a_line_of_its_own(self):
    self.assertIsNone(_found(['one'], 'one'))

  def test_neither_side_updates_it(self):
    self.assertIsNone(_found(['one'], 'two', by_tf1=['one']))


if __name__ == '__main__':
  absltest.main()
