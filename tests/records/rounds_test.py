"""Tests of tf2verify.records.rounds."""

from absl.testing import absltest

from tf2verify.records import rounds


class RoundsTest(absltest.TestCase):
  def test_names_in_a_round_and_without(self):
    name = rounds.prefix('rnn/while', 2) + 'cell/mul'
    self.assertEqual(name, 'rnn/while/round_2/cell/mul')
    self.assertEqual(rounds.numbers_of(name), (2,))
    self.assertEqual(rounds.without(name), 'rnn/while/cell/mul')
    self.assertEqual(rounds.outermost_loop(name), 'rnn/while')
    self.assertEqual(rounds.numbers_of('round_2/mul'), ())
    self.assertIsNone(rounds.outermost_loop('rnn/while'))

  def test_elsewhere_moves_what_is_in_the_same_loops(self):
    inside = 'a/while/round_0/b/while/round_1/mul'
    self.assertEqual(
      rounds.elsewhere('a/while/round_0/b/while/round_1/add:0', inside, (3, 4)),
      'a/while/round_3/b/while/round_4/add:0',
    )
    # An operation of the outer loop alone, one of another loop, and one of none.
    self.assertEqual(rounds.elsewhere('a/while/round_0/sub', inside, (3, 4)), 'a/while/round_3/sub')
    self.assertEqual(
      rounds.elsewhere('a/while/round_0/c/while/round_1/add', inside, (3, 4)),
      'a/while/round_3/c/while/round_1/add',
    )
    for name in ('x/while/round_0/add', 'a/add'):
      self.assertEqual(rounds.elsewhere(name, inside, (3, 4)), name)


if __name__ == '__main__':
  absltest.main()
