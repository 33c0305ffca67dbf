"""Tests of tf2verify.numerics.same_numbers."""

import numpy as np
from absl.testing import absltest

from tf2verify.numerics.same_numbers import are_same

_INF, _NAN = np.inf, np.nan


def same(one, other):
  return are_same(np.float32(one), np.float32(other))


class SameNumbersTest(absltest.TestCase):
  def test_but_for_rounding_and_shape(self):
    self.assertTrue(same([[1.0, 100.0]], [1.005, 100.0]))
    self.assertFalse(same([1.0, 100.0], [1.05, 100.0]))
    self.assertFalse(same([1.0, 100.0], [1.0]))
    self.assertFalse(are_same(np.int32([1, 2]), np.int32([1, 3])))

  def test_masked_elements_are_no_measure_of_the_others(self):
    self.assertFalse(same([1.0, -1e9], [2.0, -1e9]))
    self.assertTrue(same([1.0, -1e9], [1.0, -1e9]))

  def test_what_is_not_finite_has_to_be_so_on_both_sides(self):
    self.assertTrue(same([-_INF, _NAN, 1.0], [-_INF, _NAN, 1.0]))
    for other in ([-1e4, _NAN, 1.0], [_INF, _NAN, 1.0], [-_INF, 0.0, 1.0], [-_INF, _NAN, 1.1]):
      self.assertFalse(same([-_INF, _NAN, 1.0], other))
    self.assertFalse(same([1.0, 2.0], [1.0, _INF]))


if __name__ == '__main__':
  absltest.main()
