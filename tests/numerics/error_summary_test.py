import dataclasses
import math

from absl.testing import absltest

from tf2verify.numerics.error_summary import extent, extents, merged
from tf2verify.records.difference import ArrayDifference, Aspect, Deviation, Difference, Judgement

_PAIR = Deviation(
  'gradient', 'kernel', 'training', 'float32', 1e-6, 1e-5, ((0.5, 0.25), (1.0, 0.3)), 2.0,
  Judgement.FAILED, 1e-9, (3, 0, 1),
)  # fmt: skip
_SMALL = dataclasses.replace(
  _PAIR, subject='bias', frontier=((4.0, 1e-6),), judgement=Judgement.PASSED, noise=None, ulps=(1,)
)
_NOT_FINITE = ArrayDifference(
  (2,), 'float32', 1, 2, (0,), math.nan, 1.0, math.nan, math.nan, 1e-6, 1e-5, math.inf, math.inf
)


class ExtentTest(absltest.TestCase):
  def test_the_greatest_of_a_run(self):
    finding = Difference('gradient', 'kernel', Aspect.VALUES, run='training')
    found = extent('training', [_SMALL, _PAIR], [finding])
    self.assertEqual((found.run, found.differing, found.absolute), ('training', 1, 0.3))
    self.assertEqual((found.relative, found.noise, found.ulps), (0.5, 1e-9, (4, 0, 1)))
    self.assertAlmostEqual(found.share, 0.3 / (1e-5 + 1e-6))
    self.assertAlmostEqual(found.required_atol, 0.3, delta=2e-4)
    self.assertAlmostEqual(found.required_rtol, 0.5, delta=3e-4)

  def test_what_deviates_in_another_run_does_not_count(self):
    found = extent('inference', [_PAIR], [])
    self.assertEqual((found.differing, found.absolute, found.share, found.ulps), (0, 0.0, 0.0, ()))

  def test_rounding_excuses_the_share_and_not_the_difference(self):
    excused = dataclasses.replace(_PAIR, judgement=Judgement.ROUNDING)
    found = extent('training', [excused], [])
    self.assertEqual((found.absolute, found.share, found.required_atol), (0.3, 0.0, 0.0))

  def test_what_is_no_number_is_not_zero(self):
    for difference in (
      Difference('output', 'x', Aspect.SHAPE, '(2,)', '(3,)', 'training'),
      Difference('output', 'x', Aspect.NON_FINITE, run='training', array=_NOT_FINITE),
    ):
      for pairs in ([], [_PAIR]):
        found = extent('training', pairs, [difference])
        self.assertTrue(math.isnan(found.absolute))
        self.assertEqual((found.share, found.required_atol), (math.inf, math.inf))

  def test_order_is_no_difference_of_values(self):
    order = Difference('random op', 'x', Aspect.ORDER, run='training')
    self.assertEqual(extent('training', [], [order]).absolute, 0.0)

  def test_integers_have_no_deviation(self):
    array = ArrayDifference((2,), 'int32', 1, 2, (0,), 4, 6, 2.0, 0.5, 0.0, 0.0)
    found = extent('', [], [Difference('output', 'x', Aspect.VALUES, array=array)])
    self.assertEqual((found.absolute, found.relative, found.share), (2.0, 0.5, math.inf))

  def test_a_run_each_and_together(self):
    other = dataclasses.replace(_SMALL, run='inference')
    parts = extents([_PAIR, other], [])
    self.assertEqual([part.run for part in parts], ['training', 'inference'])
    whole = merged('', parts, 7)
    self.assertEqual((whole.differing, whole.absolute, whole.ulps), (7, 0.3, (4, 0, 1)))
    [nothing] = extents([], [])
    self.assertEqual((nothing.run, nothing.absolute, nothing.noise), ('', 0.0, None))


if __name__ == '__main__':
  absltest.main()
