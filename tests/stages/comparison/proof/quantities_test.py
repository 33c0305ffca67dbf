"""Quantities that operations hold against a number, and what tells two of them apart."""

import numpy as np
from absl.testing import absltest

from tf2verify.records.op_graph import CONSTANT, INPUT, VARIABLE, OpGraph, OpRecord
from tf2verify.stages.comparison.proof.quantities import (
  EQUAL,
  OF_COUNTS,
  ORDERED,
  quantities,
  roots,
)


class _Run:
  """Yields one value for all that is asked for."""

  def __init__(self, value):
    self._value = np.asarray(value)

  def refetched(self, tensors, given):
    return [self._value for _ in tensors]


def _quantity(value, kind, number, turned=False, read='x'):
  """Returns what an operation holds against a number."""
  value = np.asarray(value)
  output = (value.dtype.name, value.shape)
  leaf = VARIABLE if read.startswith('v') else INPUT
  x = OpRecord(read, leaf, (), outputs=(output,), tensors=('x:0',))
  bound = OpRecord(
    'c', CONSTANT, (), outputs=((value.dtype.name, ()),), constant=np.asarray(number, value.dtype)
  )
  inputs = ((1, 0), (0, 0)) if turned else ((0, 0), (1, 0))
  op = OpRecord('op', kind, inputs, outputs=(output,), tensors=('op:0',))
  (found,) = quantities(OpGraph('tf1', (x, bound, op)), _Run(value), [2])
  return found


_NORM = np.float32(0.53)


class QuantitiesTest(absltest.TestCase):
  def test_texts_and_kinds(self):
    found = _quantity(_NORM, 'Greater', 0.0, turned=True)
    self.assertEqual((found.kind, found.text), (ORDERED, '< 0'))
    self.assertEqual(_quantity(_NORM, 'NotEqual', 1.0).kind, EQUAL)
    self.assertEqual(_quantity(_NORM, 'Minimum', 4.0).text, 'Minimum with 4')

  def test_the_same_elements_in_another_order_and_shape(self):
    one = _quantity(np.array([1.0, 2.0, 3.5]), 'Maximum', 0.0)
    for value, expected in (([[3.5], [2.0], [1.0]], True), ([1.0, 2.0, 3.6], False)):
      self.assertIs(one.is_same(_quantity(np.array(value), 'Maximum', 1.0)), expected)

  def test_values_that_say_little_need_the_same_origin(self):
    for value in (np.int64(3), np.float32(1.0), np.zeros(4)):
      one = _quantity(value, 'Less', 5)
      self.assertTrue(one.is_same(_quantity(value, 'Less', 7)))
      self.assertFalse(one.is_same(_quantity(value, 'Less', 7, read='y')))
    self.assertTrue(_quantity(_NORM, 'Less', 5).is_same(_quantity(_NORM, 'Less', 7, read='y')))

  def test_counts_have_one_name_and_a_single_input_is_none(self):
    def read_by_one(kind, name, dtype):
      leaf = OpRecord(name, kind, (), outputs=((dtype, ()),), tensors=('x:0',))
      op = OpRecord('op', 'Neg', ((0, 0),), outputs=((dtype, ()),), tensors=('op:0',))
      return roots(OpGraph('tf1', (leaf, op)), [1])

    self.assertEqual(read_by_one(VARIABLE, 'updates', 'int64'), OF_COUNTS)
    self.assertEqual(read_by_one(VARIABLE, 'scale', 'float32'), {'scale'})
    self.assertEqual(read_by_one(INPUT, '', 'int32'), {''})
    self.assertNotEqual(OF_COUNTS, {''})

  def test_whole_numbers_that_are_compared_otherwise(self):
    count = np.int64(3)
    above = _quantity(count, 'Greater', 4)
    self.assertTrue(above.has_number_of(_quantity(count, 'GreaterEqual', 5)))
    self.assertTrue(above.has_number_of(_quantity(count, 'LessEqual', 4)))
    self.assertFalse(above.has_number_of(_quantity(count, 'GreaterEqual', 4)))
    self.assertFalse(_quantity(_NORM, 'Greater', 4).has_number_of(_quantity(_NORM, 'Less', 5)))

  def test_a_bound_and_a_comparison(self):
    bound, same = _quantity(_NORM, 'Maximum', 50.0), _quantity(_NORM, 'Greater', 50.0)
    self.assertTrue(bound.has_number_of(same))
    self.assertTrue(bound.may_stand_for(_quantity(_NORM, 'Greater', 60.0)))
    self.assertFalse(bound.may_stand_for(_quantity(_NORM, 'Greater', 0.0)))
    self.assertFalse(bound.may_stand_for(_quantity(_NORM, 'Minimum', 60.0)))

  def test_numbers_that_the_same_values_reach(self):
    norm = _quantity(_NORM, 'Greater', 5.0)
    self.assertTrue(norm.is_reached_with(_quantity(5.0 / _NORM, 'Minimum', 1.0)))
    self.assertTrue(norm.is_reached_with(_quantity(_NORM / 5.0, 'Maximum', 1.0)))
    self.assertFalse(norm.is_reached_with(_quantity(6.0 / _NORM, 'Minimum', 1.0)))
    self.assertFalse(norm.is_reached_with(_quantity(_NORM, 'Greater', 0.0)))


if __name__ == '__main__':
  absltest.main()
