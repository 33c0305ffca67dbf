"""Tests of tf2verify.time_for_diagnosis."""

from unittest import mock

from absl.testing import absltest

from tf2verify import time_for_diagnosis
from tf2verify.time_for_diagnosis import TimeForDiagnosis


class TimeForDiagnosisTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.now = 100.0
    clock = mock.Mock(perf_counter=lambda: self.now)
    self.enter_context(mock.patch.object(time_for_diagnosis, 'time', clock))
    self.time = TimeForDiagnosis()

  def test_experiments_take_as_long_as_the_stages_at_least_ten_seconds(self):
    self.now += 4
    self.assertEqual(self.time.seconds(False, False), 10)
    self.now += 26
    self.assertEqual(self.time.seconds(False, False), 30)

  def test_diagnoses_are_no_time_of_the_stages(self):
    self.now += 30
    with self.time.diagnosing():
      self.now += 50
    self.assertEqual(self.time.seconds(False, False), 30)

  def test_stages_that_are_blocked_share_that_time(self):
    self.now += 30
    self.assertTrue(self.time.is_left_beyond())
    self.now += 25
    self.assertEqual(self.time.seconds(True, False), 5)
    self.assertEqual(self.time.seconds(True, True), 10)
    self.now += 6
    self.assertFalse(self.time.is_left_beyond())
    self.assertEqual(self.time.seconds(True, False), 0)


if __name__ == '__main__':
  absltest.main()
