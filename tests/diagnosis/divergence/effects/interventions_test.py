"""Tests of tf2verify.diagnosis.divergence.effects.interventions."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.divergence.effects.interventions import arriving_sources
from tf2verify.diagnosis.divergence.first_divergence import Divergence

_RANDOM = np.random.default_rng(0)
_X = _RANDOM.standard_normal((4, 3)).astype(np.float32)
_W = _RANDOM.standard_normal((3, 3)).astype(np.float32)


def _norm(g, folded=False, first=1.0, last=1.0):
  """`(x - m) * gamma`, or `x * gamma - m * gamma`, between two factors."""
  x = g.op('Mul', 'first', g.input(_X), g.constant(np.float32(first)))
  gamma = g.variable('gamma', np.float32([[0.5, 2.0, 3.0]]))
  mean = g.op('Mean', 'mean', x, compute=lambda x: x.mean(0, keepdims=True))
  if folded:
    scaled = g.op('Mul', 'scaled', x, gamma)
    net = g.op('Sub', 'norm', scaled, g.op('Mul', 'other', mean, gamma))
  else:
    net = g.op('Mul', 'scaled', g.op('Sub', 'centred', x, mean), gamma)
    net = g.op('Sub', 'norm', net, g.constant(np.float32(0.0)))
  net = g.op('MatMul', 'MatMul', net, g.variable('w', _W))
  g.target('output', g.op('Mul', 'last', net, g.constant(np.float32(last))))


def _found(other):
  one, two = (side.run() for side in both(_norm, other))
  divergence = Divergence(one, two, ())
  all_of_them = divergence.sources()
  kept = arriving_sources(divergence, one, two)
  name = [op.name for op in one.op_graph.ops]
  return [[name[s.regions.tf1.end] for s in found] for found in (all_of_them, kept)]


class InterventionsTest(absltest.TestCase):
  def test_pair_that_is_none_is_not_blamed_behind_a_fault(self):
    before, after = _found(lambda g: _norm(g, True, first=1.5))
    self.assertContainsSubset(['first', 'scaled'], before)
    self.assertEqual(after, ['first'])

  def test_nor_in_front_of_one(self):
    _, after = _found(lambda g: _norm(g, True, last=1.5))
    self.assertEqual(after, ['last'])

  def test_two_faults_are_both_kept(self):
    _, after = _found(lambda g: _norm(g, False, first=1.5, last=1.5))
    self.assertEqual(after, ['first', 'last'])
    _, after = _found(lambda g: _norm(g, True, first=1.5, last=0.2))
    self.assertEqual(after, ['first', 'last'])

  def test_faults_in_a_row_are_all_kept(self):
    """Each is mended at what reads it, though the last one alone would mend the end."""

    def build(g, relu=True):
      net = g.input(_X)
      for number in range(4):
        net = g.op('MatMul', f'MatMul_{number}', net, g.variable(f'w{number}', _W))
        net = g.op('Relu', f'Relu_{number}', net) if relu else net
        net = g.op('AddV2', f'AddV2_{number}', net, g.constant(np.float32(0.5)))
      g.target('output', net)

    one, two = (side.run() for side in both(build, lambda g: build(g, False)))
    kept = arriving_sources(Divergence(one, two, ()), one, two)
    names = [one.op_graph.ops[source.regions.tf1.end].name for source in kept]
    self.assertEqual(names, [f'AddV2_{number}' for number in range(4)])

  def test_what_gets_lost_in_a_loop_is_no_fault(self):
    """A mask takes away what a round computes past the end, which is spelt in two ways."""

    def build(g, other=False, name='a/while/round_0/Mul', factor=1.0):
      net = g.op('Mul', name, g.input(_X), g.constant(np.float32(2.0 if other else 3.0)))
      if other:
        masked = g.op('Where', 'masked', net, compute=lambda x: 0 * x)
      else:
        masked = g.op('Mul', 'masked', net, g.constant(np.zeros((4, 3), np.float32)))
      rest = g.op('Mul', 'rest', g.input(_X, 'y'), g.constant(np.float32(factor)))
      g.target('output', g.op('Sub', 'sub', masked, rest))

    for factor, expected in ((2.0, ['rest']), (1.0, ['a/while/round_0/Mul'])):
      with self.subTest(factor=factor):
        one, two = (s.run() for s in both(build, lambda g, f=factor: build(g, True, factor=f)))
        divergence = Divergence(one, two, ())
        found = arriving_sources(divergence, one, two)
        names = [one.op_graph.ops[source.regions.tf1.end].name for source in found]
        self.assertEqual(names, expected)

  def test_draw_of_another_shape_is_kept(self):
    """TF1's draws cannot be put in the place of the port's."""

    def build(g, early=False):
      x = g.input(_X)
      net = x
      shape = (4, 2) if early else (4, 3)
      drawn = g.op(
        'RandomUniform', 'random', compute=lambda: np.full(shape, 0.5, np.float32) + _X[:, :1]
      )
      if early:
        net = g.op(
          'Drop', 'drop', net, drawn, compute=lambda x, d: np.hstack([x[:, :2] * d, x[:, 2:]])
        )
      else:
        net = g.op('Drop', 'drop', net, drawn, compute=lambda x, d: x * d)
      g.target('output', g.op('MatMul', 'MatMul', net, g.variable('w', _W)))

    one, two = (side.run() for side in both(build, lambda g: build(g, True)))
    kept = arriving_sources(Divergence(one, two, ()), one, two)
    self.assertEqual(one.op_graph.ops[kept[0].regions.tf1.end].name, 'random')


if __name__ == '__main__':
  absltest.main()
