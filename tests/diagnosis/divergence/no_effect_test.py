"""Tests of tf2verify.diagnosis.divergence.no_effect."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.looking import Looking

_RANDOM = np.random.default_rng(0)
_X = _RANDOM.standard_normal((4, 3)).astype(np.float32)
_W = _RANDOM.standard_normal((3, 3)).astype(np.float32)
_MASK = np.float32([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 0]])


_GARBAGE = np.full((4, 3), 3.0, np.float32)
_OTHER = np.full((4, 3), 7.0, np.float32)


def _masked(garbage=_GARBAGE, before=0.5, after=1.0, used=False, is_port=False):
  """Past the end of a sequence there is something else, which a mask takes away later.

  Args:
    garbage: what is there.
    before: a number that the states are computed from.
    after: a number at the mask.
    used: whether the mask is left out.
    is_port: whether the mask is written in another way.
  """

  def build(g):
    x = g.op('Mul', 'first', g.input(_X), g.constant(np.float32(before)))
    net = g.op('Where', 'states', x, compute=lambda x: np.where(_MASK > 0, x, garbage))
    mask = np.ones_like(_MASK) if used else _MASK
    if is_port:
      net = g.op(
        'Select', 'weighted', net, compute=lambda x: np.where(mask > 0, np.float32(after) * x, 0)
      )
    else:
      net = g.op('Mul', 'weighted', net, g.constant(mask))
    net = g.op('MatMul', 'values', net, g.variable('w', _W))
    g.target('output', net)

  return build


def _looked(tf1, tf2):
  one, two = (side.run() for side in both(tf1, tf2))
  looking = Looking(one, two, ())
  found = [s for s in looking.arriving() if not s.agreement.is_rounding]
  names = [op.name for op in one.op_graph.ops]
  return [[names[s.regions.tf1.end] for s in part] for part in (found, looking.without_effect)]


class NoEffectTest(absltest.TestCase):
  def test_masked_garbage_is_not_where_the_sides_part(self):
    found, without = _looked(_masked(), _masked(_OTHER, after=1.5, is_port=True))
    self.assertEqual((found, without), (['values'], ['states']))

  def test_infinity_that_one_side_multiplies_by_zero_is_no_number(self):
    found, without = _looked(_masked(), _masked(_OTHER * np.inf, after=1.5, is_port=True))
    self.assertEqual(found[0], 'states')
    self.assertEmpty(without)

  def test_garbage_that_is_used_counts(self):
    found, without = _looked(_masked(used=True), _masked(_OTHER, after=1.5, used=True, is_port=1))
    self.assertEqual(found, ['states', 'values'])
    self.assertEmpty(without)

  def test_fault_in_front_of_it_comes_first(self):
    found, _ = _looked(_masked(), _masked(_OTHER, before=0.25, is_port=True))
    self.assertEqual(found[0], 'first')

  def test_nothing_is_passed_over_where_nothing_fails(self):
    _, without = _looked(_masked(), _masked(_OTHER, is_port=True))
    self.assertEmpty(without)


if __name__ == '__main__':
  absltest.main()
