import numpy as np
from absl.testing import absltest

from tf2verify.records.training import Slot
from tf2verify.relation.slots import pair_slots

GRADIENTS = np.array([2.0, -4.0], np.float32)


def slot(role, variable='w', value=GRADIENTS):
  return Slot(role, variable, f'{variable}/{role}', value)


class PairSlotsTest(absltest.TestCase):
  def test_same_role_and_variable(self):
    paired = pair_slots(
      [slot('first moment', 'w'), slot('first moment', 'b')],
      [slot('first moment', 'port/b'), slot('first moment', 'port/w')],
      {'port/w': 'w', 'port/b': 'b'},
      [],
    )
    self.assertEqual([pair.variable for pair in paired.pairs], ['w', 'b'])
    self.assertEqual(paired.pairs[0].name, 'port/w/first moment')
    self.assertEmpty(paired.tf1_only)
    self.assertEmpty(paired.tf2_only)

  def test_others_are_left_over(self):
    paired = pair_slots([slot('beta1 power', '')], [slot('step count', '')], {}, [])
    self.assertEmpty(paired.pairs)
    self.assertEqual([left.role for left in paired.tf1_only], ['beta1 power'])
    self.assertEqual([left.role for left in paired.tf2_only], ['step count'])

  def test_another_shape_is_no_pair(self):
    paired = pair_slots([slot('linear')], [slot('linear', value=GRADIENTS[:1])], {}, [])
    self.assertEmpty(paired.pairs)

  def test_a_slot_is_paired_once(self):
    paired = pair_slots([slot('linear')], [slot('linear'), slot('linear')], {}, [])
    self.assertLen(paired.pairs, 1)
    self.assertLen(paired.tf2_only, 1)


class MomentumTest(absltest.TestCase):
  def values(self, tf1, tf2, rates):
    paired = pair_slots([slot(tf1)], [slot(tf2)], {}, rates)
    return [pair.tf2.tolist() for pair in paired.pairs]

  def test_velocity_of_keras_in_the_unit_of_tf1(self):
    self.assertEqual(self.values('momentum', 'velocity', [0.5, 0.5]), [[-4.0, 8.0]])

  def test_velocity_on_the_tf1_side(self):
    self.assertEqual(self.values('velocity', 'momentum', [0.5, 0.5]), [[-1.0, 2.0]])

  def test_added_and_subtracted(self):
    self.assertEqual(self.values('scaled momentum', 'velocity', []), [[-2.0, 4.0]])

  def test_no_pair_where_the_learning_rate_changes(self):
    self.assertEqual(self.values('momentum', 'velocity', [0.5, 0.25]), [])
    self.assertEqual(self.values('momentum', 'velocity', [None]), [])
    self.assertEqual(self.values('momentum', 'velocity', [0.0]), [])

  def test_own_momentum_goes_by_value(self):
    for scale in (1.0, -1.0, 0.5, -0.5, 2.0, -2.0):
      other = slot('velocity', value=GRADIENTS * np.float32(scale))
      paired = pair_slots([slot('own momentum')], [other], {}, [0.5])
      self.assertEqual([pair.tf2.tolist() for pair in paired.pairs], [GRADIENTS.tolist()])
    other = slot('velocity', value=GRADIENTS * np.float32(0.75))
    self.assertEmpty(pair_slots([slot('own momentum')], [other], {}, [0.5]).pairs)


class WordsTest(absltest.TestCase):
  def paired(self, tf1, tf2, declared=None):
    return pair_slots([slot(tf1)], [slot(tf2, value=2 * GRADIENTS)], {}, [], declared).pairs

  def test_words_of_one_meaning(self):
    for one, other in (
      ('m', 'first moment'),
      ('first moment', 'exp_avg'),
      ('adam_v', 'v_1'),
      ('accumulator', 'squared gradient'),
      ('some_word', 'some word'),
    ):
      self.assertLen(self.paired(one, other), 1, f'{one}, {other}')

  def test_others_go_by_value(self):
    for one, other in (('m', 'v'), ('a', 'b'), ('momentum', 'first moment')):
      self.assertEmpty(self.paired(one, other), f'{one}, {other}')
    self.assertLen(pair_slots([slot('a')], [slot('b')], {}, []).pairs, 1)
    self.assertLen(pair_slots([slot('a')], [slot('b', variable='')], {}, []).pairs, 1)
    self.assertEmpty(pair_slots([slot('a')], [slot('b', variable='x')], {}, []).pairs)
    self.assertEmpty(pair_slots([slot('first moment')], [slot('second moment')], {}, []).pairs)

  def test_numbers_count_against_a_guess(self):
    """A word of the port's own code may be another optimizer's for something else."""
    for word in ('acc', 'v', 'accumulator', 'own momentum', 'buf'):
      for scale in (1.0, -1.0, 0.5, -2.0):
        other = slot(word, value=GRADIENTS * np.float32(scale))
        paired = pair_slots([slot('momentum')], [other], {}, [0.5])
        self.assertEqual([p.tf2.tolist() for p in paired.pairs], [GRADIENTS.tolist()], word)
      other = slot(word, value=GRADIENTS + np.float32(1.0))
      paired = pair_slots([slot('momentum')], [other], {}, [0.5])
      self.assertEmpty(paired.pairs)
      self.assertLen(paired.undecided({}), 1)
    # Of two optimizers whose rules are known they are told apart, whatever they hold.
    paired = pair_slots([slot('momentum')], [slot('squared gradient')], {}, [0.5])
    self.assertEmpty(paired.pairs)
    self.assertEmpty(paired.undecided({}))
    # Zeros are a start.
    zeros = slot('momentum', value=0 * GRADIENTS), slot('v', value=0 * GRADIENTS)
    second = slot('second moment', value=0 * GRADIENTS)
    paired = pair_slots([zeros[0], second], [zeros[1]], {}, [0.5])
    self.assertEqual([pair.role for pair in paired.pairs], ['second moment'])

  def test_names_that_are_exchanged(self):
    other = GRADIENTS + np.float32(1.0)
    ones = [slot('first moment'), slot('second moment', value=other)]
    paired = pair_slots(ones, [slot('m', value=other), slot('v')], {}, [])
    self.assertEqual([pair.name for pair in paired.pairs], ['w/v', 'w/m'])

  def test_what_is_a_pair_elsewhere_is_one_where_the_numbers_differ(self):
    """Of another variable, or after the step before: a wrong update differs in its slot first."""
    right, wrong = GRADIENTS, GRADIENTS + np.float32(1.0)
    one = [slot('a', 'w', right), slot('a', 'v', right)]
    other = [slot('b', 'w', right), slot('b', 'v', wrong)]
    self.assertLen(pair_slots(one, other, {}, []).pairs, 2)
    before = [slot('a', 'v', right)], [slot('b', 'v', right)]
    found = pair_slots(one[1:], other[1:], {}, [], before=before)
    self.assertEqual([pair.tf2.tolist() for pair in found.pairs], [wrong.tolist()])
    # What starts with zeros says nothing.
    before = [slot('a', 'v', 0 * right)], [slot('b', 'v', 0 * right)]
    found = pair_slots(one[1:], other[1:], {}, [], before=before)
    self.assertEmpty(found.pairs)
    self.assertEqual([(a.role, b.role) for a, b in found.undecided({})], [('a', 'b')])

  def test_own_momentum_keeps_its_unit(self):
    before = [slot('momentum')], [slot('own momentum', value=-GRADIENTS)]
    now = [slot('momentum')], [slot('own momentum', value=-3 * GRADIENTS)]
    found = pair_slots(*now, {}, [0.5, 0.25], before=before)
    self.assertEqual([pair.tf2.tolist() for pair in found.pairs], [(3 * GRADIENTS).tolist()])

  def test_declared(self):
    for declared in ({'a': 'b'}, {'w/a': 'w/b'}, lambda name: 'b' if name == 'w/a' else None):
      self.assertLen(self.paired('a', 'b', declared), 1)
    left = pair_slots([slot('a')], [slot('a')], {}, [], {'a': None})
    self.assertEmpty(left.pairs)
    self.assertEmpty(left.tf1_only)
    self.assertLen(left.tf2_only, 1)


if __name__ == '__main__':
  absltest.main()
