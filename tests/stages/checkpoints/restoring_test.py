import dataclasses

import numpy as np
from absl.testing import absltest

from tests import small_case
from tf2verify.case import new_ladder
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.tensor_key import TensorKey
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.stages.checkpoints.restoring import called_port, compare_restored, with_sentinels
from tf2verify.stages.comparison.comparing import Comparison

ONES = np.ones(3, np.float32)


def with_cause(difference):
  return dataclasses.replace(difference, hint='why')


class ComparisonTest(absltest.TestCase):
  def test_equal(self):
    comparison = Comparison()
    compare_restored(comparison, TensorKey('value', 'w'), ONES, ONES.copy(), with_cause)
    comparison.agreed(ONES)
    self.assertEqual(comparison.differences, ())
    self.assertEqual((comparison.compared.tensors, comparison.compared.elements), (2, 6))

  def test_the_last_bit_counts(self):
    comparison = Comparison()
    compare_restored(comparison, TensorKey('value', 'w'), ONES, np.nextafter(ONES, 2), with_cause)
    [difference] = comparison.differences
    self.assertEqual((difference.aspect, difference.hint), (Aspect.VALUES, 'why'))

  def test_lost(self):
    comparison = Comparison()
    comparison.lost(Difference('key', 'w', Aspect.PRESENCE))
    self.assertEqual(comparison.compared.unpaired, 1)


class PortTest(absltest.TestCase):
  def test_no_variable_keeps_a_value_that_it_could_be_restored_to(self):
    ladder = new_ladder(small_case.SmallCase, lambda step: None)
    self.addCleanup(ladder.close)
    port = called_port(ladder.prepared())
    values = tf2_checkpoint.values_of(port)
    self.assertEqual(sorted(values), ['dense/bias', 'dense/kernel'])
    before = with_sentinels(port, values)
    self.assertEqual(set(before), set(values))
    self.assertLen(before, len(values))
    now = tf2_checkpoint.values_of(port)
    for name, value in values.items():
      np.testing.assert_array_equal(now[name], before[name])
      self.assertTrue(np.all(now[name] != value))


if __name__ == '__main__':
  absltest.main()
