"""Tests of tf2verify.sides.graphs.kept_values."""

from unittest import mock

import numpy as np
from absl.testing import absltest

from tf2verify.sides.graphs import kept_values
from tf2verify.sides.graphs.kept_values import KeptValues, key_of


class KeptValuesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.kept, self.computed = KeptValues(), []

  def answers(self, *keys):
    def compute(numbers):
      self.computed.append([keys[n] for n in numbers])
      return [[np.full(2, n, np.float32)] for n in numbers]

    return [int(answer[0][0]) for answer in self.kept.answers(keys, compute)]

  def test_what_is_known_is_not_computed(self):
    self.assertEqual(self.answers('a', 'b', 'a'), [0, 1, 0])
    self.assertEqual(self.answers('c', 'b'), [0, 1])
    self.assertEqual(self.computed, [['a', 'b'], ['c']])
    self.kept.clear()
    self.answers('a')
    self.assertEqual(self.computed[-1], ['a'])

  def test_none_is_each_time_another_question(self):
    self.assertEqual(self.answers(None, None), [0, 1])
    self.assertEqual(self.answers(None), [0])
    self.assertEqual(self.computed, [[None, None], [None]])

  def test_no_answer_is_one(self):
    for _ in range(2):
      self.assertEqual(self.kept.answers('a', lambda numbers: [None for _ in numbers]), [None])
    self.assertEqual(self.kept.answers('a', lambda numbers: []), [None])

  def test_large_ones_are_computed_again(self):
    with mock.patch.object(kept_values, '_MOST_OF_ONE', 7):
      self.answers('a')
    with mock.patch.object(kept_values, '_MOST_BYTES', 15):
      self.answers('a', 'b')
      self.answers('a', 'b')
    self.assertEqual(self.computed, [['a'], ['a', 'b'], ['b']])

  def test_nobody_changes_what_is_kept(self):
    [[array]] = self.kept.answers('a', lambda numbers: [[np.zeros(2)]])
    with self.assertRaises(ValueError):
      array += 1


class KeyTest(absltest.TestCase):
  def test_names_values_shapes_and_types_count(self):
    one = np.float32([1, 2])
    same = key_of(['t'], {'a': one, 'b': one})
    self.assertEqual(same, key_of(['t'], {'b': one.copy(), 'a': one}))
    others = [
      key_of(['u'], {'a': one, 'b': one}),
      key_of(['t'], {'a': one}),
      key_of(['t'], {'a': one, 'c': one}),
      key_of(['t'], {'a': one, 'b': one + 1}),
      key_of(['t'], {'a': one, 'b': one[:, None]}),
      key_of(['t'], {'a': one, 'b': one.view(np.int32)}),
    ]
    self.assertLen({same, *others}, 7)

  def test_texts_and_large_values_are_not_looked_at(self):
    self.assertIsNone(key_of(['t'], {'a': np.array(['x'], object)}))
    with mock.patch.object(kept_values, '_MOST_OF_ONE', 7):
      self.assertIsNone(key_of(['t'], {'a': np.zeros(2, np.float32)}))


if __name__ == '__main__':
  absltest.main()
