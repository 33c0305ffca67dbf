"""Tests of tf2verify.relation.derivation.leftover_pairs, and of the layouts it uses."""

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.relation.derivation.leftover_pairs import leftover_pairs, of_parts
from tf2verify.relation.layouts.derived_layouts import regroupings
from tf2verify.relation.layouts.map_entry import MapEntry


def parts(tf1, tf2):
  """Returns the first alternative of each whole and its parts."""
  return [str(alternatives[0][0]) for alternatives in of_parts(tf1, tf2)]


def found(pairs, tf1, tf2):
  """Returns the first alternative of each, and how many there are."""
  return [
    ({e.tf1[0]: e.tf2[0] for e in alternatives[0]}, len(alternatives))
    for _, alternatives in leftover_pairs(pairs, tf1, tf2)
  ]


class TablesTest(absltest.TestCase):
  def test_a_table_is_nothing_else_of_as_many_elements(self):
    tf1, tf2 = {'end/projection': (16, 1)}, {'hour/values': (4, 4)}
    self.assertLen(list(leftover_pairs({}, tf1, tf2)), 1)
    for tables in (((), tuple(tf2)), (tuple(tf1), ())):
      self.assertEmpty(list(leftover_pairs({}, tf1, tf2, tables)))

  def test_a_table_may_be_a_kernel_of_its_shape(self):
    """TF1 may multiply by one-hot vectors."""
    shapes = {'a/values': (5, 4)}
    self.assertLen(list(leftover_pairs({}, shapes, shapes, ((), tuple(shapes)))), 1)


class PartsTest(absltest.TestCase):
  def test_parts_of_one_variable_on_either_side(self):
    self.assertEqual(
      parts({'keys': (7, 10), 'values': (7, 10)}, {'both': (7, 20)}), ['keys, values -> both']
    )
    self.assertEqual(
      parts({'vectors': (2, 6)}, {'source': (6,), 'target/kernel': (6, 1)}),
      ['vectors -> source, target/kernel'],
    )

  def test_parts_of_several_variables_by_their_scopes(self):
    self.assertEqual(
      parts(
        {'m/v': (2, 6), 'n/v': (2, 6)},
        {'one/a/k': (6, 1), 'two/a/k': (6, 1), 'one/b/k': (6, 1), 'two/b/k': (6, 1)},
      ),
      ['m/v -> one/a/k, one/b/k', 'n/v -> two/a/k, two/b/k'],
    )

  def test_parts_of_several_variables_in_order(self):
    others = {'a/s': (6,), 'p/a/t/k': (6, 1), 'b/s': (6,), 'p/b/t/k': (6, 1)}
    (alternatives,) = of_parts({'m/v': (2, 6), 'n/v': (2, 6)}, others)
    self.assertEqual(
      [str(entry) for entry in alternatives[0]], ['m/v -> a/s, p/a/t/k', 'n/v -> b/s, p/b/t/k']
    )

  def test_parts_of_several_variables_by_their_stems(self):
    own = {'p/w0': (6,), 'p/b0': (6,), 'p/w1': (6,), 'p/b1': (6,)}
    self.assertEqual(parts({'w': (2, 6), 'b': (2, 6)}, own), ['w -> p/w0, p/w1', 'b -> p/b0, p/b1'])
    # Names that say nothing leave both, for numbers to decide.
    (alternatives,) = of_parts({'m': (2, 6), 'n': (2, 6)}, own)
    self.assertEqual(
      [str(entries[0]) for entries in alternatives], ['m -> p/w0, p/w1', 'm -> p/b0, p/b1']
    )

  def test_parts_without_the_heads_of_the_whole(self):
    tf1 = dict.fromkeys(('q', 'k', 'v'), (4, 10))
    for shape, layout in (
      ((3, 4, 2, 5), '(z1 a) (b c), (z2 a) (b c), (z3 a) (b c) -> (z1+z2+z3) a b c'),
      ((4, 3, 2, 5), 'a (z1 b c), a (z2 b c), a (z3 b c) -> a (z1+z2+z3) b c'),
    ):
      (alternatives,) = of_parts(tf1, {'qkv': shape})
      (entry,) = alternatives[0]
      self.assertEqual(entry.layout, layout)
      values = [np.random.RandomState(n).randn(4, 10) for n in range(3)]
      (whole,) = entry.bound([(4, 10)] * 3, [shape]).to_tf2(values)
      axis = shape.index(3)
      stacked = np.stack([value.reshape(4, 2, 5) for value in values], axis)
      np.testing.assert_array_equal(whole, stacked)

  def test_as_many_parts_as_an_axis_has_elements(self):
    tf1 = {f't{n}': (9, 4) for n in range(4)}
    (alternatives,) = of_parts(tf1, {'tables': (4, 9, 4)})
    (entry,) = alternatives[0]
    self.assertEqual(entry.layout, '(z1 a) b, (z2 a) b, (z3 a) b, (z4 a) b -> (z1+z2+z3+z4) a b')

  def test_what_one_variable_is_made_of_is_no_part_of_another_one(self):
    tf1 = {'squeeze/kernel': (8, 2), 'excite/kernel': (2, 8)}
    tf2 = {'p/squeeze/kernel': (8, 1), 'p/excite/kernel': (1, 8)}
    taken = [
      name
      for _, alternatives in leftover_pairs({}, tf1, tf2)
      for entry in alternatives[0]
      for name in entry.tf2
    ]
    self.assertLen(set(taken), len(taken))

  def test_what_does_not_make_the_whole_is_no_part(self):
    for others in ({'a': (6,)}, {'a': (6,), 'b': (6,), 'c': (6,)}, {'a': (5,), 'b': (7,)}):
      self.assertEqual(parts({'v': (2, 6)}, others), [])
    self.assertEqual(parts({'l/gamma': (8,)}, {'l/a/beta': (4,), 'l/b/beta': (4,)}), [])


class LeftoverPairsTest(parameterized.TestCase):
  def test_the_scope_of_what_is_known_tells_where(self):
    pairs = {'m/one/W': 'n/first/conv/kernel', 'm/two/W': 'n/second/conv/kernel'}
    tf1 = {'m/one/norm/b': (1, 5), 'm/two/norm/b': (1, 5)}
    tf2 = {'n/second/norm/shift': (5,), 'n/first/norm/shift': (5,)}
    self.assertEqual(
      found(pairs, tf1, tf2),
      [
        ({'m/one/norm/b': 'n/first/norm/shift'}, 1),
        ({'m/two/norm/b': 'n/second/norm/shift'}, 1),
      ],
    )

  def test_names_tell_which_of_several_and_numbers_may_decide_otherwise(self):
    tf1 = {'m/norm/b': (1, 5), 'm/norm/logs': (1, 5)}
    tf2 = {'n/norm/log_scale': (5,), 'n/norm/shift': (5,)}
    self.assertEqual(
      found({'m/W': 'n/kernel'}, tf1, tf2),
      [({'m/norm/b': 'n/norm/shift', 'm/norm/logs': 'n/norm/log_scale'}, 2)],
    )

  def test_names_with_numbers_on_both_sides_are_no_choice_of_numbers(self):
    tf1 = {f'm/cross_{n}/{name}': (5,) for n in range(2) for name in 'uv'}
    tf2 = {f'cross_{n}_{name}': (5,) for name in 'uv' for n in (1, 0)}
    (pairs, count), *more = found({}, tf1, tf2)
    self.assertEqual(pairs, {one: one[2:].replace('/', '_') for one in tf1})
    self.assertEqual((count, more), (1, []))

  def test_numbers_by_which_a_library_counts_are_likely_and_no_more(self):
    tf1 = {'m/dense/v': (5,), 'm/dense_1/v': (5,)}
    tf2 = {'n/dense/v': (5,), 'n/dense_1/v': (5,)}
    ((pairs, count),) = found({}, tf1, tf2)
    self.assertEqual((pairs['m/dense/v'], count), ('n/dense/v', 2))

  def test_what_each_is_to_its_layer_comes_before_the_order(self):
    tf1 = {'m/one/w': (5,), 'm/one/b': (5,), 'm/two/w': (5,), 'm/two/b': (5,)}
    tf2 = {'p1_b': (5,), 'p2_b': (5,), 'p1_w': (5,), 'p2_w': (5,)}
    self.assertEqual(
      found({}, tf1, tf2),
      [
        ({'m/one/w': 'p1_w', 'm/two/w': 'p2_w'}, 2),
        ({'m/one/b': 'p1_b', 'm/two/b': 'p2_b'}, 2),
      ],
    )

  def test_names_that_say_nothing_leave_the_order(self):
    tf1 = {'m/p': (5,), 'm/q': (5,)}
    tf2 = {'n/x': (5,), 'n/z': (5,)}
    self.assertEqual(found({}, tf1, tf2), [({'m/p': 'n/x', 'm/q': 'n/z'}, 2)])

  def test_a_scale_is_no_shift_whatever_the_numbers_say(self):
    tf1 = {'m/gamma': (5,), 'm/beta': (5,)}
    tf2 = {'n/beta': (5,), 'n/gamma': (5,)}
    self.assertEqual(found({}, tf1, tf2), [({'m/gamma': 'n/gamma'}, 1), ({'m/beta': 'n/beta'}, 1)])

  def test_names_that_share_a_word_are_no_choice_of_numbers(self):
    tf1 = {'m/v': (5,), 'm/attention': (5,)}
    tf2 = {'n/attention': (5,), 'n/v': (5,)}
    self.assertEqual(
      found({}, tf1, tf2), [({'m/v': 'n/v'}, 1), ({'m/attention': 'n/attention'}, 1)]
    )

  def test_numbers_of_blocks_follow_the_name_that_all_of_them_have(self):
    tf1 = {f'flow/{name}{n}': (5,) for n in range(2) for name in 'wu'}
    tf2 = {f'flows/{n}/{name}': (5,) for n in range(2) for name in 'uw'}
    pairs = {one: other for known, _ in found({}, tf1, tf2) for one, other in known.items()}
    self.assertEqual(
      pairs, {f'flow/{name}{n}': f'flows/{n}/{name}' for n in range(2) for name in 'wu'}
    )

  def test_what_only_one_side_has_more_of_stays_without_a_partner(self):
    self.assertEqual(found({}, {'m/p': (5,), 'm/q': (5,)}, {'n/x': (5,)}), [])
    self.assertEqual(found({}, {'m/gamma': (5,)}, {'n/beta': (5,)}), [])
    self.assertEqual(found({}, {'m/p': (5,)}, {'n/x': (6,)}), [])

  def test_a_scope_that_lies_in_two_of_the_port_is_none(self):
    pairs = {'m/a/W': 'n/one/kernel', 'm/b/W': 'n/one/other', 'm/a/V': 'n/two/kernel'}
    tf1 = {'m/a/p': (5,), 'm/b/p': (5,)}
    tf2 = {'n/two/x': (5,), 'n/one/x': (5,)}
    names = [pair for pair, _ in found(pairs, tf1, tf2)]
    self.assertEqual(names, [{'m/a/p': 'n/two/x', 'm/b/p': 'n/one/x'}])

  def test_one_of_another_layout(self):
    (alternatives,) = [
      a for _, a in leftover_pairs({}, {'m/w': (1, 64, 40, 6, 1)}, {'n/k': (5, 64, 8, 6)})
    ]
    layouts = [entry.layout for (entry,) in alternatives]
    self.assertEqual(layouts, ['1 a (c d) b 1 -> c a d b', '1 a (d c) b 1 -> c a d b'])

  @parameterized.parameters(
    ((40, 6), (6, 8, 5)), ((6, 8, 5), (40, 6)), ((1, 30, 7), (5, 7, 6)), ((7, 24), (2, 3, 7, 4))
  )
  def test_regroupings_hold_the_same_elements(self, one, other):
    values = np.arange(np.prod(one)).reshape(one)
    moved = set()
    for layout in regroupings(one, other):
      entry = MapEntry(('a',), ('b',), layout).bound([one], [other])
      (there,) = entry.to_tf2([values])
      self.assertEqual(there.shape, other)
      np.testing.assert_array_equal(entry.to_tf1([there])[0], values)
      moved.add(there.tobytes())
    self.assertGreater(len(moved), 1)

  @parameterized.parameters(
    ((40, 40), (5, 8, 40)),
    ((40, 6), (5, 8, 7)),
    ((40,), (40,)),
    ((4, 10), (5, 8)),
  )
  def test_no_regrouping(self, one, other):
    self.assertEqual(regroupings(one, other), [])


if __name__ == '__main__':
  absltest.main()
