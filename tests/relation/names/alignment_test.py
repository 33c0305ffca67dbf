"""Tests of tf2verify.relation.names.alignment."""

from absl.testing import absltest, parameterized

from tests.counting import calls_of
from tf2verify.errors import CaseDefinitionError
from tf2verify.relation.names.alignment import align


class AlignTest(parameterized.TestCase):
  def test_same_names_in_another_order(self):
    found = align(['a/w', 'a/b', 'c'], ['c', 'a/b', 'a/w'])
    self.assertEqual(found.pairs, (('a/w', 'a/w'), ('a/b', 'a/b'), ('c', 'c')))
    self.assertEqual((found.only_tf1, found.only_tf2), ((), ()))

  def test_output_index_does_not_matter(self):
    found = align(['a:0', 'b'], ['a', 'b:0'], {'b:0': 'b'})
    self.assertEqual(found.pairs, (('a', 'a'), ('b', 'b')))
    self.assertEqual(align(['a:1'], ['a']).only_tf1, ('a:1',))

  def test_leftovers_are_never_paired_by_position(self):
    found = align(['a', 'x'], ['y', 'a'])
    self.assertEqual((found.pairs, found.only_tf1, found.only_tf2), ((('a', 'a'),), ('x',), ('y',)))

  def test_nothing_on_either_side(self):
    self.assertEqual(align([], []).pairs, ())
    self.assertEqual(align([], ['a']).only_tf2, ('a',))

  def test_duplicates_are_reported_and_not_paired(self):
    found = align(['a', 'b', 'b', 'c', 'c'], ['a', 'a', 'b', 'd', 'd'])
    self.assertEqual((found.duplicates_tf1, found.duplicates_tf2), (('b', 'c'), ('a', 'd')))
    self.assertEqual(found.pairs, ())
    self.assertEqual((found.only_tf1, found.only_tf2), (('c',), ('d',)))

  def test_the_work_grows_with_the_names_and_not_with_their_square(self):
    def aligned(count):
      names = [f'block_{i}/unit_{i % 7}/weights' for i in range(count)]
      self.assertLen(align(names, names[::-1], lambda name: name).pairs, count)

    self.assertLess(calls_of(lambda: aligned(2000)), 5 * calls_of(lambda: aligned(500)))


class MappingTest(parameterized.TestCase):
  def test_names_left_out_keep_their_name(self):
    found = align(['a', 'b'], ['a', 'c'], {'b': 'c'})
    self.assertEqual(found.pairs, (('a', 'a'), ('b', 'c')))

  def test_names_can_be_swapped(self):
    found = align(['a', 'b'], ['a', 'b'], {'a': 'b', 'b': 'a'})
    self.assertEqual(found.pairs, (('a', 'b'), ('b', 'a')))

  def test_a_tf2_name_that_is_not_there_is_a_leftover(self):
    found = align(['a', 'b'], ['a', 'c'], {'b': 'd'})
    self.assertEqual((found.only_tf1, found.only_tf2), (('b',), ('c',)))
    self.assertEqual(found.looked_for, (('b', 'd'),))

  @parameterized.parameters(
    ({'dense/kernal': 'x'}, "no tf1 variable: 'dense/kernal'. Maybe you meant 'dense/kernel'"),
    ({'qqqqqqq': 'x'}, "no tf1 variable: 'qqqqqqq'. The tf1 side has 'dense/bias', 'dense/kernel'"),
    ({'d/k': 'dense/kernel'}, 'wrong way round'),
    ({'dense/kernal': 'dense/kernel'}, "Maybe you meant 'dense/kernel'"),
    ({'dense/bias': 'y', 'dense/kernel': 'y'}, "2 tf1 variables the tf2 name 'y'"),
    ({'dense/bias': 'dense/kernel'}, "'dense/kernel' keeps its name unless"),
    ({'dense/bias': 3}, "maps 'dense/bias' to 3; both must be names"),
    ({0: 'x'}, 'maps 0 to'),
    ({'dense/bias': 'x', 'dense/bias:0': 'x'}, 'twice, with and without'),
    ('dense', 'is a str; it must be a mapping'),
    ([('a', 'b')], 'is a list; it must be a mapping'),
  )
  def test_refuses(self, variable_names, text):
    with self.assertRaisesRegex(CaseDefinitionError, text):
      align(['dense/kernel:0', 'dense/bias:0'], ['dense/kernel:0'], variable_names)

  def test_many_unknown_keys_are_cut(self):
    with self.assertRaisesRegex(CaseDefinitionError, "'k4' and 15 more"):
      align(['a'], ['a'], {f'k{i}': 'x' for i in range(20)})


class CallableTest(absltest.TestCase):
  def test_gets_and_may_return_either_spelling(self):
    seen = []

    def rename(name):
      seen.append(name)
      return name.replace('weights', 'kernel') + ':0'

    found = align(['a/weights:0', 'b'], ['a/kernel', 'b'], rename)
    self.assertEqual(found.pairs, (('a/weights', 'a/kernel'), ('b', 'b')))
    self.assertEqual(seen, ['a/weights', 'b'])

  def test_refuses_no_name(self):
    with self.assertRaisesRegex(CaseDefinitionError, 'returned None.*a branch lacks its return'):
      align(['a'], ['a'], lambda name: None)
    with self.assertRaisesRegex(CaseDefinitionError, 'returned 3; it must return the tf2 name'):
      align(['a'], ['a'], lambda name: 3)

  def test_refuses_two_to_one(self):
    with self.assertRaisesRegex(CaseDefinitionError, "3 tf1 variables the tf2 name 'x'"):
      align(['a', 'b', 'c'], ['a'], lambda name: 'x')

  def test_keeps_the_cause_of_what_it_raises(self):
    with self.assertRaisesRegex(CaseDefinitionError, r"\('a'\) raised KeyError: 'a'") as caught:
      align(['a'], ['a'], {'b': 'c'}.__getitem__)
    self.assertIsInstance(caught.exception.__cause__, KeyError)


if __name__ == '__main__':
  absltest.main()
