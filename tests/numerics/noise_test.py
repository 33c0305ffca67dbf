import math

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics import noise
from tf2verify.numerics.noise import Kind, Spread
from tf2verify.numerics.tolerance import Tolerance

TOLERANCE = Tolerance(rtol=1e-6, atol=1e-5)
NORMAL = np.random.RandomState(0).standard_normal


def reference(dtype=np.float32):
  return NORMAL((200, 5)).astype(dtype)


def judged(tf1, tf2, scatter, runs=noise.RUNS):
  """Judges after runs that scatter normally around tf1."""
  spread = Spread(tf1, tf2, TOLERANCE)
  for _ in range(runs):
    spread.add((tf1 + scatter * NORMAL(tf1.shape)).astype(tf1.dtype))
  return spread.judged()


class KindTest(parameterized.TestCase):
  @parameterized.parameters(np.float16, np.float32, np.float64, np.complex64, np.complex128)
  def test_a_difference_like_the_noise_is_rounding(self, dtype):
    tf1 = (100 * NORMAL((200, 5))).astype(dtype)
    tf2 = (tf1 + 0.1 * NORMAL(tf1.shape)).astype(dtype)
    verdict = judged(tf1, tf2, 0.1)
    self.assertIs(verdict.kind, Kind.ROUNDING)
    self.assertBetween(verdict.ratio, 0.2, 2.0)

  @parameterized.parameters(np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64)
  def test_a_difference_beyond_the_noise_is_one(self, dtype):
    tf1 = (100 * NORMAL((200, 5))).astype(dtype)
    tf2 = (tf1 + 3 * NORMAL(tf1.shape)).astype(dtype)
    self.assertIs(judged(tf1, tf2, 0.1).kind, Kind.DIFFERENT)

  def test_rounding_of_bfloat16_is_a_share_of_its_size(self):
    tf1 = reference(ml_dtypes.bfloat16)
    tf2 = (tf1 + 0.05 * NORMAL(tf1.shape)).astype(tf1.dtype)
    self.assertIs(judged(tf1, tf2, 0.05).kind, Kind.DEGENERATE)

  def test_one_element_that_eight_runs_hardly_move_is_given_more(self):
    tf1 = reference()
    tf2 = tf1.copy()
    tf2[7, 3] += 4e-4
    spread = Spread(tf1, tf2, TOLERANCE)
    moved = [tf1.copy() for _ in range(noise.RUNS + 1)]
    for run in moved:
      run[7, 3] += 1e-4
    moved[-1][7, 3] += 2e-4
    for run in moved[:-1]:
      spread.add(run)
    self.assertIs(spread.judged().kind, Kind.DIFFERENT)
    self.assertTrue(spread.judged().doubtful)
    spread.add(moved[-1])
    self.assertIs(spread.judged().kind, Kind.ROUNDING)

  def test_many_elements_beyond_the_noise_are_given_no_more(self):
    tf1 = reference()
    tf2 = tf1 + np.float32(4e-4)
    verdict = judged(tf1, tf2, 3e-5)
    self.assertIs(verdict.kind, Kind.DIFFERENT)
    self.assertFalse(verdict.doubtful)

  def test_noise_as_large_as_the_tensor_is_degenerate(self):
    tf1 = reference()
    for share, kind in ((0.1, Kind.DEGENERATE), (1e-4, Kind.ROUNDING)):
      tf2 = (tf1 + share * NORMAL(tf1.shape)).astype(np.float32)
      self.assertIs(judged(tf1, tf2, share).kind, kind)

  def test_a_difference_beyond_noise_that_is_large_is_one(self):
    tf1 = reference()
    verdict = judged(tf1, tf1 + np.float32(10), 0.1)
    self.assertIs(verdict.kind, Kind.DIFFERENT)

  def test_no_noise(self):
    tf1 = reference()
    verdict = judged(tf1, tf1 + np.float32(1e-4), 0.0)
    self.assertIs(verdict.kind, Kind.DIFFERENT)
    self.assertEqual((verdict.noise, verdict.ratio), (0.0, math.inf))

  def test_no_run(self):
    tf1 = reference()
    verdict = judged(tf1, tf1 + np.float32(1e-4), 1.0, runs=0)
    self.assertIs(verdict.kind, Kind.DIFFERENT)
    self.assertTrue(math.isnan(verdict.noise))

  def test_noisy_elements_do_not_excuse_the_quiet_ones(self):
    tf1 = reference()
    scatter = np.where(np.arange(5) == 0, 1e-3, 1e-7)
    tf2 = tf1 + (scatter * NORMAL(tf1.shape)).astype(np.float32)
    self.assertIs(judged(tf1, tf2, scatter).kind, Kind.ROUNDING)
    tf2[7, 3] += np.float32(2e-4)
    verdict = judged(tf1, tf2, scatter)
    self.assertIs(verdict.kind, Kind.DIFFERENT)
    self.assertEqual(verdict.index, 7 * 5 + 3)
    self.assertLess(verdict.index_noise, 1e-6)

  def test_elements_within_the_tolerance_count_for_nothing(self):
    tf1 = reference()
    tf2 = tf1 + np.float32(5e-6)
    tf2[0, 0] = tf1[0, 0] + np.float32(2e-5)
    scatter = np.zeros(tf1.shape)
    scatter[0, 0] = 1e-5
    verdict = judged(tf1, tf2, scatter)
    self.assertIs(verdict.kind, Kind.ROUNDING)
    self.assertAlmostEqual(verdict.difference, 2e-5, delta=1e-6)


class RunsTest(absltest.TestCase):
  def test_a_large_difference_is_settled_after_one_run(self):
    tf1 = reference()
    spread = Spread(tf1, tf1 + np.float32(1), TOLERANCE)
    spread.add(tf1 + np.float32(1e-6))
    self.assertTrue(spread.settled)
    self.assertAlmostEqual(spread.judged().noise, 1e-6, delta=2e-7)

  def test_a_small_tensor_may_be_still_for_some_runs(self):
    tf1 = reference()[:3]
    spread = Spread(tf1, tf1 + np.float32(1e-4), TOLERANCE)
    for _ in range(3):
      spread.add(tf1)
      self.assertFalse(spread.settled)
    spread.add(tf1 + np.float32(1e-4))
    self.assertIs(spread.judged().kind, Kind.ROUNDING)
    spread = Spread(tf1, tf1 + np.float32(1e-4), TOLERANCE)
    for _ in range(4):
      spread.add(tf1)
    self.assertTrue(spread.settled)

  def test_a_smaller_one_takes_more(self):
    tf1 = reference()
    spread = Spread(tf1, tf1 + np.float32(2e-4), TOLERANCE)
    settled = []
    for _ in range(4):
      spread.add(tf1 + np.float32(1e-5))
      settled.append(spread.settled)
    self.assertEqual(settled, [False, False, False, True])
    self.assertIs(spread.judged().kind, Kind.DIFFERENT)

  def test_a_run_that_cannot_be_compared_excuses_nothing(self):
    tf1 = reference()
    infinite = tf1.copy()
    infinite[3, 3] = np.inf
    for run in (None, tf1[:-1], infinite, np.full_like(tf1, np.nan)):
      spread = Spread(tf1, tf1 + np.float32(1e-4), TOLERANCE)
      spread.add(tf1 + np.float32(1e-4))
      self.assertIs(spread.judged().kind, Kind.ROUNDING)
      spread.add(run)
      self.assertTrue(spread.settled)
      self.assertIs(spread.judged().kind, Kind.DIFFERENT)
      self.assertTrue(math.isnan(spread.judged().noise))

  def test_what_is_not_finite_in_the_reference_counts_for_nothing(self):
    tf1 = reference()
    tf1[0, 0], tf1[0, 1] = np.nan, np.inf
    spread = Spread(tf1, tf1 + np.float32(1e-4), TOLERANCE)
    spread.add(tf1 + np.float32(1e-4))
    verdict = spread.judged()
    self.assertIs(verdict.kind, Kind.ROUNDING)
    self.assertLess(verdict.size, 10)

  def test_the_greatest_noise_of_all_runs_counts(self):
    tf1 = reference()
    spread = Spread(tf1, tf1 + np.float32(1e-4), TOLERANCE)
    for step in (1e-4, 2e-4, 5e-5):
      spread.add(tf1 + np.float32(step))
    self.assertAlmostEqual(spread.judged().noise, 2e-4, delta=1e-6)

  def test_a_reference_that_repeats_itself(self):
    tf1 = reference()
    spread = Spread(tf1, tf1 + np.float32(1e-4), TOLERANCE)
    spread.add(tf1 + np.float32(1e-4))
    self.assertTrue(spread.repeats(tf1.copy()))
    self.assertTrue(spread.repeats(tf1 + np.float32(1e-6)))

  def test_a_reference_that_does_not(self):
    tf1 = reference()
    spread = Spread(tf1, tf1 + np.float32(1e-4), TOLERANCE)
    spread.add(tf1 + np.float32(1e-4))
    for again in (tf1 + np.float32(1e-4), None, tf1[1:], tf1 * np.float32(np.nan)):
      self.assertFalse(spread.repeats(again))

  def test_scalars_and_transposed_tensors(self):
    for tf1 in (np.float32(2.0), reference().T):
      spread = Spread(np.asarray(tf1), np.asarray(tf1 + np.float32(1e-4)), TOLERANCE)
      spread.add(np.asarray(tf1 + np.float32(1e-4)))
      self.assertIs(spread.judged().kind, Kind.ROUNDING)

  def test_more_elements_than_a_chunk(self):
    tf1 = np.ones(2**17 + 5, np.float32)
    tf2 = tf1.copy()
    tf2[-1] += np.float32(1e-3)
    spread = Spread(tf1, tf2, TOLERANCE)
    spread.add(tf1 + np.float32(1e-3))
    self.assertIs(spread.judged().kind, Kind.ROUNDING)
    spread.add(tf1)
    tf2[-2] += np.float32(1)
    spread = Spread(tf1, tf2, TOLERANCE)
    moved = tf1.copy()
    moved[:-2] += np.float32(1)
    spread.add(moved)
    self.assertEqual(spread.judged().index, tf1.size - 2)


if __name__ == '__main__':
  absltest.main()
