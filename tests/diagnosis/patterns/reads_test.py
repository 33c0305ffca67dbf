"""Tests of tf2verify.diagnosis.patterns.reads."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.regions import region_pair
from tf2verify.diagnosis.patterns.reads import reads_another_choice
from tf2verify.relation.op_pairs import Pairing


def _side(side, chosen, axis=1, also=''):
  """Two states are joined; the port may take one that a mask has chosen from others."""
  g = HandMade(side)
  x, old, lengths = (g.input([1.0], name) for name in ('x', 'old', 'lengths'))
  h, c = g.op('Tanh', 'h', x), g.op('Sigmoid', 'c', x)
  g.target('h', h)
  g.target('c', c)
  state = h
  if chosen:
    mask = g.chain(lengths, 'NotEqual', 'ExpandDims', 'Tile')
    state = g.chain(g.op('SelectV2', 'chosen', mask, c, old), 'Identity')
  other = g.op('Neg', 'other', x) if also else x
  end = g.op(
    'ConcatV2', 'bridge', other, state, g.constant(axis), input_names=('first', 'second', 'axis')
  )
  g.target('output', end)
  return g.graph()


def _found(*arguments, **options):
  pairing = Pairing(_side('tf1', False), _side('tf2', *arguments, **options))
  (end,) = (n for n, op in enumerate(pairing.tf1.ops) if op.op_type == 'ConcatV2')
  pair = region_pair(pairing, end, pairing.tf2_of[end])
  return reads_another_choice(pairing.tf1, pairing.tf2, pair)


class ReadsAnotherChoiceTest(absltest.TestCase):
  def test_choice_is_named_and_not_its_mask(self):
    for axis in (1, np.int32(-1)):
      (known,) = _found(True, axis=axis)
      self.assertEqual((known.op, known.what), ('bridge', 'second'))
      self.assertEqual((known.tf1, known.tf2), ('h', 'chosen'))

  def test_same_reading_is_none(self):
    self.assertEqual(_found(False), [])

  def test_none_where_another_input_differs_too(self):
    self.assertEqual(_found(True, also='other'), [])


if __name__ == '__main__':
  absltest.main()
