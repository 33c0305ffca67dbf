"""Tests of tf2verify.diagnosis.patterns.operations.region_numbers."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.tensors.regions import region_pair
from tf2verify.diagnosis.patterns.graph_difference import GraphComparison
from tf2verify.diagnosis.patterns.operations.region_numbers import (
  number_that_differs,
  takes_elements,
)
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.relation.operations.op_pairs import Pairing


def _tf1(*numbers):
  """`(number * goes_on) * bootstrap`."""
  g = HandMade('tf1')
  goes_on, bootstrap = g.input([1.0], 'goes_on'), g.input([2.0], 'bootstrap')
  for n, number in enumerate(numbers):
    goes_on = g.op('Mul', f'discount_{n}', g.constant(np.float32(number)), goes_on)
  g.target('output', g.op('Mul', 'mul', goes_on, bootstrap))
  return g.graph()


def _tf2(*numbers, op_type='Mul', also=()):
  """`number * (bootstrap[:, 0] * goes_on)`."""
  g = HandMade('tf2')
  goes_on, bootstrap = g.input([1.0], 'goes_on'), g.input([2.0], 'bootstrap')
  net = g.op('Mul', 'prod', g.chain(bootstrap, 'Reshape', 'StridedSlice', *also), goes_on)
  for n, number in enumerate(numbers):
    net = g.op(op_type, f'mul_{n}', net, g.constant(np.float32(number)))
  g.target('output', net)
  return g.graph()


def _regions(tf1, tf2):
  pairing = Pairing(tf1, tf2)
  ends = [
    next(graph.ops[op.inputs[0][0]].name for op in graph.ops if op.op_type == 'target')
    for graph in (tf1, tf2)
  ]
  one, two = (
    next(n for n, op in enumerate(graph.ops) if op.name == name)
    for graph, name in zip((tf1, tf2), ends, strict=True)
  )
  partners = pairing.tf2_of
  pairing.part(*(n for n, other in enumerate(partners) if not tf1.ops[n].is_leaf))
  pairing.add(one, two)
  return pairing, region_pair(pairing, one, two)


class NumberThatDiffersTest(absltest.TestCase):
  def found(self, tf1, tf2):
    _, pair = _regions(tf1, tf2)
    return number_that_differs(tf1, tf2, pair)

  def test_factor_beside_another_operand(self):
    difference, change = self.found(_tf1(0.729), _tf2(0.9))
    self.assertEqual(difference.aspect, GraphAspect.CONSTANT)
    self.assertEqual(
      (difference.op, difference.tf1, difference.tf2), ('discount_0', '0.729', '0.9')
    )
    self.assertEqual(change.op, 'mul_0')
    ((slot, value),) = change.inputs
    self.assertEqual((slot, value), (1, np.float32(0.729)))
    self.assertEqual(value.dtype, np.float32)

  def test_numbers_of_both_sides_are_no_difference(self):
    difference, _ = self.found(_tf1(0.5, 0.729), _tf2(0.9, 0.5))
    self.assertEqual((difference.tf1, difference.tf2), ('0.729', '0.9'))

  def test_none(self):
    for tf1, tf2 in (
      (_tf1(0.9), _tf2(0.9)),
      (_tf1(0.729), _tf2()),
      (_tf1(0.729, 0.5), _tf2(0.9, 0.4)),
      (_tf1(0.5), _tf2(2.0, op_type='RealDiv')),
    ):
      self.assertIsNone(self.found(tf1, tf2))

  def test_whole_number_of_a_comparison(self):
    def side(name, limit, spelt):
      g = HandMade(name)
      steps = g.input(np.arange(5, dtype=np.int32), 'steps')
      held = g.op('Cast', 'cast', steps, dtype='float32') if spelt else steps
      limit = g.constant(np.float32(limit) if spelt else np.int32(limit))
      late = g.op('GreaterEqual', 'late', held, limit, dtype='bool')
      late = late if spelt else g.op('LogicalNot', 'not', late, dtype='bool')
      g.target('output', g.op('Cast', 'mask', late))
      return g.graph()

    difference, change = self.found(side('tf1', 8, True), side('tf2', 9, False))
    self.assertEqual((difference.what, difference.tf1, difference.tf2), ('y', '8', '9'))
    self.assertEqual(change.inputs[0][1].dtype, np.int32)
    self.assertIsNone(self.found(side('tf1', 8, True), side('tf2', 8, False)))

  def test_it_is_said_in_place_of_operations_that_take_elements(self):
    pairing, pair = _regions(_tf1(0.729), _tf2(0.9))
    (known,) = GraphComparison(pairing).at(pair)
    self.assertEqual((known.tf1, known.tf2), ('0.729', '0.9'))
    pairing, pair = _regions(_tf1(0.729), _tf2(0.9, also=('Exp',)))
    aspects = {known.aspect for known in GraphComparison(pairing).at(pair)}
    self.assertEqual(aspects, {GraphAspect.CONSTANT, GraphAspect.EXTRA})


class TakesElementsTest(absltest.TestCase):
  def test_types(self):
    def difference(*types):
      return GraphDifference(GraphAspect.EXTRA, 'a', 'a', '', '', '', (), types)

    self.assertTrue(takes_elements([difference('Reshape', 'StridedSlice')]))
    self.assertFalse(takes_elements([difference('Reshape'), difference('Exp')]))


if __name__ == '__main__':
  absltest.main()
