"""Tests of stages.comparison.seeded.doubtful_starts: starts that a wrong map exchanges."""

import types

import numpy as np
from absl.testing import absltest

from tf2verify.records.initial_value import JudgedStart, Start
from tf2verify.records.sampled import SampledArray
from tf2verify.stages.comparison.seeded.doubtful_starts import doubtful_starts

_ONES, _ZEROS = np.ones(4, np.float32), np.zeros(4, np.float32)
_NUMBERS = np.arange(4, dtype=np.float32)


class DoubtfulStartsTest(absltest.TestCase):
  def doubtful(self, starts, confirmed=(), either=(), derived=True):
    """Returns those of variables that are given with what both sides start them with."""
    found = types.SimpleNamespace(confirmed=frozenset(confirmed), interchangeable=either)
    case = types.SimpleNamespace(pairing=types.SimpleNamespace(derived=found if derived else None))
    judged = {name: JudgedStart(Start.NOT_DRAWN) for name in starts}
    partners = {name: f'port/{name}' for name in starts}
    ones = {name: one for name, (one, _) in starts.items()}
    others = {partners[name]: other for name, (_, other) in starts.items()}
    return doubtful_starts(case, False, judged, partners, (ones, others))

  def test_two_that_may_be_exchanged(self):
    starts = {'gamma': (_ONES, _ZEROS), 'beta': (_ZEROS, _ONES)}
    self.assertEqual(self.doubtful(starts), {'gamma', 'beta'})
    self.assertEqual(self.doubtful(starts, derived=False), set())
    self.assertEqual(self.doubtful(starts, confirmed=('gamma',)), {'beta'})

  def test_a_confirmed_pair_that_is_interchangeable(self):
    entry = types.SimpleNamespace(tf1=('gamma',))
    starts = {'gamma': (_ONES, _ZEROS), 'beta': (_ZEROS, _ONES)}
    found = self.doubtful(starts, ('gamma', 'beta'), ((entry,),))
    self.assertEqual(found, {'gamma'})

  def test_three_in_a_circle(self):
    starts = {'a': (_ONES, _ZEROS), 'b': (_ZEROS, _NUMBERS), 'c': (_NUMBERS, _ONES)}
    self.assertEqual(self.doubtful(starts), {'a', 'b', 'c'})

  def test_numbers_in_another_layout(self):
    starts = {'a': (_ONES, _NUMBERS), 'b': (_NUMBERS.reshape(2, 2)[::-1], _ONES)}
    self.assertEqual(self.doubtful(starts), {'a', 'b'})

  def test_a_part_of_large_arrays(self):
    part = SampledArray(_ONES, (2, 20), 4, 0)
    starts = {'a': (part, np.ones(40, np.float32)), 'b': (part, np.zeros(40, np.float32))}
    self.assertEqual(self.doubtful(starts), {'a', 'b'})
    self.assertEqual(self.doubtful({'a': starts['a']}), set())

  def test_names(self):
    names = np.array([b'a', b'b'], object)
    starts = {'a': (names, np.array([b'c', b'd'], object))}
    self.assertEqual(self.doubtful(starts), set())
    starts['b'] = (np.array([b'e', b'f'], object), names)
    self.assertEqual(self.doubtful(starts), {'a'})

  def test_gates_in_another_order(self):
    self.assertEqual(self.doubtful({'bias': (_NUMBERS, _NUMBERS[::-1])}), {'bias'})

  def test_a_start_that_the_port_has_nowhere(self):
    self.assertEqual(self.doubtful({'gamma': (_ONES, 20 * _ONES)}), set())
    starts = {'a': (_ZEROS, _ONES), 'b': (_ZEROS, _ONES)}
    self.assertEqual(self.doubtful(starts), set())

  def test_a_start_of_another_size(self):
    starts = {'gamma': (_ONES, _ZEROS), 'beta': (np.zeros(6, np.float32), np.ones(6, np.float32))}
    self.assertEqual(self.doubtful(starts), set())


if __name__ == '__main__':
  absltest.main()
