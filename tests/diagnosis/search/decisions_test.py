"""Tests of tf2verify.diagnosis.search.decisions: edits that only turn a comparison."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.search.decisions import decides_alike
from tf2verify.records.op_graph import NodeChange

_X = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
_HALF = np.full((2, 2), 0.5, np.float32)


def _sides(adds=False, tf1_factor=_HALF):
  """Returns both sides of `x * factor < 1`, the port with another factor."""
  sides = []
  for side, factor in (('tf1', tf1_factor), ('tf2', _HALF / 4)):
    made = HandMade(side)
    x = made.input(_X)
    scaled = made.op('Mul', 'scaled', x, made.constant(factor), shape=(2, 2))
    less = made.op('Less', 'less', scaled, made.constant(np.float32(1)), compute=np.less)
    kept = made.op('Cast', 'kept', less, compute=lambda found: found.astype(np.float32))
    end = made.op('AddV2', 'end', kept, scaled if adds else x, shape=(2, 2))
    made.target('loss', end)
    sides.append(made.run())
  return sides


def _decides(sides, factor):
  tf1, tf2 = sides
  change = NodeChange('scaled', inputs=((1, factor),))
  last = len(tf1.op_graph.ops) - 1

  def computed(tensors, changes):
    return tf2.recompute_changed(tensors, {}, [changes])[0]

  return decides_alike(tf1, tf2.op_graph, ([last], [last]), [change], computed)


class DecidesAlikeTest(absltest.TestCase):
  def test_a_quantity_of_tf1_is_compared(self):
    self.assertTrue(_decides(_sides(), _HALF))

  def test_the_outcome_alone_is_that_of_tf1(self):
    self.assertFalse(_decides(_sides(), _HALF * 1.1))

  def test_one_number_tells_nothing(self):
    """Whatever is zero everywhere is found somewhere."""
    self.assertFalse(_decides(_sides(tf1_factor=_HALF * 0), _HALF * 0))

  def test_what_is_used_otherwise_too_is_told_by_what_fails(self):
    self.assertTrue(_decides(_sides(adds=True), _HALF * 1.1))


if __name__ == '__main__':
  absltest.main()
