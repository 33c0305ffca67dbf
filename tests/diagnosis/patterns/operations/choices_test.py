"""Tests of tf2verify.diagnosis.patterns.operations.choices."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.tensors.regions import region_pair
from tf2verify.diagnosis.patterns.operations.choices import chosen_from_elsewhere
from tf2verify.records.diagnosis import GraphAspect
from tf2verify.relation.operations.op_pairs import Pairing


def _side(side, chosen, inverted=False):
  """A state that a mask keeps: of two that are computed, one is chosen."""
  g = HandMade(side)
  x, old, lengths = (g.input([1.0], name) for name in ('x', 'old', 'lengths'))
  computed = {'h': g.op('Tanh', 'h', x), 'c': g.op('Sigmoid', 'c', x)}
  if inverted:
    mask = g.chain(lengths, 'NotEqual', 'ExpandDims', 'Tile')
    end = g.op('SelectV2', 'SelectV2', mask, computed[chosen], old)
  else:
    end = g.op(
      'Select', 'Select', g.op('GreaterEqual', 'GreaterEqual', lengths), old, computed[chosen]
    )
  g.target('output', end)
  g.target('other', computed['h'])
  g.target('another', computed['c'])
  return g.graph()


def _found(chosen, inverted=True):
  pairing = Pairing(_side('tf1', 'h'), _side('tf2', chosen, inverted))
  (end,) = (n for n, op in enumerate(pairing.tf1.ops) if op.op_type == 'Select')
  pair = region_pair(pairing, end, pairing.tf2_of[end])
  return chosen_from_elsewhere(pairing, pair)


class ChoicesTest(absltest.TestCase):
  def test_other_value_is_named_and_not_the_mask(self):
    for inverted in (True, False):
      (known,) = _found('c', inverted)
      self.assertEqual(known.aspect, GraphAspect.WIRING)
      self.assertEqual((known.op, known.tf1, known.tf2), ('Select', 'h', 'c'))

  def test_same_values_say_nothing_of_the_mask(self):
    self.assertEqual(_found('h'), [])

  def test_number_that_tf1_chooses_past_the_end_is_named(self):
    """TF1 chooses zeros there, of a shape that it computes, and the port its last output."""

    def side(name, kept):
      g = HandMade(name)
      x, old, shape, lengths = (g.input([1.0], one) for one in ('x', 'old', 'shape', 'lengths'))
      h = g.op('Tanh', 'h', x)
      zeros = g.op('Fill', 'zeros', shape, g.constant(np.float32(0)))
      before = g.op('Sigmoid', 'before', old)
      g.target('last', before)
      mask = g.op('GreaterEqual', 'GreaterEqual', lengths)
      g.target('output', g.op('Select', 'Select', mask, zeros if kept else before, h))
      return g.graph()

    def found(tf2_keeps):
      pairing = Pairing(side('tf1', True), side('tf2', tf2_keeps))
      (end,) = (n for n, op in enumerate(pairing.tf1.ops) if op.op_type == 'Select')
      return chosen_from_elsewhere(pairing, region_pair(pairing, end, pairing.tf2_of[end]))

    (known,) = found(False)
    self.assertEqual((known.tf1, known.tf2), ('the number 0', 'before'))
    self.assertEqual(found(True), [])


if __name__ == '__main__':
  absltest.main()
