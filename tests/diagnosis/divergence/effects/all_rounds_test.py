"""Tests of tf2verify.diagnosis.divergence.effects.all_rounds."""

import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.effects.all_rounds import AllRounds
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import NodeChange
from tf2verify.relation.operations.op_pairs import Pairing
from tf2verify.sides.graphs.edits.repairs import GivenValue, Transplant
from tf2verify.sides.graphs.edits.wiring import CannotRepair


def _side(side, squares, rounds=3):
  """A loop of three rounds: its state, a weight, and what the port does otherwise."""
  g = HandMade(side)
  state, weight = g.input([[1.0]], ''), g.variable('w', [[2.0]])
  for number in range(rounds):
    place = f'{side}/while/round_{number}'
    state = g.op('MatMul', f'{place}/MatMul', state, weight)
    if squares:
      state = g.op('Square', f'{place}/Square', state)
    state = g.op('Tanh', f'{place}/Tanh', state)
  g.target('output', state)
  return g.graph()


class AllRoundsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.pairing = Pairing(_side('tf1', squares=True), _side('tf2', squares=False))
    self.rounds = AllRounds(self.pairing)
    self.tf1 = {op.name: n for n, op in enumerate(self.pairing.tf1.ops)}
    self.tf2 = {op.name: n for n, op in enumerate(self.pairing.tf2.ops)}

  def test_changes_and_values_of_all_rounds(self):
    change = NodeChange('tf2/while/round_1/Tanh', attributes=(('alpha', 0.3),))
    found = self.rounds.changes([change])
    self.assertEqual([one.op for one in found], [f'tf2/while/round_{n}/Tanh' for n in range(3)])
    self.assertEqual({one.attributes for one in found}, {change.attributes})
    outside = NodeChange('output')
    self.assertEqual([one.op for one in self.rounds.changes([outside])], ['output'])
    value = GivenValue('tf1/while/round_0/Tanh:0', 'tf2/while/round_0/Tanh:0')
    given = self.rounds.values(value, 'tf1/while/round_0/Tanh', 'tf2/while/round_0/Tanh')
    self.assertEqual(
      [(one.tf1, one.tf2) for one in given],
      [(f'tf1/while/round_{n}/Tanh:0', f'tf2/while/round_{n}/Tanh:0') for n in range(3)],
    )

  def test_value_of_a_side_without_rounds_is_given_as_it_is(self):
    value = GivenValue('tf1/while/round_0/Tanh:0', 'output:0')
    self.assertEqual(self.rounds.values(value, 'tf1/while/round_0/Tanh', 'output'), (value,))

  def moved(self, number):
    """Returns the operations of a round that are put into the port, and what they are given."""
    at = f'while/round_{number}'
    inner, end = [self.tf1[f'tf1/{at}/Square']], self.tf1[f'tf1/{at}/Tanh']
    given = {(self.tf1[f'tf1/{at}/MatMul'], 0): (self.tf2[f'tf2/{at}/MatMul'], 0)}
    return ((inner, end), self.tf2[f'tf2/{at}/Tanh']), given

  def test_operations_of_all_rounds(self):
    for first in (0, 2):
      made = []

      def make(moved, given, layouts, made=made):
        made.append((moved, given, layouts))
        return Transplant((), len(made))

      found = self.rounds.transplants(*self.moved(first), {}, make)
      self.assertLen(found, 3)
      expected = [self.moved(n) for n in (first, *(n for n in range(3) if n != first))]
      self.assertEqual([(moved, given) for moved, given, _ in made], expected)

  def test_round_that_cannot_be_edited_is_left_out(self):
    def make(moved, given, layouts):
      del given, layouts
      if moved[1] == self.tf2['tf2/while/round_1/Tanh']:
        raise CannotRepair('planted')
      return Transplant((), None)

    self.assertLen(self.rounds.transplants(*self.moved(0), {}, make), 2)
    with self.assertRaises(CannotRepair):
      self.rounds.transplants(*self.moved(1), {}, make)

  def test_one_round_alone(self):
    alone = AllRounds(self.pairing, in_one_round=True)
    self.assertLen(alone.changes([NodeChange('tf2/while/round_1/Tanh')]), 1)
    made = alone.transplants(*self.moved(1), {}, lambda *_: Transplant((), None))
    self.assertLen(made, 1)


class OfOneLineTest(absltest.TestCase):
  """What a line of the port makes again and again, as in a loop of Python."""

  def setUp(self):
    super().setUp()
    g = HandMade('tf2')
    state = g.input([[1.0]], '')
    for number, factor in enumerate((0.9, 0.9, 0.5, 0.9)):
      constant = g.constant(np.float32(factor), f'c{number}')
      state = g.op('Mul', f'mul_{number}', state, constant)
      line = SourceLine('port.py', 7 if number < 3 else 8, 'f', 'x = x * GAMMA')
      g.ops[-1] = dataclasses.replace(g.ops[-1], source=line)
    g.target('output', state)
    self.pairing = Pairing(g.graph(), g.graph())

  def test_the_same_number(self):
    change = NodeChange('mul_0', inputs=((1, np.float32(0.99)),))
    found = AllRounds(self.pairing).changes([change])
    self.assertEqual([one.op for one in found], ['mul_0', 'mul_1'])
    again = AllRounds(self.pairing).changes([change, dataclasses.replace(change, op='mul_1')])
    self.assertEqual([one.op for one in again], ['mul_0', 'mul_1'])
    alone = AllRounds(self.pairing, in_one_round=True).changes([change])
    self.assertEqual([one.op for one in alone], ['mul_0'])

  def test_what_is_computed_is_that_of_one(self):
    change = NodeChange('mul_0', inputs=((0, np.float32(0.99)),))
    self.assertLen(AllRounds(self.pairing).changes([change]), 1)


def _cell(side, reads_limited, rounds=3):
  """A loop whose state is limited; what it yields reads it before that, or after."""
  g = HandMade(side)
  state, weight = g.input([[1.0]], ''), g.variable('w', [[2.0]])
  for number in range(rounds):
    place = f'{side}/while/round_{number}'
    plain = g.op('MatMul', f'{place}/MatMul', state, weight)
    if reads_limited or number + 1 < rounds:
      state = g.op('Minimum', f'{place}/Minimum', plain, g.constant(3.0, f'{place}/limit'))
    end = g.op('Tanh', f'{place}/Tanh', state if reads_limited else plain)
  g.target('output', end)
  return g.graph()


class LastRoundTest(absltest.TestCase):
  def test_what_the_port_does_not_have_there_is_left_to_the_wiring(self):
    pairing = Pairing(_cell('tf1', True), _cell('tf2', False))
    tf1, tf2 = ({op.name: n for n, op in enumerate(g.ops)} for g in (pairing.tf1, pairing.tf2))
    last = 'while/round_2'
    self.assertNotIn(f'tf2/{last}/Minimum', tf2)
    self.assertIsNone(pairing.tf2_of[tf1[f'tf1/{last}/Minimum']])
    moved = ([], tf1['tf1/while/round_0/Tanh']), tf2['tf2/while/round_0/Tanh']
    given = {(tf1['tf1/while/round_0/Minimum'], 0): (tf2['tf2/while/round_0/Minimum'], 0)}
    made = []

    def make(*one):
      made.append(one)
      return Transplant((), None)

    self.assertLen(AllRounds(pairing).transplants(moved, given, {}, make), 3)
    (where, end), partner = made[-1][0]
    self.assertEqual(where, [])
    self.assertEqual((end, partner), (tf1[f'tf1/{last}/Tanh'], tf2[f'tf2/{last}/Tanh']))
    self.assertEqual(made[-1][1], {}, 'tf1 makes it of what the port has')


if __name__ == '__main__':
  absltest.main()
