"""Tests of tf2verify.diagnosis.divergence.tensors.regions."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.divergence.tensors.regions import region, region_pair
from tf2verify.relation.operations.op_pairs import Pairing

_X = np.ones((2, 3), np.float32)


def _swish(g):
  x = g.input(_X)
  scaled = g.op('Mul', 'scale', x, g.constant(2.0))
  g.target('output', g.op('MatMul', 'MatMul', g.chain(scaled, 'Relu'), g.variable('w', _X)))


def _plain(g):
  x = g.input(_X)
  g.target('output', g.op('MatMul', 'MatMul', x, g.variable('w', _X)))


class RegionTest(absltest.TestCase):
  def test_region_holds_unpaired_operations_up_to_paired_ones(self):
    one, two = both(_swish, _plain)
    pairing = Pairing(one.graph(), two.graph())
    names = [op.name for op in pairing.tf1.ops]
    end = names.index('MatMul')
    found = region(pairing.tf1, pairing.tf2_of, end)
    self.assertEqual(found.end, end)
    self.assertEqual([names[n] for n in found.inner], ['scale', 'Relu'])
    # The constant of `scale` does not enter: it belongs to what reads it.
    self.assertEqual([names[n] for n, _ in found.frontier], ['w', '(the input)'])

  def test_region_of_an_operation_with_paired_inputs_is_the_operation(self):
    one, two = both(_plain, _plain)
    pairing = Pairing(one.graph(), two.graph())
    found = region(pairing.tf1, pairing.tf2_of, 2)
    self.assertEqual((found.inner, found.frontier), ((), ((0, 0), (1, 0))))

  def test_what_enters_one_side_only_has_no_counterpart(self):
    def build(g):
      g.target('output', g.op('Mul', 'Mul', g.input(_X, 'x'), g.input(_X, 'y')))

    def other(g):
      g.target('output', g.chain(g.input(_X, 'x'), 'Neg'))

    one, two = both(build, other)
    pairing = Pairing(one.graph(), two.graph())
    pair = region_pair(pairing, 3, 2)
    self.assertCountEqual(pair.entering, [((0, 0), (0, 0)), ((1, 0), None)])

  def test_what_only_tf2_reads_enters_too(self):
    def build(g):
      x = g.input(_X)
      shared = g.op('Neg', 'Neg', x)
      g.target('output', shared)
      g.target('other', x)

    def other(g):
      x = g.input(_X)
      shared = g.op('Neg', 'Neg', x)
      g.target('other', g.op('Exp', 'Exp', shared))
      g.target('output', shared)

    one, two = both(build, other)
    pair = region_pair(Pairing(one.graph(), two.graph()), 3, 3)
    self.assertCountEqual(pair.entering, [((0, 0), (0, 0)), ((1, 0), (1, 0))])

  def test_an_output_that_means_something_else_does_not_enter(self):
    def build(factor):
      def made(g):
        x = g.input(_X)
        norm = g.op('FusedBatchNormV3', 'norm', x, outputs=3, exponential_avg_factor=factor)
        g.target('output', norm)
        g.target('update of mean', (norm[0], 1))

      return made

    for factor, expected in ((1.0, [((1, 1), (1, 1))]), (0.1, [((0, 0), (0, 0))])):
      one, two = both(build(1.0), build(factor))
      pair = region_pair(Pairing(one.graph(), two.graph()), 3, 3)
      self.assertEqual(list(pair.entering), expected)
      self.assertEqual(pair.tf2.inner, () if factor == 1.0 else (1,))

  def test_ancestors(self):
    one, _ = both(_swish, _plain)
    names = [one.ops[n].name for n in sorted(one.graph().ancestors([3]))]
    self.assertEqual(names, ['(the input)', 'Const_1', 'scale', 'Relu'])
    self.assertEqual(one.graph().ancestors([]), set())


if __name__ == '__main__':
  absltest.main()
