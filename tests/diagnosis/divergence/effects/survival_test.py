"""Tests of tf2verify.diagnosis.divergence.effects.survival."""

import math

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.effects import survival

_X = np.array([[-1.0, 2.0]], np.float32)


def _run(scale, act='Relu', last='Relu'):
  graph = HandMade('tf2')
  net = graph.op('Mul', 'scale', graph.input(_X), graph.constant(np.float32(scale)))
  graph.target('output', graph.chain(net, f'{act} act', f'{last} last'))
  return graph


class TraceTest(absltest.TestCase):
  def test_an_operation_that_yields_the_same(self):
    found = survival.trace(_run(1.0).run(), _run(1.0).run(), ['scale'], False)
    self.assertEqual(found, survival.FaultTrace(False))
    self.assertIn('yields the same numbers', survival.explained([found]))

  def test_a_difference_that_a_later_operation_takes_in(self):
    found = survival.trace(_run(1.0, 'Square').run(), _run(-1.0, 'Square').run(), ['scale'], False)
    self.assertEqual(found, survival.FaultTrace(True, (('act', 'Square'),)))
    self.assertEqual(
      survival.explained([survival.FaultTrace(False), found]),
      'its numbers change, but the difference is lost in act (Square)',
    )

  def test_a_difference_that_nothing_takes_in(self):
    found = survival.trace(_run(1.0).run(), _run(2.0).run(), ['scale'], False)
    self.assertEqual(found, survival.FaultTrace(True))
    self.assertIn('no number that is compared depends', survival.explained([found]))

  def test_a_fault_in_a_loop_is_not_followed(self):
    found = survival.trace(_run(1.0).run(), _run(2.0).run(), ['scale'], True)
    self.assertEqual(found, survival.FaultTrace(True))


class ChangeTest(absltest.TestCase):
  def test_identical(self):
    nan = np.array([math.nan, 1.0])
    self.assertTrue(survival.is_identical(nan, nan.copy()))
    self.assertFalse(survival.is_identical(nan, nan[:1]))
    self.assertFalse(survival.is_identical(_X, _X.astype(np.float64)))

  def test_greatest_change(self):
    self.assertEqual(survival.greatest_change(_X, _X + np.array([[0, 3]], np.float32)), 3.0)
    self.assertEqual(survival.greatest_change(None, _X), math.inf)
    self.assertEqual(survival.greatest_change(_X, _X[0]), math.inf)

  def test_the_greatest_is_named(self):
    text = survival.within_tolerance({'output a [inference]': 1e-7, 'output b [training]': 2e-6})
    self.assertStartsWith(text, 'largest change 2e-06, of output b [training]:')


if __name__ == '__main__':
  absltest.main()
