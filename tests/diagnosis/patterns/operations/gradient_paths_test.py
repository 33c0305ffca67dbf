"""Tests of tf2verify.diagnosis.patterns.operations.gradient_paths."""

import functools

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.patterns.operations.gradient_paths import gradient_differences
from tf2verify.relation.operations.op_pairs import Pairing

_X = np.ones((4, 3), np.float32)
_STOPPED = {1: ('StopGradient',)}


def _moments(g, stopped=False, axes=(0,), of_itself=True):
  x = g.input(_X)
  mean = g.op('Mean', 'mean', x if of_itself else g.op('Exp', 'exp', x), g.constant((0,)))
  through = _STOPPED if stopped else None
  squares = g.op('SquaredDifference', 'squares', x, mean, through=through)
  variance = g.op('Mean', 'variance', squares, g.constant(axes))
  g.target('output', variance)


def _number(g, stopped=False, op_type='Mul', dtype='float32'):
  x = g.input(_X)
  taken = g.op(op_type, 'taken', x, x, dtype=dtype)
  passed = g.op('Cast', 'passed', taken)
  g.target('output', g.op('AddV2', 'sum', x, passed, through=_STOPPED if stopped else None))


def _error(g, turned=False, stopped=0):
  read = [g.input(_X), g.op('Exp', 'label', g.input(_X, 'labelled'))]
  places = {1 - stopped if turned else stopped: ('StopGradient',)}
  error = g.op('Sub', 'error', *(read[::-1] if turned else read), through=places)
  g.target('output', g.op('Square', 'square', error))


def _log_sum_exp(g, stopped=(), again=True):
  x = g.input(_X)
  shift = g.op('Max', 'max', x, g.constant((1,)))
  less = g.op('Sub', 'less', x, shift, through=_STOPPED if 'less' in stopped else None)
  total = g.op('Sum', 'total', g.op('Exp', 'exp', less), g.constant((1,)))
  flat = g.op('Reshape', 'flat', shift if again else g.op('Sqrt', 'sqrt', shift), g.constant((4,)))
  log = g.op('Log', 'log', total)
  end = g.op('AddV2', 'end', log, flat, through=_STOPPED if 'end' in stopped else None)
  g.target('output', end)


def _found(build, other):
  one, two = both(build, other)
  return [known.op for known in gradient_differences(Pairing(one.graph(), two.graph()))]


class GradientDifferencesTest(absltest.TestCase):
  def test_a_mean_that_the_variance_does_not_depend_on(self):
    self.assertEqual(_found(lambda g: _moments(g, stopped=True), _moments), [])
    self.assertEqual(_found(_moments, lambda g: _moments(g, stopped=True)), [])

  def test_a_shift_that_a_logarithm_of_sums_does_not_depend_on(self):
    stopped = functools.partial(_log_sum_exp, stopped=('less', 'end'))
    self.assertEqual(_found(stopped, _log_sum_exp), [])
    self.assertEqual(_found(_log_sum_exp, stopped), [])

  def test_a_shift_that_is_stopped_once_or_is_another_number(self):
    for places in (('less',), ('end',)):
      stopped = functools.partial(_log_sum_exp, stopped=places)
      self.assertEqual(_found(stopped, _log_sum_exp), [*places])
    other = functools.partial(_log_sum_exp, again=False)
    stopped = functools.partial(other, stopped=('less', 'end'))
    self.assertEqual(_found(stopped, other), ['less', 'end'])

  def test_another_mean(self):
    for changes in ({'axes': (1,)}, {'of_itself': False}):
      found = _found(
        lambda g, c=changes: _moments(g, stopped=True, **c), lambda g, c=changes: _moments(g, **c)
      )
      self.assertEqual(found, ['squares'])

  def test_the_same_tensors_in_turn(self):
    self.assertEqual(_found(_error, lambda g: _error(g, turned=True)), [])
    found = _found(_error, lambda g: _error(g, turned=True, stopped=1))
    self.assertEqual(found, ['error', 'error'])

  def test_a_value_with_a_gradient(self):
    self.assertEqual(_found(lambda g: _number(g, stopped=True), _number), ['sum'])

  def test_a_value_without_one(self):
    for kind in (('Greater', 'bool'), ('Floor', 'float32')):
      found = _found(
        lambda g, k=kind: _number(g, True, *k), lambda g, k=kind: _number(g, False, *k)
      )
      self.assertEqual(found, [])


if __name__ == '__main__':
  absltest.main()
