"""Tests of tf2verify.diagnosis.divergence.effects.narrowing."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.divergence.effects.narrowing import Narrowing
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.patterns.graph_difference import GraphComparison
from tf2verify.records.diagnosis import GraphAspect

_X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def _sides(build, other):
  one, two = (side.run() for side in both(build, other))
  divergence = Divergence(one, two, ())
  return divergence, Narrowing(one, two, divergence)


def _concatenated(g, unrolled=False, order=(0, 1), fault=1.0):
  """A loop with two results, or its steps one by one; then both results in a row."""
  x = g.input(_X)
  if unrolled:
    parts = [g.chain(x, 'Exp step_1', 'Neg step_2'), g.chain(x, 'Neg step_3', 'Exp step_4')]
  else:
    loop, _ = g.op(
      'While', 'loop', x, outputs=3, compute=lambda x: (np.int32(2), -np.exp(x), np.exp(-x))
    )
    parts = [(loop, 1), (loop, 2)]
  if fault != 1.0:
    parts[1] = g.op('Mul', 'fault', parts[1], g.constant(np.float32(fault)))
  g.target('output', g.op('ConcatV2', 'concat', *(parts[n] for n in order)))


class NarrowingTest(absltest.TestCase):
  def test_source_without_unpaired_operations_stays(self):
    def build(g, slope=0.2):
      g.target('output', g.op('Mul', 'net', g.input(_X), g.constant(np.float32(slope))))

    divergence, narrowing = _sides(build, lambda g: build(g, 0.3))
    [source] = divergence.sources()
    self.assertIs(narrowing.narrowed(source), source)

  def test_other_spelling_with_a_fault_in_its_middle(self):
    """`x / sqrt(v + e)` against `x * rsqrt(v + e)`, with the square by two spellings.

    Behind another fault, so that nothing in it has the same value on both sides.
    """

    def build(g, other=False, epsilon=1e-3):
      x = g.op('Mul', 'first', g.input(_X), g.constant(np.float32(2.0 if other else 1.0)))
      mean = g.op('Mean', 'mean', x, compute=lambda x: x.mean(0))
      centred = g.op('Sub', 'centred', x, mean)
      if other:
        squared = g.op('Mul', 'Mul', centred, centred)
      else:
        squared = g.op('Square', 'squared', centred)
      names = ('Mean_7', 'AddV2_7') if other else ('variance', 'added')
      variance = g.op('Mean', names[0], squared, compute=lambda x: x.mean(0))
      added = g.op('AddV2', names[1], variance, g.constant(np.float32(epsilon)))
      if other:
        net = g.op('Mul', 'norm', centred, g.op('Rsqrt', 'rsqrt', added))
      else:
        net = g.op('RealDiv', 'norm', centred, g.op('Sqrt', 'sqrt', added))
      g.target('output', net)

    divergence, narrowing = _sides(build, lambda g: build(g, True, 0.1))
    first, source = divergence.sources()
    ops = divergence.pairing.tf1.ops
    self.assertEqual(ops[first.regions.tf1.end].name, 'first')
    narrowed = narrowing.narrowed(source)
    ops = divergence.pairing.tf1.ops
    inner = [ops[n].name for n in narrowed.regions.tf1.inner]
    self.assertEqual(inner, ['added', 'sqrt', 'norm'])
    self.assertContainsSubset(inner, [ops[n].name for n in source.regions.tf1.inner])

  def test_inputs_of_an_operation_behind_a_loop_agree_by_value(self):
    divergence, narrowing = _sides(_concatenated, lambda g: _concatenated(g, True, (1, 0)))
    [source] = divergence.sources()
    self.assertNotEmpty(source.regions.tf2.inner)
    regions = narrowing.narrowed(source).regions
    self.assertEqual((regions.tf1.inner, regions.tf2.inner), ((), ()))
    differences = GraphComparison(divergence.pairing).at(regions)
    self.assertEqual({d.aspect for d in differences}, {GraphAspect.ORDER})

  def test_value_that_only_the_port_computes_anew_is_no_part_of_it(self):
    def build(g, other=False):
      x = g.input(_X)
      loop, _ = g.op(
        'While', 'loop', x, outputs=3, compute=lambda x: (np.int32(2), -np.exp(x), np.exp(-x))
      )
      parts = [(loop, 1), (loop, 2)]
      if other:
        parts = [g.chain(parts[1], 'Neg step_1', 'Neg step_2'), parts[0]]
      g.target('output', g.op('ConcatV2', 'concat', *parts))

    divergence, narrowing = _sides(build, lambda g: build(g, True))
    [source] = divergence.sources()
    inner = [(pair.tf1.inner, len(pair.tf2.inner)) for pair in [source.regions]]
    self.assertEqual(inner, [((), 2)])  # the loop has a partner
    regions = narrowing.narrowed(source).regions
    self.assertEqual((regions.tf1.inner, regions.tf2.inner), ((), ()))

  def test_input_that_differs_keeps_its_region(self):
    divergence, narrowing = _sides(_concatenated, lambda g: _concatenated(g, True, fault=2.0))
    [source] = divergence.sources()
    regions = narrowing.narrowed(source).regions
    ops = divergence.pairing.tf2.ops
    self.assertEqual([ops[n].name for n in regions.tf2.inner], ['step_3', 'step_4', 'fault'])


if __name__ == '__main__':
  absltest.main()
