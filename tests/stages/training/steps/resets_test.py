"""Tests of tf2verify.stages.training.steps.resets, and of what holds them."""

from unittest import mock

import numpy as np
from absl.testing import absltest

import tf2verify
from tests.stages.training import rounding_models as models
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import TrainingRun, TrainingStep
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.stages.training.steps.both_sides import BothSides
from tf2verify.stages.training.steps.quantities import GRADIENT, QuantityPair
from tf2verify.stages.training.steps.resets import ResetElements, reset_elements, with_held

_WHERE = np.array([True, False, True])


def _step(number, **values):
  records = tuple(TensorRecord(name, np.float32(value)) for name, value in values.items())
  return TrainingStep(number, None, None, None, (), (), records, ())


class _Side:
  """A side that takes given steps, and keeps what it is asked to hold."""

  def __init__(self, *steps):
    self._steps = iter(steps)
    self.held = []

  def schedules(self):
    return []

  def run(self):
    return TrainingRun('side', 'values', (), (), (), ())

  def take(self):
    return next(self._steps)

  def laid_out(self, variable, value):
    return value

  def hold(self, held):
    self.held.append({name: elements.values.tolist() for name, elements in held.items()})


class HeldElementsTest(absltest.TestCase):
  def test_elements_have_the_values_of_tf1(self):
    held = ResetElements(_WHERE, np.float32([1, 2, 3]))
    np.testing.assert_array_equal(held.into(np.float32([7, 8, 9])), np.float32([1, 8, 3]))
    self.assertEqual(held.into(np.float16([7, 8, 9])).dtype, np.float16)
    other = np.float32([[7, 8, 9]])
    self.assertIs(held.into(other), other)

  def test_of_a_step_by_the_names_of_the_port(self):
    elements = {'b': _WHERE, 'c': np.ones(2, bool), 'd': _WHERE}
    step = _step(1, b=[1, 2, 3], c=[1, 2, 3])  # c has another shape, d is not told
    held = reset_elements(elements, step, [('b', 'port/b'), ('c', 'port/c'), ('d', 'port/d')])
    self.assertEqual(list(held), ['port/b'])
    port = TrainingStep(
      1, None, None, None, (), (), (TensorRecord('port/b', np.float32([7, 8, 9])),), ()
    )
    (record,) = with_held(port, held).variables
    np.testing.assert_array_equal(record.value, [1, 8, 3])

  def test_the_next_step_starts_from_them(self):
    tf1 = _Side(_step(1, b=[1, 2, 3]), _step(2, b=[1, 2, 3]))
    port = _Side(_step(1, b=[7, 8, 9]), _step(2, b=[7, 8, 9]))
    both = BothSides(tf1, port, [('b', 'b')], frozenset('b'))
    both.take_next()
    both.hold({})
    self.assertEqual((port.held, both.held), ([], {}))
    both.hold({'b': _WHERE})
    self.assertEqual(port.held, [{'b': [1, 2, 3]}])
    self.assertEqual(list(both.held), [1])
    first, _ = both.take_next().tf2.steps
    np.testing.assert_array_equal(first.variables[0].value, [1, 8, 3])

  def test_a_pair_without_them(self):
    arrays = np.float32([1, 2, 3]), np.float32([7, 8, 9])
    pair = QuantityPair(GRADIENT, 'b', 'b', *arrays)
    np.testing.assert_array_equal(pair.without({'b': _WHERE}).tf2, [1, 8, 3])
    for other in ({}, {'b': np.ones((1, 3), bool)}):
      self.assertIs(pair.without(other), pair)


class PortTest(absltest.TestCase):
  def test_the_port_goes_on_from_the_values_of_tf1(self):
    after = []
    hold = Port.hold

    def watched(port, held):
      hold(port, held)
      values = {record.name: record.value for record in port.values()}
      after.extend((values[name], elements.values) for name, elements in held.items())

    class Case(models.NormalizedBias):
      training_steps_to_take = 3

    with mock.patch.object(Port, 'hold', watched):
      verdict = tf2verify.verify(Case, stages=['training_steps']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertIn('starts from the values of tf1 there', ' '.join(verdict.notes))
    self.assertLen(after, 2)  # after all steps but the last
    for port, tf1 in after:
      np.testing.assert_array_equal(port, tf1)


if __name__ == '__main__':
  absltest.main()
