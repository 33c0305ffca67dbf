"""Tests of noise in one byte."""

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.reference.noise_codes import noise_codes as encode
from tf2verify.reference.noise_codes import noise_of_codes as decode
from tf2verify.reference.noise_codes import noise_scale as scale


class NoiseCodesTest(parameterized.TestCase):
  @parameterized.parameters(1e-30, 1e-12, 1.0, 3e20)
  def test_noise_is_rounded_up_by_a_fifth_at_most(self, size):
    value = np.array([size, -size / 3, 0.0])
    noise = size * 10.0 ** np.random.RandomState(0).uniform(-16, 1, (1000, 3))
    for row in noise:
      found = decode(encode(row, value), value)
      self.assertTrue((found >= row).all())
      self.assertTrue((found <= row * 1.19).all())

  def test_none_unknown_and_far_too_much(self):
    value = np.array([1.0, 2.0, 3.0, 3.5], np.float32)
    codes = encode(np.array([0.0, np.nan, np.inf, 1e9]), value)
    self.assertEqual(codes.tolist(), [0, 255, 255, 254])
    self.assertEqual(codes.dtype, np.uint8)
    found = decode(codes, value)
    self.assertEqual(found[0], 0)
    self.assertTrue(np.isnan(found[1:3]).all())
    self.assertBetween(found[3], 40 * 4, 50 * 4)

  @parameterized.parameters(
    ([3.0, -5.0], 'float32', 8.0),
    ([4.0], 'float32', 8.0),
    ([0.0], 'float32', 1.0),
    ([], 'float32', 1.0),
    ([np.nan, np.inf, 0.3], 'float16', 0.5),
    ([0.3], ml_dtypes.bfloat16, 0.5),
    ([3 + 4j], 'complex64', 8.0),
    ([1e308], 'float64', 2.0**1000),
  )
  def test_scale(self, value, dtype, expected):
    self.assertEqual(scale(np.array(value, dtype)), expected)

  def test_the_numbers_never_change(self):
    value = np.array([0.75], np.float32)
    self.assertEqual(encode(np.array([1.0]), value).tolist(), [232])
    self.assertEqual(encode(np.array([2.0**-24]), value).tolist(), [232 - 96])
    self.assertEqual(decode(np.array([1, 254], np.uint8), value).tolist(), [2**-57.75, 2**5.5])


if __name__ == '__main__':
  absltest.main()
