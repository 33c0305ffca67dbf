import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics import restored_values

RANDOM = np.random.RandomState(0)
SQUARE = RANDOM.normal(size=(4, 4)).astype(np.float32)
BEFORE = np.ones((4, 4), np.float32)


def said(actual, expected=SQUARE, others=None, key='w', variable='w'):
  return restored_values.cause(variable, actual, expected, BEFORE, key, others or {}).said


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


class CauseTest(parameterized.TestCase):
  def test_kept(self):
    self.assertTrue(restored_values.cause('w', BEFORE, SQUARE, BEFORE, 'w', {}).kept)
    self.assertFalse(restored_values.cause('w', SQUARE + 1, SQUARE, BEFORE, 'w', {}).kept)

  def test_in_part(self):
    actual = SQUARE.copy()
    actual[1:] = 1.0
    self.assertEqual(said(actual), '12 of 16 elements were not restored, the others were')

  def test_swapped(self):
    other = SQUARE + 2
    self.assertIn('the key `v` instead of `w`', said(other, others={'w': SQUARE, 'v': other}))

  def test_raw_weights_for_the_shadow(self):
    raw = SQUARE + 2
    found = said(raw, others={'w': raw}, key='w/ExponentialMovingAverage')
    self.assertIn('TF1 evaluates with the shadow', found)

  def test_the_shadow_for_raw_weights(self):
    shadow = SQUARE + 2
    found = said(shadow, others={'w/ExponentialMovingAverage': shadow})
    self.assertIn('declare evaluate_with_ema = True', found)

  def test_unknown(self):
    self.assertEqual(said(2 * SQUARE), '')


class ReorderedTest(parameterized.TestCase):
  def test_transposed(self):
    self.assertIn('axes in order (1, 0)', restored_values.reordered(SQUARE.T, SQUARE))

  def test_axes_permuted(self):
    kernel = RANDOM.normal(size=(3, 3, 2, 4)).astype(np.float32)
    found = restored_values.reordered(np.transpose(kernel, (1, 0, 2, 3)), kernel)
    self.assertIn('axes in order (1, 0, 2, 3)', found)

  def test_gates(self):
    kernel = RANDOM.normal(size=(3, 8)).astype(np.float32)
    i, j, f, o = np.split(kernel, 4, 1)
    found = restored_values.reordered(np.concatenate([i, f, j, o], 1), kernel)
    self.assertIn('4 blocks along axis 1 in order (0, 2, 1, 3)', found)

  def test_halves_of_a_bias(self):
    bias = np.arange(6, dtype=np.float32)
    found = restored_values.reordered(np.roll(bias, 3), bias)
    self.assertIn('2 blocks along axis 0 in order (1, 0)', found)

  def test_any_other_order(self):
    bias = np.arange(5, dtype=np.float32)
    self.assertIn('in another order', restored_values.reordered(bias[[1, 0, 2, 3, 4]], bias))

  def test_other_numbers(self):
    self.assertEqual(restored_values.reordered(SQUARE + 1, SQUARE), '')
    self.assertEqual(restored_values.reordered(np.zeros(0), np.zeros(0)), '')


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
