"""Tests of tf2verify.diagnosis.rules.updates.later_rates."""

import math

from absl.testing import absltest, parameterized

from tf2verify.diagnosis.rules.updates.later_rates import (
  COUNTS,
  are_same,
  counts_that_tell,
  first_apart,
  later_rates,
)


def _stairs(*boundaries):
  return lambda count: 0.1 ** sum(count > boundary for boundary in boundaries)


class Asked:
  """Both schedules, and how often they were asked."""

  def __init__(self, tf1, tf2):
    self.sides, self.asked = (tf1, tf2), 0

  def __call__(self, counts):
    self.asked += len(counts)
    return tuple([side(count) for count in counts] for side in self.sides)


class CountsThatTellTest(parameterized.TestCase):
  @parameterized.parameters(
    (_stairs(1000), _stairs(1500)),
    (_stairs(1000, 5000), _stairs(1500, 5000)),
    (_stairs(40, 1_000_001), _stairs(40, 1_000_002)),
    (_stairs(3, 40, 500, 6000), _stairs(3, 40, 500, 6001)),
    (_stairs(1000), lambda count: 0.1 ** (count >= 1000) if count < 900 or count > 1100 else 0.5),
  )
  def test_stairs_between_the_counts(self, tf1, tf2):
    rates = Asked(tf1, tf2)
    counts = counts_that_tell(rates)
    self.assertFalse(all(are_same(*rates(counts))))
    self.assertContainsSubset(COUNTS, counts)
    self.assertEqual(sorted(counts), list(counts))

  def test_a_bound_that_the_second_fall_reaches(self):
    def falling(least):
      return lambda count: max(0.01 * 0.7 ** (count // 10), least)

    text = later_rates(Asked(falling(0.006), falling(0.0)))
    self.assertIn('at step count 20 by a factor of 0.857143 in TF1 and 0.7 in the port', text)
    self.assertIn('to 0.006 and 0.0049, and alike before: one side has a bound', text)

  def test_a_bound_that_is_reached_later(self):
    def falling(least, every=2):
      return lambda count: max(0.01 * 0.5 ** (count // every), least)

    text = later_rates(Asked(falling(0.001), falling(0.0)))
    self.assertIn(
      'TF1 is never less than 0.001, that of the port is 0.000625 at step count 8', text
    )
    self.assertIn("bound the port's schedule by 0.001 too (tf.maximum", text)
    text = later_rates(Asked(falling(0.0, 1), falling(0.0002, 1)))
    self.assertIn('the port is never less than 0.0002, that of TF1 is', text)

    def rising(most):
      return lambda count: min(0.001 * (count + 1), most)

    text = later_rates(Asked(rising(0.05), rising(1e9)))
    self.assertIn(
      'of TF1 is never more than 0.05, that of the port is 0.051 at step count 50', text
    )
    # The other one ends as well.
    self.assertNotIn('never', later_rates(Asked(rising(0.05), rising(0.07))))
    self.assertNotIn('never', later_rates(Asked(falling(0.001), falling(0.0009))))

  def test_a_boundary_is_named(self):
    text = later_rates(Asked(_stairs(1000, 5000), _stairs(1500, 5000)))
    self.assertIn('at step counts 1,001 and 5,001 in TF1, and at 1,501 and 5,001 in the', text)
    text = first_apart(Asked(_stairs(1000), _stairs(1500)))
    self.assertIn('the same up to step count 1,000 and differ from there on', text)

  @parameterized.parameters(
    (_stairs(1000, 5000),),
    (lambda count: 0.1 * math.exp(-count / 3000),),
    (lambda count: 0.1,),
  )
  def test_the_same_schedule_is_asked_a_few_times(self, schedule):
    rates = Asked(schedule, schedule)
    counts = counts_that_tell(rates)
    self.assertLess(rates.asked, 5 * len(COUNTS))
    self.assertTrue(all(are_same(*rates(counts))))
    self.assertEqual(later_rates(rates), '')


if __name__ == '__main__':
  absltest.main()
