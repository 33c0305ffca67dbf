"""Tests of tf2verify.diagnosis.experimenting."""

from unittest import mock

from absl.testing import absltest

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.experimenting import with_experiments
from tf2verify.records.diagnosis import Cause, Diagnosis


class ExperimentingTest(absltest.TestCase):
  def test_why_no_experiment_was_made(self):
    why_not = 'a penalty does not differ in the graph of the port'
    bench = mock.Mock(why_not=lambda: why_not)
    for numbers, said in (('', why_not), ('all of them', '')):
      diagnosis = Diagnosis(causes=(Cause('a factor of 2', numbers=numbers),))
      found = with_experiments(diagnosis, FailedStage('zero_randomness'), mock.Mock(), bench, False)
      self.assertEqual(found.without_experiments, said)


if __name__ == '__main__':
  absltest.main()
