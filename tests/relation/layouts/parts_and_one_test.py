"""Variables that are parts of one of the other side, beside another one of their shape."""

from absl.testing import absltest

from tf2verify.relation.derivation.leftover_pairs import leftover_pairs, of_parts
from tf2verify.relation.layouts.parts_and_one import parts_and_one
from tf2verify.relation.names.roles import told_one_to_one

_GATES = {f'cell/{name}/kernel': (6, 5) for name in ('inp', 'forget', 'reset', 'skip')}


class PartsAndOneTest(absltest.TestCase):
  def test_each_may_be_the_one_that_is_no_part(self):
    (found,) = parts_and_one({'sru/w': (6, 15), 'sru/highway': (6, 5)}, _GATES)
    self.assertLen(found, 4 * 6)
    split, alone = found[0]
    self.assertEqual(split.tf2, ('cell/inp/kernel', 'cell/forget/kernel', 'cell/reset/kernel'))
    self.assertEqual(split.layout, 'a (z1+z2+z3) -> a z1, a z2, a z3')
    self.assertEqual((alone.tf1, alone.tf2), (('sru/highway',), ('cell/skip/kernel',)))
    self.assertLen({entries[0].tf2 for entries in found}, len(found))

  def test_the_port_may_have_the_whole(self):
    (found,) = parts_and_one(_GATES, {'sru/w': (6, 15), 'sru/highway': (6, 5)})
    split, alone = found[0]
    self.assertEqual(split.layout, 'a z1, a z2, a z3 -> a (z1+z2+z3)')
    self.assertEqual((alone.tf1, alone.tf2), (('cell/skip/kernel',), ('sru/highway',)))

  def test_other_counts_and_sizes_are_none(self):
    for ones in ({'w': (6, 15)}, {'w': (6, 10), 'h': (6, 5)}, {'w': (6, 15), 'h': (5, 6)}):
      self.assertEmpty(list(parts_and_one(ones, _GATES)))

  def test_what_is_left_in_a_pair_of_scopes(self):
    ones = {'a/sru/w': (6, 15), 'a/sru/highway': (6, 5)}
    others = {f'b/{name}': shape for name, shape in _GATES.items()}
    found = dict(leftover_pairs({'a/sru/bias': 'b/cell/forget/bias'}, ones, others))
    (alternatives,) = found.values()
    self.assertLen(alternatives, 24)


class HeadsTest(absltest.TestCase):
  def test_heads_by_their_numbers_or_by_their_scopes(self):
    """Two heads with two vectors each: shapes do not tell whether `h0` is one whole."""
    parts = {f'l/h{h}/f{f}/kernel': (1, 4, 1) for h in range(2) for f in (1, 2)}
    (found,) = of_parts(parts, {'g/src': (1, 1, 2, 4), 'g/dst': (1, 1, 2, 4)})
    of_source = [entries[0].tf1 for entries in found]
    self.assertIn(('l/h0/f1/kernel', 'l/h1/f1/kernel'), of_source)
    self.assertIn(('l/h0/f1/kernel', 'l/h0/f2/kernel'), of_source)

  def test_heads_of_several_layers(self):
    parts = {f'l{n}_h{h}/f{f}/kernel': (1, 5, 1) for n in (1, 2) for h in range(3) for f in (1, 2)}
    parts |= {f'l{n}_h{h}/out/biases': (5,) for n in (1, 2) for h in range(3)}
    wholes = {f'g{n}/{end}': (1, 1, 3, 5) for n in (1, 2) for end in ('src', 'dst')}
    found = [entry for alternatives in of_parts(parts, wholes) for entry in alternatives[0]]
    self.assertEqual(
      [(entry.tf2[0], entry.tf1[0]) for entry in found],
      [
        ('g1/src', 'l1_h0/f1/kernel'),
        ('g1/dst', 'l1_h0/f2/kernel'),
        ('g2/src', 'l2_h0/f1/kernel'),
        ('g2/dst', 'l2_h0/f2/kernel'),
      ],
    )


class NamesTest(absltest.TestCase):
  def test_many_of_one_shape_by_their_names(self):
    ones = {f'lstm/{n}/gamma': (6,) for n in ('input', 'transform', 'forget', 'output', 'state')}
    others = {f'cell/ln_{n}/gamma': (6,) for n in ('input', 'forget', 'cell', 'output', 'state')}
    ((_, (entries,)),) = leftover_pairs({}, ones, others)
    pairs = {entry.tf1[0].split('/')[1]: entry.tf2[0].split('/')[1] for entry in entries}
    self.assertEqual(pairs['forget'], 'ln_forget')
    self.assertEqual(pairs['transform'], 'ln_cell')

  def test_names_that_tell_of_several_tell_nothing(self):
    self.assertEqual(told_one_to_one(['a one', 'b two'], ['x two', 'y one']), {0: 1, 1: 0})
    self.assertEqual(told_one_to_one(['a one', 'b two'], ['x one two', 'y']), {})


if __name__ == '__main__':
  absltest.main()
