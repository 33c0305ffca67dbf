import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics import restored_values

RANDOM = np.random.RandomState(0)
SQUARE = RANDOM.normal(size=(4, 4)).astype(np.float32)


class SameTest(parameterized.TestCase):
  @parameterized.parameters(
    np.float32, np.float64, np.complex64, ml_dtypes.bfloat16, np.int32, bool, object
  )
  def test_equal(self, dtype):
    value = np.array([0, 1, 1]).astype(dtype)
    self.assertTrue(restored_values.same(value, value.copy()))
    other = np.array([0, 0, 1]).astype(dtype)
    self.assertFalse(restored_values.same(value, other))

  def test_nan_equals_nan_at_the_same_place(self):
    value = np.array([np.nan, 1.0])
    self.assertTrue(restored_values.same(value, value.copy()))
    self.assertFalse(restored_values.same(value, value[::-1]))

  def test_another_dtype_or_shape(self):
    self.assertFalse(restored_values.same(np.ones(3, np.float32), np.ones(3)))
    self.assertFalse(restored_values.same(np.ones((3, 1)), np.ones(3)))


class SentinelTest(parameterized.TestCase):
  @parameterized.parameters(
    np.float32, np.float16, np.complex64, ml_dtypes.bfloat16, np.int8, np.uint64, bool, object
  )
  def test_differs_in_every_element(self, dtype):
    for value in (np.zeros((2, 3)), np.full((2, 3), 127), np.ones(())):
      value = value.astype(dtype)
      found = restored_values.sentinel('w', value)
      self.assertEqual((found.shape, found.dtype), (value.shape, value.dtype))
      self.assertTrue(np.all(found != value))

  def test_differs_from_itself(self):
    first = restored_values.sentinel('w', np.zeros(3, np.float32))
    self.assertTrue(np.all(restored_values.sentinel('w', first) != first))
    self.assertTrue(np.all(restored_values.sentinel('v', first) > 0))


class ProportionalTest(absltest.TestCase):
  def test_a_factor(self):
    self.assertTrue(restored_values.proportional(-0.01 * SQUARE, SQUARE))
    self.assertTrue(restored_values.proportional(SQUARE, SQUARE))

  def test_no_factor(self):
    self.assertFalse(restored_values.proportional(SQUARE**2, SQUARE))
    self.assertFalse(restored_values.proportional(np.zeros_like(SQUARE), SQUARE))
    self.assertFalse(restored_values.proportional(SQUARE[0], SQUARE))

  def test_zeros_and_integers(self):
    self.assertTrue(restored_values.proportional(np.zeros(3), np.zeros(3)))
    self.assertFalse(restored_values.proportional(np.ones(3), np.zeros(3)))
    self.assertFalse(restored_values.proportional(np.array(2), np.array(3)))


if __name__ == '__main__':
  absltest.main()
