"""Tests of tf2verify.diagnosis.places."""

import math

import ml_dtypes
import numpy as np
from absl.testing import absltest

from tf2verify.diagnosis.places import statistics


class StatisticsTest(absltest.TestCase):
  def test_finite_elements(self):
    found = statistics(np.array([[0.0, 2.0], [-1.0, 0.0]], np.float32))
    self.assertEqual((found.shape, found.dtype), ((2, 2), 'float32'))
    self.assertEqual((found.minimum, found.maximum, found.mean), (-1.0, 2.0, 0.25))
    self.assertEqual((found.zeros, found.non_finite), (0.5, 0))

  def test_elements_that_are_not_finite_count_apart(self):
    found = statistics(np.array([np.nan, np.inf, 3.0]))
    self.assertEqual((found.minimum, found.maximum, found.non_finite), (3.0, 3.0, 2))

  def test_nothing_finite_and_nothing_at_all(self):
    for array in (np.array([np.nan]), np.zeros((0, 3))):
      found = statistics(array)
      self.assertTrue(math.isnan(found.minimum) and math.isnan(found.mean))

  def test_booleans_integers_and_bfloat16(self):

    self.assertEqual(statistics(np.array([True, False])).mean, 0.5)
    self.assertEqual(statistics(np.array([1, 3])).maximum, 3.0)
    self.assertEqual(statistics(np.array([1, 3], ml_dtypes.bfloat16)).mean, 2.0)
    self.assertEqual(statistics(np.float32(2.0).reshape(())).shape, ())

  def test_what_holds_no_numbers(self):
    for array in (np.array(['a']), np.array([b'a'], object), np.array([1j])):
      self.assertIsNone(statistics(array))


if __name__ == '__main__':
  absltest.main()
