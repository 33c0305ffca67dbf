import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics.ulps import SAMPLE, ulp_histogram

_DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)


def _moved(value, steps, dtype):
  """Returns a positive number and the one that is so many numbers of its dtype above it."""
  one = np.array([value], dtype)
  bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[one.dtype.itemsize]
  return one, (one.view(bits) + bits(steps)).view(one.dtype)


class UlpHistogramTest(parameterized.TestCase):
  @parameterized.parameters(*_DTYPES)
  def test_distances_count_numbers(self, dtype):
    for steps, place in ((0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (127, 7), (128, 8)):
      for tf1, tf2 in (_moved(1.5, steps, dtype), _moved(1.5, steps, dtype)[::-1]):
        self.assertEqual(ulp_histogram(tf1, tf2), (*[0] * place, 1))
        self.assertEqual(ulp_histogram(-tf1, -tf2), (*[0] * place, 1))

  @parameterized.parameters(*_DTYPES)
  def test_through_zero(self, dtype):
    tiny = _moved(0.0, 1, dtype)[1]
    self.assertEqual(ulp_histogram(np.array([0.0], dtype), np.array([-0.0], dtype)), (1,))
    self.assertEqual(ulp_histogram(-tiny, tiny), (0, 0, 1))

  def test_the_farthest(self):
    greatest = np.array([np.finfo(np.float64).max])
    self.assertLen(ulp_histogram(-greatest, greatest), 65)

  def test_what_is_not_finite_does_not_count(self):
    tf1 = np.array([np.nan, np.inf, 1.0, 1.0], np.float32)
    tf2 = np.array([np.nan, 1.0, np.nan, 1.0], np.float32)
    self.assertEqual(ulp_histogram(tf1, tf2), (1,))
    self.assertEqual(ulp_histogram(tf1[:3], tf2[:3]), ())

  def test_parts_of_complex_numbers(self):
    tf1 = np.array([1 + 2j], np.complex64)
    tf2 = np.array([np.nextafter(np.float32(1), np.float32(2)) + 2j], np.complex64)
    self.assertEqual(ulp_histogram(tf1, tf2), (1, 1))

  def test_layout_and_byte_order(self):
    tf1 = np.arange(12, dtype='>f4').reshape(3, 4)
    self.assertEqual(ulp_histogram(tf1, tf1.copy()), (12,))
    self.assertEqual(ulp_histogram(tf1.T, np.asfortranarray(tf1.T)), (12,))
    self.assertEqual(ulp_histogram(np.float32(2)[...], np.float32(2)[...]), (1,))

  def test_a_large_tensor_is_sampled(self):
    tf1 = np.ones(10 * SAMPLE + 1, np.float32)
    [counted] = ulp_histogram(tf1, tf1)
    self.assertBetween(counted, SAMPLE // 2, SAMPLE)

  @parameterized.parameters(np.int32, bool, 'U3')
  def test_other_dtypes(self, dtype):
    self.assertEqual(ulp_histogram(np.zeros(2, dtype), np.zeros(2, dtype)), ())

  def test_empty(self):
    self.assertEqual(ulp_histogram(np.zeros((0,), np.float32), np.zeros((0,), np.float32)), ())


if __name__ == '__main__':
  absltest.main()
