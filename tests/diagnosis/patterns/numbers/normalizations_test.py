"""Tests of tf2verify.diagnosis.patterns.numbers.normalizations."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.tensors.regions import region
from tf2verify.diagnosis.patterns.numbers.normalizations import (
  epsilon_before_root,
  epsilons,
  momentum_of,
)

_X = np.ones((2, 3), np.float32)


class EpsilonsTest(absltest.TestCase):
  def _found(self, g):
    return [epsilon for _, epsilon in epsilons(g.graph(), range(len(g.ops)))]

  def test_fused(self):
    g = HandMade('tf1')
    g.op('FusedBatchNormV3', 'norm', g.input(_X), epsilon=1e-3)
    self.assertEqual(self._found(g), [1e-3])

  def test_added_before_a_root(self):
    for root in ('Sqrt', 'Rsqrt'):
      g = HandMade('tf1')
      added = g.op('AddV2', 'add', g.input(_X), g.constant(np.float32(0.01)))
      g.op(root, 'root', added)
      self.assertAlmostEqual(self._found(g)[0], 0.01, places=6)

  def test_other_sums_and_roots(self):
    g = HandMade('tf1')
    x = g.input(_X)
    g.op('Sqrt', 'root', g.op('AddV2', 'one', x, g.constant(np.float32(1.0))))
    g.op('Sqrt', 'other', g.op('Mul', 'mul', x, g.constant(np.float32(0.01))))
    g.op('AddV2', 'add', x, g.constant(np.float32(0.01)))
    self.assertEqual(self._found(g), [])


class EpsilonBeforeRootTest(absltest.TestCase):
  def _found(self, number, reader):
    g = HandMade('tf1')
    added = g.op('AddV2', 'add', g.input(_X), g.constant(np.array(number, np.float32)))
    g.op(reader, 'reader', added)
    return [round(epsilon, 6) for _, epsilon in epsilon_before_root(g.graph(), added[0])]

  def test_sum_of_which_a_root_is_taken(self):
    self.assertEqual(self._found(0.01, 'Rsqrt'), [0.01])
    self.assertEqual(self._found(0.01, 'Sqrt'), [0.01])

  def test_other_shapes_and_kinds_of_constants(self):
    self.assertEqual(self._found([0.01], 'Rsqrt'), [0.01])
    g = HandMade('tf1')
    added = g.op('AddV2', 'add', g.input(np.array('a')), g.constant(np.array('b', object)))
    self.assertEqual(epsilon_before_root(g.graph(), added[0]), [])

  def test_other_sums(self):
    self.assertEqual(self._found(0.01, 'Neg'), [])
    self.assertEqual(self._found(1.0, 'Rsqrt'), [])


class MomentumTest(absltest.TestCase):
  def _momentum(self, g):
    # Nothing but what comes from outside has a partner.
    partners = [0 if op.is_leaf else None for op in g.ops]
    return momentum_of(g.graph(), region(g.graph(), partners, len(g.ops) - 1))

  def test_one_minus_momentum(self):
    g = HandMade('tf1')
    rate = g.op('Sub', 'rate', g.constant(np.float32(1.0)), g.constant(np.float32(0.75)))
    step = g.op('Mul', 'step', g.op('Sub', 'diff', g.variable('v', _X), g.input(_X)), rate)
    g.target('update of v', step, op='AssignSubVariableOp')
    self.assertEqual(self._momentum(g), 0.75)

  def test_no_moving_average(self):
    g = HandMade('tf1')
    g.target('update of v', g.op('Neg', 'neg', g.input(_X)), op='AssignVariableOp')
    self.assertIsNone(self._momentum(g))


if __name__ == '__main__':
  absltest.main()
