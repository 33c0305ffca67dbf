"""The frontier against all elements, at many tolerances."""

import math

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics import frontier
from tf2verify.numerics.arrays import compare_arrays
from tf2verify.numerics.tolerance import Tolerance

_EXACT = Tolerance(0.0, 0.0)


def _all_pass(tf1, tf2, rtol, atol):
  wide = np.complex128 if np.iscomplexobj(tf1) else np.float64
  one, other = tf1.astype(wide), tf2.astype(wide)
  return bool(np.all(np.abs(other - one) <= atol + rtol * np.abs(one)))


def _pairs(kind, size, dtype):
  """Returns two arrays that differ in one of several ways."""
  rng = np.random.default_rng(7)
  tf1 = rng.standard_normal(size)
  if kind == 'rounding':
    tf2 = tf1 * (1 + 1e-6 * rng.uniform(-1, 1, size))
  elif kind == 'noise':
    tf2 = tf1 + 1e-4 * rng.standard_normal(size)
  elif kind == 'relu':
    tf1 = np.maximum(tf1, 0)
    tf2 = tf1 * 1.001
  elif kind == 'shift':
    tf2 = tf1 + 0.01
  elif kind == 'few':
    tf2 = tf1.copy()
    tf2[:: size // 5] += 0.5
  else:
    tf2 = tf1 * 2
  if np.dtype(dtype).kind == 'c':
    tf1, tf2 = tf1 + 1j * tf1[::-1], tf2 + 1j * tf2[::-1]
  return tf1.astype(dtype), tf2.astype(dtype)


class FrontierTest(parameterized.TestCase):
  @parameterized.product(
    kind=('rounding', 'noise', 'relu', 'shift', 'few', 'double'),
    dtype=('float32', 'float64', 'complex64', 'float16', ml_dtypes.bfloat16),
    tolerance=((0.0, 0.0), (1e-6, 1e-5), (3.0, 1.0)),
  )
  def test_required_tolerances_pass_and_slightly_less_does_not(self, kind, dtype, tolerance):
    tf1, tf2 = _pairs(kind, 200_001, dtype)
    points = compare_arrays(tf1, tf2, Tolerance(*tolerance)).frontier
    self.assertLess(len(points), 60)
    for rtol in (0.0, 1e-8, 1e-5, 1e-3, 0.3):
      least = frontier.required_atol(points, rtol)
      self.assertTrue(_all_pass(tf1, tf2, rtol, least))
      if least > 0:
        greatest = float(np.max(np.abs(tf2.astype('D') - tf1.astype('D'))))
        self.assertFalse(_all_pass(tf1, tf2, rtol, least - 0.004 * greatest - 1e-300))
    for atol in (0.0, 1e-8, 1e-5, 1e-3):
      least = frontier.required_rtol(points, atol)
      if least < math.inf:
        self.assertTrue(_all_pass(tf1, tf2, least, atol))
      if least > 0:
        self.assertFalse(_all_pass(tf1, tf2, min(least, 1e300) * 0.99, atol * 0.99))

  @parameterized.parameters(0, 1, 2, 3)
  def test_arbitrary_exponents(self, seed):
    rng = np.random.default_rng(seed)
    tf1 = (rng.standard_normal(70_000) * 10.0 ** rng.uniform(-40, 38, 70_000)).astype(np.float32)
    tf2 = (tf1 * (1 + rng.standard_normal(70_000) * 1e-3)).astype(np.float32)
    tf2[rng.random(70_000) < 0.01] = 0
    found = compare_arrays(tf1, tf2, Tolerance(2.0, 0.0)).frontier
    for rtol, atol in ((0.5, 0.0), (0.0, 1e30), (0.99, 1e20), (1.01, 0.0), (1.0, 1e36)):
      if frontier.passes(found, rtol, atol):
        self.assertTrue(_all_pass(tf1, tf2, rtol, atol))
      elif _all_pass(tf1, tf2, rtol, atol):
        self.assertTrue(frontier.passes(found, rtol * 1.004 + 1e-300, atol * 1.004))

  def test_points_of_a_few_elements(self):
    tf1 = np.array([1.0, 2.0, 4.0, 8.0])
    tf2 = tf1 + np.array([0.5, 0.25, 1.0, 1.0])
    self.assertEqual(compare_arrays(tf1, tf2, _EXACT).frontier, ((1.0, 0.5), (4.0, 1.0)))
    found = compare_arrays(tf1, tf2, Tolerance(0.25, 0.125)).difference
    self.assertAlmostEqual(found.required_atol, 0.25, delta=0.002)
    self.assertAlmostEqual(found.required_rtol, 0.375, delta=0.002)

  def test_what_lies_on_one_line_is_one_point(self):
    tf1 = np.array([1.0, 2.0, 3.0, 4.0])
    self.assertEqual(compare_arrays(tf1, 2 * tf1, _EXACT).frontier, ((4.0, 4.0),))

  def test_zero_on_the_tf1_side_has_no_rtol(self):
    found = compare_arrays(np.zeros(3), np.full(3, 0.5), _EXACT).difference
    self.assertEqual(found.required_rtol, math.inf)
    self.assertAlmostEqual(found.required_atol, 0.5, delta=0.001)

  def test_identical_and_exact_dtypes_have_none(self):
    for dtype in ('float32', 'int32', 'bool'):
      ones = np.ones(3, dtype)
      self.assertIsNone(compare_arrays(ones, ones, _EXACT).frontier)
    found = compare_arrays(np.array([1]), np.array([2]), _EXACT)
    self.assertIsNone(found.frontier)
    self.assertEqual((found.difference.required_atol, found.difference.required_rtol), (None, None))

  def test_only_the_sign_of_zero_differs(self):
    found = compare_arrays(np.array([0.0]), np.array([-0.0]), _EXACT)
    self.assertEqual(found.frontier, ())
    self.assertTrue(frontier.passes(found.frontier, 0.0, 0.0))

  def test_no_tolerance_passes_another_pattern_or_an_overflow(self):
    found = compare_arrays(np.array([1.0]), np.array([np.nan]), _EXACT)
    self.assertIsNone(found.frontier)
    self.assertEqual(found.difference.required_atol, math.inf)
    found = compare_arrays(np.array([-1.7e308]), np.array([1.7e308]), _EXACT)
    self.assertFalse(frontier.passes(found.frontier, 1e300, 1e300))
    self.assertEqual(found.difference.required_atol, math.inf)

  def test_infinities_that_agree_do_not_count(self):
    tf1 = np.array([np.inf, np.nan, 1.0], np.float32)
    tf2 = np.array([np.inf, np.nan, 1.5], np.float32)
    found = compare_arrays(tf1, tf2, _EXACT)
    self.assertEqual((found.frontier, found.magnitude), (((1.0, 0.5),), math.inf))

  def test_a_finite_component_beside_nan_counts(self):
    tf1, tf2 = np.array([complex(np.nan, 1.0)]), np.array([complex(np.nan, 1.25)])
    found = compare_arrays(tf1, tf2, Tolerance(1.0, 0.0))
    self.assertEqual(found.frontier, ((1.0, 0.25),))

  def test_a_mismatch_among_what_the_frontier_covers_is_counted(self):
    # The first chunk sets a frontier that fails; later ones are below it.
    tf1 = np.ones(300_000, np.float32)
    tf2 = tf1.copy()
    tf2[0] = 3.0
    tf2[100_000:] = 1.5
    found = compare_arrays(tf1, tf2, Tolerance(0.0, 0.1))
    self.assertEqual(found.difference.mismatched, 200_001)

  def test_magnitude_is_a_lower_bound(self):
    tf1 = np.linspace(-3, 2, 100_000, dtype=np.float32)
    found = compare_arrays(tf1, tf1 + np.float32(1e-6), Tolerance(0.0, 1.0))
    self.assertLessEqual(found.magnitude, 3.0)
    self.assertGreater(found.magnitude, 2.9)


if __name__ == '__main__':
  absltest.main()
