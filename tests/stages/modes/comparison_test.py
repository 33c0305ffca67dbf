import types

import numpy as np
from absl.testing import absltest

from tf2verify.numerics import tolerance
from tf2verify.numerics.noise import Kind, NoiseVerdict
from tf2verify.records import execution_mode as modes
from tf2verify.records.difference import Aspect
from tf2verify.records.execution_mode import ModeCall, ModeRun, ModeTensor
from tf2verify.stages.modes.comparison import (
  Judged,
  comparable,
  difference_of,
  greatest_difference,
  pairs_of,
)

_CASE = types.SimpleNamespace(
  tolerance=tolerance.VALUE_TOLERANCES,
  gradient_tolerance=tolerance.GRADIENT_TOLERANCES,
  regularization_tolerance=tolerance.REGULARIZATION_TOLERANCES,
)


def _run(mode, *tensors, training=True, number=1, **draws):
  call = ModeCall(training, number, tuple(tensors))
  return ModeRun(mode, (call,), **draws)


def _output(value, replica=0):
  return ModeTensor(modes.OUTPUT, 'net', np.array(value, np.float32), replica)


def _pairs(eager, other):
  return [pair for call in other.calls for pair in pairs_of(_CASE, eager, call, other.mode)]


class PairsTest(absltest.TestCase):
  def test_identical_and_close(self):
    eager = _run(modes.EAGER, _output([1.0, 2.0]))
    (same,) = _pairs(eager, _run(modes.JIT, _output([1.0, 2.0])))
    (close,) = _pairs(eager, _run(modes.JIT, _output([1.0, 2.000001])))
    self.assertEqual((same.difference, same.greatest, same.elements), (None, 0.0, 2))
    self.assertIsNone(close.difference)
    self.assertGreater(close.greatest, 0)
    self.assertIsNone(close.other.value)  # its memory is not kept

  def test_both_replicas(self):
    eager = _run(modes.EAGER, _output([1.0]))
    one, other = _pairs(eager, _run(modes.REPLICAS, _output([1.0], 0), _output([1.5], 1)))
    self.assertIsNone(one.difference)
    difference = difference_of(other, 1e-7)
    self.assertEqual(difference.run, 'two replicas on replica 1, training')
    self.assertIn('max absolute difference 0.5 at (0,): eager 1, two replicas 1.5', difference.tf2)
    self.assertIn('rounding noise 1e-07', difference.tf2)

  def test_missing_on_one_side(self):
    eager = _run(modes.EAGER, _output([1.0]))
    extra = ModeTensor(modes.GRADIENT, 'kernel', np.ones(2, np.float32))
    missing, added = _pairs(eager, _run(modes.JIT, extra))[::-1]
    self.assertEqual(missing.difference.aspect, Aspect.PRESENCE)
    self.assertEqual(difference_of(missing, None).tf2, 'eager (1,) float32, jit_compile absent')
    self.assertEqual(difference_of(added, None).tf2, 'eager absent, jit_compile (2,) float32')

  def test_shape(self):
    eager = _run(modes.EAGER, _output([1.0]))
    (pair,) = _pairs(eager, _run(modes.JIT, _output([[1.0]]), number=1))
    self.assertEqual(difference_of(pair, None).tf2, 'eager (1,), jit_compile (1, 1)')

  def test_none_on_both_sides(self):
    none = ModeTensor(modes.GRADIENT, 'kernel', None)
    (pair,) = _pairs(_run(modes.EAGER, none), _run(modes.JIT, none))
    self.assertIsNone(pair.difference)


class ComparableTest(absltest.TestCase):
  def test_draws(self):
    drawing = _run(modes.EAGER, draws=frozenset({True}))
    looping = _run(modes.EAGER, draws=frozenset({True}), draws_in_loops=frozenset({True}))
    first, second = (ModeCall(True, number, ()) for number in (1, 2))
    inference = ModeCall(False, 2, ())
    self.assertTrue(comparable(drawing, modes.FUNCTION, first))
    self.assertFalse(comparable(drawing, modes.FUNCTION, second))
    self.assertFalse(comparable(drawing, modes.JIT, first))
    self.assertFalse(comparable(looping, modes.FUNCTION, first))
    for mode in modes.MODES:
      self.assertTrue(comparable(looping, mode, inference))


class JudgedTest(absltest.TestCase):
  def _kind(self, mode, difference, noise=1e-6, behind_equals=False):
    eager = _run(modes.EAGER, _output([1.0]))
    (pair,) = _pairs(eager, _run(mode, _output([1.0 + difference])))
    verdict = NoiseVerdict(Kind.DIFFERENT, difference, noise, 1.0)
    return Judged(pair, verdict, behind_equals).kind

  def test_xla_rounds_more(self):
    self.assertIs(self._kind(modes.JIT, 1.5e-5), Kind.ROUNDING)
    self.assertIs(self._kind(modes.JIT, 1e-4), Kind.DIFFERENT)
    self.assertIs(self._kind(modes.FUNCTION, 1.5e-5), Kind.DIFFERENT)

  def test_gradient_behind_equal_outputs(self):
    self.assertIs(self._kind(modes.JIT, 0.5, behind_equals=True), Kind.DEGENERATE)

  def test_noise_that_could_not_be_measured(self):
    self.assertIs(self._kind(modes.JIT, 1.5e-5, noise=float('nan')), Kind.DIFFERENT)


class GreatestDifferenceTest(absltest.TestCase):
  def test_finite_elements_only(self):
    one, other = np.array([1.0, np.nan, np.inf]), np.array([1.5, np.nan, np.inf])
    self.assertEqual(greatest_difference(one, other), 0.5)

  def test_nothing_to_form(self):
    text = np.array([b'a'])
    self.assertTrue(np.isnan(greatest_difference(text, text)))
    self.assertTrue(np.isnan(greatest_difference(None, np.ones(1))))


if __name__ == '__main__':
  absltest.main()
