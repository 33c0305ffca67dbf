"""Tests of exchanges of two inputs in all rounds of a loop of Python."""

import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.edits import order_edits
from tf2verify.records.observation import SourceLine


class RoundsTest(absltest.TestCase):
  def test_rounds_are_operations_of_one_line_with_as_many_inputs(self):
    """A line of `tf.clip_by_global_norm` packs the squares of all gradients, and shapes."""
    made = HandMade('tf2')
    parts = [made.constant(np.ones(2, 'f')) for _ in range(5)]
    for count, name in ((4, 'first'), (2, 'few'), (4, 'second')):
      made.op('Pack', name, *parts[:count])
    graph = made.graph()
    line = SourceLine('port.py', 3, 'step', 'tf.stack(parts)')
    ops = [dataclasses.replace(op, source=line) for op in graph.ops]
    graph = dataclasses.replace(graph, ops=tuple(ops))
    found = order_edits._of_same_line(graph, 5)
    self.assertEqual([graph.ops[n].name for n in found], ['first', 'second'])


if __name__ == '__main__':
  absltest.main()
