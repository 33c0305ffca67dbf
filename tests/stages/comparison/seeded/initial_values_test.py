"""Tests of tf2verify.stages.comparison.seeded.initial_values."""

import numpy as np
from absl.testing import absltest

from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.initial_value import JudgedStart, Start
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.comparison.seeded import initial_values

_RUN = 'inference, num_random_ops'
_PAIRS = (('a', 'net/a'), ('b', 'net/b'))
_ONE, _OTHER = np.arange(4.0).reshape(2, 2), np.arange(4.0, 8.0).reshape(2, 2)


def _run(side, values):
  names = [pair[side == 'tf2'] for pair in _PAIRS]
  records = tuple(TensorRecord(n, v.copy()) for n, v in zip(names, values, strict=True))
  return Observation(side, _RUN, '', (), initial_values=records)


def _shared(tf1, tf2):
  return initial_values.shared_numbers(_run('tf1', tf1), _run('tf2', tf2), _PAIRS)


class SharedNumbersTest(absltest.TestCase):
  def test_in_the_port_alone(self):
    found = _shared((_ONE, _OTHER), (_ONE, _ONE))
    self.assertEqual(list(found), ['b'])
    self.assertStartsWith(found['b'], 'b and a start with exactly the same numbers in the port')

  def test_in_tf1_alone(self):
    found = _shared((_ONE, _ONE), (_ONE, _OTHER))
    self.assertStartsWith(
      found['b'], 'b and a start with exactly the same numbers in tf1, but not in the'
    )

  def test_on_both_sides(self):
    self.assertEqual(_shared((_ONE, _ONE), (_OTHER, _OTHER)), {})

  def test_constants_are_no_random_numbers(self):
    ones = np.ones((2, 2))
    self.assertEqual(_shared((ones, _OTHER), (ones, ones)), {})


def _judged(start, count=1, tf1='uniform in ±0.7', tf2='uniform in ±0.8', **more):
  return {f'k{n}': JudgedStart(start, tf1, tf2, **more) for n in range(count)}


class DifferentTest(absltest.TestCase):
  def test_one_cause_for_all_variables(self):
    found = initial_values.of_different_distributions(_judged(Start.DIFFERENT, 20), _RUN)
    self.assertLen(found, 1)
    self.assertEqual((found[0].subject, found[0].aspect), ('k0', Aspect.DISTRIBUTION))
    self.assertEqual(found[0].tf1, 'uniform in ±0.7, and so k1, k2, k3, k4 and 15 more')
    self.assertIn('of 20 variables (k0, k1, k2, k3 and 16 more) is drawn from', found[0].hint)

  def test_two_kinds_are_two_causes(self):
    judged = _judged(Start.DIFFERENT) | {'b': JudgedStart(Start.DIFFERENT, 'x', 'y')}
    self.assertLen(initial_values.of_different_distributions(judged, _RUN), 2)

  def test_another_family_says_who_draws_so(self):
    judged = _judged(Start.DIFFERENT, tf2='truncated normal, standard deviation 0.4')
    [found] = initial_values.of_different_distributions(judged, _RUN)
    self.assertIn('glorot_uniform', found.hint)

  def test_families_of_many_scales_are_one_cause(self):
    judged = {
      f'k{n}': JudgedStart(
        Start.DIFFERENT,
        f'normal, standard deviation {0.1 * n:.4g}',
        f'truncated normal, standard deviation {0.2 * n * n:.4g}',
      )
      for n in range(1, 26)
    }
    [found] = initial_values.of_different_distributions(judged, _RUN)
    self.assertIn('of 25 variables (k1, k2, k3, k4 and 21 more) is drawn from', found.hint)
    self.assertIn('0.1; the port truncated normal, standard deviation 0.2 for k1 (24', found.hint)
    self.assertIn('normal, standard deviation 0.2 (k2); normal', found.tf1)
    self.assertEndsWith(found.tf2, '; and 22 more')

  def test_one_family_is_one_cause_for_each_factor(self):
    def judged(factors):
      return {
        f'k{n}': JudgedStart(Start.DIFFERENT, f'uniform in ±{n}', f'uniform in ±{n * factor}')
        for n, factor in enumerate(factors, 1)
      }

    for factors, causes in (((2, 2, 2), 1), ((2, 3, 3), 2), ((2, 3, 4, 5), 1)):
      found = initial_values.of_different_distributions(judged(factors), _RUN)
      self.assertLen(found, causes)

  def test_scaled_numbers_are_left_to_the_diagnosis(self):
    judged = _judged(Start.DIFFERENT, is_related=True)
    [found] = initial_values.of_different_distributions(judged, _RUN)
    self.assertEqual(found.hint, '')

  def test_the_same_is_no_difference(self):
    self.assertEqual(initial_values.of_different_distributions(_judged(Start.SAME), _RUN), [])


class NotesTest(absltest.TestCase):
  def test_by_the_operations(self):
    [note] = initial_values.notes_on_same(_judged(Start.SAME, 7))
    self.assertStartsWith(
      note, '7 initial values are drawn with different random numbers from the same'
    )
    self.assertIn('k0, k1, k2, k3 and 3 more (uniform in ±0.7); the port continued', note)

  def test_by_a_test_of_values(self):
    [note] = initial_values.notes_on_same(_judged(Start.SAME, tested=2000, resolution=0.01))
    self.assertIn('by a test of 2,000 numbers of each side, in which a scale 1 % off', note)

  def test_without_any(self):
    self.assertEqual(initial_values.notes_on_same(_judged(Start.DIFFERENT)), [])

  def test_too_little_known(self):
    [spot] = initial_values.blind_spots(_judged(Start.UNKNOWN, tested=9, resolution=0.3))
    self.assertIn('the 9 numbers of each side that were compared would hide a scale up to 30', spot)


class ExplainedTest(absltest.TestCase):
  def test_a_table_and_a_draw(self):
    found = Difference.of(TensorKey('initial value', 'k0', _RUN, 'net/k0'), Aspect.VALUES)
    judged = _judged(Start.NOT_DRAWN, tf1='no random op')
    hint = initial_values.with_cause(found, judged).hint
    self.assertEqual(
      hint,
      'tf1: no random op; the port: uniform in ±0.8: initialize it in the same way on both sides',
    )

  def test_others_are_left_alone(self):
    found = Difference('initial value', 'b', Aspect.VALUES, run=_RUN)
    self.assertIs(initial_values.with_cause(found, _judged(Start.NOT_DRAWN)), found)


if __name__ == '__main__':
  absltest.main()
