"""Tests of tf2verify.diagnosis.rules.initial_values.distributions."""

from absl.testing import absltest

from tf2verify.diagnosis.evidence.initial_values import OtherDistribution
from tf2verify.diagnosis.rules.initial_values.distributions import other_distribution
from tf2verify.records.distribution import Distribution, Family

_NORMAL = str(Distribution(Family.NORMAL, 0.0, 0.4472))
_TRUNCATED = str(Distribution(Family.TRUNCATED_NORMAL, 0.0, 0.5084))


class DistributionsTest(absltest.TestCase):
  def text(self, tf1, tf2):
    return other_distribution(OtherDistribution(tf1, tf2, ('kernel',))).text

  def test_two_numbers_that_are_one_are_explained(self):
    for pair in ((_NORMAL, _TRUNCATED), (_TRUNCATED, _NORMAL)):
      text = self.text(*pair)
      self.assertIn('0.4472', text)
      self.assertIn('before truncation, 1.137 times that of the numbers', text)

  def test_one_family(self):
    text = self.text(_TRUNCATED, str(Distribution(Family.TRUNCATED_NORMAL, 0.0, 0.6)))
    self.assertNotIn('before truncation', text)


if __name__ == '__main__':
  absltest.main()
