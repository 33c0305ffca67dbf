"""Tests of tf2verify.numerics.agreement."""

import math
import warnings

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics.agreement import IDENTICAL, ROUNDING_EPSILONS, agreement

_EPSILON = float(np.finfo(np.float32).eps)
_NAN, _INF = np.float32('nan'), np.float32('inf')


def _floats(*values):
  return np.array(values, np.float32)


class AgreementTest(parameterized.TestCase):
  def test_equal_arrays_are_identical(self):
    for array in (
      _floats(1.0, -2.0),
      _floats(_NAN, _INF, -_INF, 0.0),
      _floats(),
      np.zeros((0, 3), np.int64),
      np.float32(2.0).reshape(()),
      np.array([True, False]),
      np.array([b'a', b'bc'], object),
      np.array([1 + 2j], np.complex64),
      np.array([2**62 + 1]),
    ):
      with self.subTest(repr(array)):
        found = agreement(array, array.copy())
        self.assertTrue(found.identical)
        self.assertTrue(found.is_rounding)
        self.assertEqual((found.absolute, found.relative), (0.0, 0.0))

  def test_signs_of_zero_are_alike(self):
    self.assertTrue(agreement(_floats(0.0, 1.0), _floats(-0.0, 1.0)).identical)

  def test_floats_apart(self):
    found = agreement(_floats(1.0, -4.0), _floats(1.0, -4.5))
    self.assertFalse(found.identical)
    self.assertEqual((found.absolute, found.scale, found.relative), (0.5, 4.0, 0.125))
    self.assertEqual(found.epsilon, _EPSILON)
    self.assertFalse(found.is_rounding)

  def test_a_few_units_in_the_last_place_of_the_largest_element_are_rounding(self):
    tf1 = _floats(1.0, 1e-3)
    for epsilons, rounding in ((1, True), (ROUNDING_EPSILONS, True), (20, False)):
      found = agreement(tf1, tf1 + _floats(0.0, epsilons * _EPSILON))
      self.assertFalse(found.identical)
      self.assertEqual(found.is_rounding, rounding, epsilons)

  def test_elements_that_great_ones_hide_are_in_doubt(self):
    scores = np.linspace(-3, 3, 60, dtype=np.float32)
    masked = np.concatenate([scores, np.full(40, -1e9, np.float32)])
    found = agreement(masked, np.where(masked > -10, masked * np.float32(2.449), masked))
    self.assertTrue(found.is_rounding)
    self.assertTrue(found.is_doubtful)
    self.assertFalse(agreement(masked, masked * np.float32(1 + 2e-7)).is_doubtful)
    mask = np.where(masked > -10, np.float32(0), masked)
    self.assertTrue(agreement(mask, masked).is_doubtful)
    self.assertFalse(agreement(scores, scores * np.float32(1 + 2e-7)).is_doubtful)

  def test_a_sum_that_cancels_out_is_not_in_doubt(self):
    random = np.random.default_rng(0)
    one, other = (random.standard_normal((200, 200)).astype(np.float32) for _ in range(2))
    parts = np.stack([one[:, :100] @ other[:100], one[:, 100:] @ other[100:]]).sum(0)
    found = agreement(one @ other, parts)
    self.assertFalse(found.identical)
    self.assertTrue(found.is_rounding)
    self.assertFalse(found.is_doubtful)

  def test_anything_beside_zeros_is_no_rounding(self):
    found = agreement(_floats(0.0, 0.0), _floats(0.0, 1e-30))
    self.assertEqual(found.relative, math.inf)
    self.assertFalse(found.is_rounding)

  @parameterized.parameters(
    (_floats(1.0, _NAN), _floats(1.0, 2.0)),
    (_floats(1.0, 2.0), _floats(_NAN, 2.0)),
    (_floats(_INF), _floats(-_INF)),
    (_floats(_INF), _floats(_NAN)),
    (_floats(1.0), _floats(_INF)),
    (_floats(1.0, 2.0), _floats(1.0)),
    (_floats(1.0), _floats(1.0).reshape(1, 1)),
    (_floats(1.0), np.array([1.0])),
    (_floats(), _floats().reshape(0, 1)),
    (np.array([1], np.int32), np.array([1], np.int64)),
  )
  def test_other_patterns_shapes_and_dtypes_are_infinitely_apart(self, tf1, tf2):
    found = agreement(tf1, tf2)
    self.assertFalse(found.identical)
    self.assertFalse(found.is_rounding)
    self.assertEqual((found.absolute, found.relative), (math.inf, math.inf))

  def test_difference_beside_what_is_not_finite_on_both_sides(self):
    found = agreement(_floats(_NAN, _INF, 2.0), _floats(_NAN, _INF, 3.0))
    self.assertEqual((found.absolute, found.scale), (1.0, 2.0))

  def test_integers_are_compared_exactly(self):
    found = agreement(np.array([1, 7]), np.array([1, 8]))
    self.assertEqual((found.absolute, found.scale, found.is_rounding), (1.0, 7.0, False))
    found = agreement(np.array([2**62]), np.array([2**62 + 1]))
    self.assertFalse(found.identical)

  def test_integers_apart_by_less_than_float64_holds_are_not_rounding(self):
    self.assertFalse(agreement(np.array([2**62]), np.array([2**62 + 1])).is_rounding)

  @parameterized.parameters(
    (np.array([True, False]), np.array([True, True])),
    (np.array([b'a', b'b'], object), np.array([b'a', b'c'], object)),
    (np.array(b'a', object), np.array(b'b', object)),
  )
  def test_booleans_and_strings(self, tf1, tf2):
    found = agreement(tf1, tf2)
    self.assertEqual((found.identical, found.absolute, found.is_rounding), (False, 1.0, False))

  def test_half_precision_has_its_own_rounding(self):
    import ml_dtypes

    for dtype, epsilon in ((np.float16, 2.0**-10), (ml_dtypes.bfloat16, 2.0**-7)):
      tf1 = np.array([1.0, 0.5], dtype)
      found = agreement(tf1, np.array([1.0 + epsilon, 0.5], dtype))
      self.assertEqual((found.identical, found.epsilon, found.absolute), (False, epsilon, epsilon))
      self.assertTrue(found.is_rounding)

  def test_complex_numbers(self):
    found = agreement(np.array([3 + 4j], np.complex64), np.array([3 + 3j], np.complex64))
    self.assertEqual((found.absolute, found.scale), (1.0, 5.0))

  def test_nothing_is_warned_of(self):
    with warnings.catch_warnings():
      warnings.simplefilter('error')
      agreement(_floats(_INF, 1.0), _floats(_INF, 2.0))
      agreement(np.array([1.7e308]), np.array([-1.7e308]))

  def test_identical(self):
    self.assertTrue(IDENTICAL.identical)
    self.assertEqual(IDENTICAL.relative, 0.0)


if __name__ == '__main__':
  absltest.main()
