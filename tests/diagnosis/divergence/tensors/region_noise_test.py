"""Tests of tf2verify.diagnosis.divergence.tensors.region_noise."""

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.divergence.tensors.region_noise import settled
from tf2verify.diagnosis.divergence.tensors.regions import region_pair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource
from tf2verify.numerics.relayout import agreement_as_held
from tf2verify.relation.operations.op_pairs import Pairing

_RANDOM = np.random.default_rng(0)
_X = np.abs(_RANDOM.standard_normal((64, 64))).astype(np.float32)
_W = _RANDOM.standard_normal((64, 64)).astype(np.float32)


def _settled(build, other):
  """Judges the operation `end` on both sides."""
  one, two = (side.run() for side in both(build, other))
  pairing = Pairing(one.op_graph, two.op_graph)
  [tf1] = [n for n, op in enumerate(one.op_graph.ops) if op.name == 'end']
  tf2 = pairing.tf2_of[tf1]
  [value] = one.fetch(['tf1/end:0'])
  [its] = two.fetch(['tf2/end:0'])
  found, layout = agreement_as_held(value, its)
  source = FoundSource(region_pair(pairing, tf1, tf2), found, False, value, its, 0, layout)
  given = [{'tf1/input/(the input):0': _X}, {'tf2/input/(the input):0': _X}]
  return source, settled(source, tuple(zip((one, two), given, strict=True)))


class RegionNoiseTest(parameterized.TestCase):
  def test_sums_that_cancel_out_are_rounding(self):
    def build(g, parts=1):
      def compute(x):
        pieces = np.split(x, parts, 1), np.split(_W, parts, 0)
        return sum(a @ b for a, b in zip(*pieces, strict=True))

      g.target('output', g.op('MatMul', 'end', g.input(_X), compute=compute))

    before, after = _settled(build, lambda g: build(g, 4))
    self.assertFalse(before.agreement.identical)
    self.assertTrue(after.agreement.is_rounding)
    self.assertIsNone(after.elements)

  def test_digits_lost_on_the_way_are_rounding(self):
    """log(1 + x) of a small x, beside greater ones."""

    def build(g, direct=True):
      x = g.input(_X)
      small = g.op(
        'Mul', 'small', x, g.constant(np.float32(10.0) ** np.linspace(-6, 1, 64).astype('f'))
      )
      if direct:
        net = g.op('Log1p', 'log', small, compute=np.log1p)
      else:
        net = g.op(
          'Log',
          'logarithm',
          g.op('AddV2', 'one_more', small, g.constant(np.float32(1))),
          compute=np.log,
        )
      g.target('output', g.op('Neg', 'end', net))

    before, after = _settled(build, lambda g: build(g, False))
    self.assertTrue(before.agreement.is_doubtful)
    self.assertTrue(after.agreement.is_rounding)

  @parameterized.parameters(2.449, 1.01)
  def test_factor_beside_a_mask_is_not(self, factor):
    def build(g, scale=1.0):
      def masked(x):
        return np.where(x > 0.3, x * np.float32(scale), np.float32(-1e9))

      g.target('output', g.op('Mask', 'end', g.input(_X), compute=masked))

    before, after = _settled(build, lambda g: build(g, factor))
    self.assertTrue(before.agreement.is_rounding)
    self.assertFalse(after.agreement.is_rounding)
    np.testing.assert_array_equal(after.elements, _X > 0.3)
    self.assertAlmostEqual(after.agreement.relative, factor - 1, places=4)
    self.assertFalse(after.apart_from(before.tf2).is_rounding)
    self.assertTrue(after.apart_from(before.tf1).identical)

  def test_another_shape_is_judged_by_its_elements(self):
    def build(g, scale=1.0, shape=(64, 64)):
      def masked(x):
        return np.where(x > 0.3, x * np.float32(scale), np.float32(-1e9)).reshape(shape)

      g.target('output', g.op('Mask', 'end', g.input(_X), compute=masked))

    _, after = _settled(build, lambda g: build(g, 1.5, (64, 1, 64)))
    self.assertFalse(after.agreement.is_rounding)
    self.assertEqual(after.elements.shape, (64, 64))


if __name__ == '__main__':
  absltest.main()
