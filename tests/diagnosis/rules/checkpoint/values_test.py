import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.diagnosis.causes import first_cause
from tf2verify.diagnosis.evidence.checkpoint import RestoredValue

RANDOM = np.random.RandomState(0)
SQUARE = RANDOM.normal(size=(4, 4)).astype(np.float32)
BEFORE = np.ones((4, 4), np.float32)


def value(actual, expected=SQUARE, others=None, key='w'):
  before = BEFORE if actual.shape == BEFORE.shape else np.full_like(actual, 0.25)
  return RestoredValue('w', actual, expected, before, key, others or {})


def said(*arguments, **options):
  return first_cause(value(*arguments, **options))


class CauseTest(parameterized.TestCase):
  def test_kept(self):
    self.assertTrue(value(BEFORE).kept)
    self.assertFalse(value(SQUARE + 1).kept)

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
    self.assertIn('TF1 evaluates with the EMA shadow variable', found)

  def test_the_shadow_for_raw_weights(self):
    shadow = SQUARE + 2
    found = said(shadow, others={'w/ExponentialMovingAverage': shadow})
    self.assertIn('declare evaluate_with_ema = True', found)

  def test_unknown(self):
    self.assertEqual(said(2 * SQUARE), '')


class ReorderedTest(parameterized.TestCase):
  def test_transposed(self):
    self.assertIn('axes in order (1, 0)', said(SQUARE.T, SQUARE))

  def test_axes_permuted(self):
    kernel = RANDOM.normal(size=(3, 3, 2, 4)).astype(np.float32)
    found = said(np.transpose(kernel, (1, 0, 2, 3)), kernel)
    self.assertIn('axes in order (1, 0, 2, 3)', found)

  def test_gates(self):
    kernel = RANDOM.normal(size=(3, 8)).astype(np.float32)
    i, j, f, o = np.split(kernel, 4, 1)
    found = said(np.concatenate([i, f, j, o], 1), kernel)
    self.assertIn('4 blocks along axis 1 in order (0, 2, 1, 3)', found)

  def test_halves_of_a_bias(self):
    bias = np.arange(6, dtype=np.float32)
    found = said(np.roll(bias, 3), bias)
    self.assertIn('2 blocks along axis 0 in order (1, 0)', found)

  def test_any_other_order(self):
    bias = np.arange(5, dtype=np.float32)
    self.assertIn('in a different order', said(bias[[1, 0, 2, 3, 4]], bias))

  def test_other_numbers(self):
    self.assertEqual(said(SQUARE + 1, SQUARE), '')
    self.assertEqual(said(np.zeros(0), np.zeros(0)), '')


if __name__ == '__main__':
  absltest.main()
