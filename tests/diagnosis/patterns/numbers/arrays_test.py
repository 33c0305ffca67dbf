"""Tests of tf2verify.diagnosis.patterns.numbers.arrays."""

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.diagnosis.patterns.numbers.arrays import (
  Affine,
  affine,
  constant_factor,
  differing,
  ends,
  is_zero_where_different,
  permutation,
  repeats_before,
)

_NUMBERS = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)


class ConstantFactorTest(parameterized.TestCase):
  @parameterized.parameters(2.0, -0.5, 0.99708, 128.0)
  def test_is_found(self, factor):
    self.assertAlmostEqual(constant_factor(_NUMBERS, factor * _NUMBERS), factor, places=4)

  def test_a_small_difference_has_to_be_explained_as_well(self):
    one = np.linspace(1.0, 2.0, 50, dtype=np.float32)
    other = one * 0.9996 + 3e-5 * np.sin(np.arange(50, dtype=np.float32))
    self.assertIsNone(constant_factor(one, other))
    self.assertAlmostEqual(constant_factor(one, one * np.float32(0.9996)), 0.9996, places=6)

  def test_scalar(self):
    self.assertEqual(constant_factor(np.float32(3), np.float32(6)), 2.0)

  def test_one_element_has_another(self):
    other = 2 * _NUMBERS
    other[1, 2] += 0.01
    self.assertIsNone(constant_factor(_NUMBERS, other))

  @parameterized.parameters(0.0, np.nan)
  def test_nothing_to_tell_by(self, value):
    self.assertIsNone(constant_factor(np.full((2, 3), value), np.ones((2, 3))))

  def test_other_shape_and_integers(self):
    self.assertIsNone(constant_factor(_NUMBERS, _NUMBERS[:2]))
    self.assertIsNone(constant_factor(np.arange(4), 2 * np.arange(4)))


class AffineTest(absltest.TestCase):
  def test_scale_and_offset(self):
    found = affine(_NUMBERS, 0.1 * _NUMBERS - 0.05)
    self.assertAlmostEqual(found.factor, 0.1, places=5)
    self.assertAlmostEqual(found.offset, -0.05, places=5)

  def test_scale_alone_has_no_offset(self):
    found = affine(_NUMBERS, (_NUMBERS * 2).astype(np.float32))
    self.assertEqual(found, Affine(2.0))

  def test_square_is_not(self):
    self.assertIsNone(affine(_NUMBERS, _NUMBERS**2))

  def test_constant_is_not(self):
    self.assertIsNone(affine(np.zeros((3, 3)), np.ones((3, 3))))


class PermutationTest(absltest.TestCase):
  def test_along_each_axis(self):
    self.assertEqual(permutation(_NUMBERS, _NUMBERS[[2, 0, 1, 3]], 0), (1, 2, 0, 3))
    self.assertEqual(permutation(_NUMBERS, _NUMBERS[:, ::-1], 1), (5, 4, 3, 2, 1, 0))

  def test_same_order(self):
    self.assertIsNone(permutation(_NUMBERS, _NUMBERS, 0))

  def test_some_slices_are_rounded_otherwise(self):
    order = [3, 4, 5, 0, 1, 2]
    moved = _NUMBERS[:, order]
    moved[:, 1] *= np.float32(1 + 2e-7)
    self.assertFalse((moved == _NUMBERS[:, order]).all())
    self.assertEqual(permutation(_NUMBERS, moved, 1), (3, 4, 5, 0, 1, 2))
    moved[:, 1] *= np.float32(1.01)
    self.assertIsNone(permutation(_NUMBERS, moved, 1))

  def test_two_slices_alike(self):
    numbers = _NUMBERS.copy()
    numbers[1] = numbers[0]
    self.assertIsNone(permutation(numbers, numbers[::-1], 0))

  def test_other_values(self):
    self.assertIsNone(permutation(_NUMBERS, _NUMBERS[::-1] + 1, 0))


class SequenceTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.tf1 = np.ones((2, 4, 3), np.float32) * np.arange(1, 5)[None, :, None]
    self.tf1[1, 2:] = 0
    self.tf2 = self.tf1.copy()
    self.tf2[1, 2:] = 2

  def test_zeros_and_repeated_steps(self):
    self.assertTrue(is_zero_where_different(self.tf1, self.tf2))
    self.assertEqual(repeats_before(self.tf1, self.tf2), 1)

  def test_along_the_first_axis(self):
    tf1, tf2 = self.tf1.swapaxes(0, 1), self.tf2.swapaxes(0, 1)
    self.assertEqual(repeats_before(tf1, tf2), 0)
    np.testing.assert_array_equal(ends(tf1, 0), [4, 2])

  def test_runs_on(self):
    self.tf2[1, 3] = 5
    self.assertIsNone(repeats_before(self.tf1, self.tf2))

  def test_differs_within(self):
    self.tf2[0, 0] = 7
    self.assertFalse(is_zero_where_different(self.tf1, self.tf2))
    self.assertIsNone(repeats_before(self.tf1, self.tf2))

  def test_ends(self):
    np.testing.assert_array_equal(ends(self.tf1, 1), [4, 2])


class DifferingTest(absltest.TestCase):
  def test_rounding_is_none(self):
    one = np.array([1, 1, np.nan, 0, np.inf], np.float32)
    other = np.array([1 + 1e-6, 1.01, np.nan, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(differing(one, other), [False, True, False, True, False])

  def test_integers_are_exact(self):
    np.testing.assert_array_equal(differing(np.arange(3), np.array([0, 2, 2])), [0, 1, 0])


if __name__ == '__main__':
  absltest.main()
