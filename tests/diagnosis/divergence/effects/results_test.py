"""Tests of results with tensors of tf1 in places of the port."""

import dataclasses
import types

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.effects.results import Results
from tf2verify.records.observation import SourceLine

_LEVELS = (np.array([0.5, -1.0], 'f'), np.array([2.0, 0.25], 'f'))


def _run(side, op_type, line):
  """Returns a run in which one line computes something of every level."""
  made = HandMade(side)
  levels = [made.op(op_type, f'level{n}', made.input(value)) for n, value in enumerate(_LEVELS)]
  made.target('output', made.op('AddV2', 'sum', *levels))
  where = SourceLine(f'{side}.py', line, 'call', op_type)
  made.ops[:] = [
    dataclasses.replace(op, source=where) if op.name.startswith('level') else op for op in made.ops
  ]
  return made.run()


class RoundsTest(absltest.TestCase):
  def test_one_round_is_not_enough(self):
    tf1, tf2 = _run('tf1', 'Square', 3), _run('tf2', 'Exp', 7)
    names = {op.name: n for n, op in enumerate(tf1.op_graph.ops)}
    ends = types.SimpleNamespace(ends=[(names['output'], names['output'])])
    results = Results(ends, tf1, tf2)
    self.assertTrue(results.may_be_run)
    first = names['level0']
    self.assertFalse(results.agree_with({tf2.op_graph.ops[first].tensors[0]: _LEVELS[0] ** 2}))
    self.assertTrue(results.agree_in_rounds(first, first))
    self.assertFalse(results.agree_in_rounds(names['sum'], names['sum']), 'it is no line of theirs')


if __name__ == '__main__':
  absltest.main()
