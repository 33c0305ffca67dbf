import types

import numpy as np
from absl.testing import absltest

from tf2verify.errors import UserCodeError
from tf2verify.numerics import tolerance
from tf2verify.numerics.noise import RUNS, Kind
from tf2verify.records import execution_mode as modes
from tf2verify.records.execution_mode import ModeCall, ModeRun, ModeTensor
from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.modes.comparison import pairs_of
from tf2verify.stages.modes.noise import judged_by_noise, wanted_of

_CASE = types.SimpleNamespace(
  tolerance=tolerance.VALUE_TOLERANCES,
  gradient_tolerance=tolerance.GRADIENT_TOLERANCES,
  regularization_tolerance=tolerance.REGULARIZATION_TOLERANCES,
)
_NET = np.linspace(1.0, 2.0, 50, dtype=np.float32)
_NOISE = 1e-4


def _call(number=1, **tensors):
  found = [ModeTensor(quantity, 'x', np.float32(value)) for quantity, value in tensors.items()]
  return ModeCall(False, number, tuple(found))


class _Port:
  """Yields noise of one size for every tensor that is asked for."""

  narrow_bits = 0

  def __init__(self):
    self.perturbers = []

  def again(self, training, number, perturber, wanted):
    self.perturbers.append(perturber)
    coins = np.random.default_rng(len(self.perturbers)).choice([-1.0, 1.0], _NET.shape)
    noise = _NOISE * coins if perturber else 0.0
    return (_call(**{key.quantity: _NET + noise for key in wanted}),)


class _NoPort:
  narrow_bits = 0

  def again(self, training, number, perturber, wanted):
    raise UserCodeError('tf2', 'call_tf2_layer', 'ValueError: no', 'Traceback')


def _pairs(mode, number=1, **shifts):
  eager = _call(number, **dict.fromkeys(shifts, _NET))
  other = _call(number, **{quantity: _NET + shift for quantity, shift in shifts.items()})
  return list(pairs_of(_CASE, ModeRun(modes.EAGER, (eager,)), other, mode))


class JudgedByNoiseTest(absltest.TestCase):
  def _kinds(self, pairs, port=None, rounding_calls=()):
    unmoved = (_call(**{pair.other.quantity: _NET for pair in pairs}),)
    found = judged_by_noise(_CASE, port or _Port(), pairs, unmoved, rounding_calls)
    return [(item.pair.mode, item.pair.number, item.kind) for item in found]

  def test_all_modes_share_a_series(self):
    port = _Port()
    pairs = [
      *_pairs(modes.FUNCTION, output=_NOISE),
      *_pairs(modes.FUNCTION, 2, output=_NOISE),
      *_pairs(modes.NO_ARITHMETIC, output=_NOISE),
    ]
    self.assertEqual(
      self._kinds(pairs, port),
      [
        (modes.FUNCTION, 1, Kind.ROUNDING),
        (modes.FUNCTION, 2, Kind.ROUNDING),
        (modes.NO_ARITHMETIC, 1, Kind.ROUNDING),
      ],
    )
    self.assertEqual([perturber.number for perturber in port.perturbers], list(range(RUNS)))

  def test_one_that_differs_excuses_nothing_in_its_call_only(self):
    pairs = [
      *_pairs(modes.FUNCTION, output=_NOISE, loss=0.5),
      *_pairs(modes.NO_ARITHMETIC, output=_NOISE),
    ]
    self.assertEqual(
      self._kinds(pairs),
      [
        (modes.FUNCTION, 1, Kind.DIFFERENT),
        (modes.FUNCTION, 1, Kind.DIFFERENT),
        (modes.NO_ARITHMETIC, 1, Kind.ROUNDING),
      ],
    )

  def test_gradients_of_xla(self):
    behind = {modes.GRADIENT: 0.01}
    (_, gradient) = self._kinds(_pairs(modes.JIT, output=_NOISE, **behind))
    self.assertIs(gradient[-1], Kind.DEGENERATE)
    (_, gradient) = self._kinds(_pairs(modes.JIT, output=0.5, **behind))
    self.assertIs(gradient[-1], Kind.DIFFERENT)

  def test_gradients_of_xla_that_are_others_altogether(self):
    pairs = _pairs(modes.JIT, **{'output': _NOISE, modes.GRADIENT: 0.5})
    (_, gradient) = self._kinds(pairs)
    self.assertIs(gradient[-1], Kind.DIFFERENT)

  def test_gradients_behind_outputs_that_a_function_rounds_otherwise(self):
    behind, calls = {modes.GRADIENT: 0.01}, {(modes.FUNCTION, 1)}
    pairs = _pairs(modes.FUNCTION, output=_NOISE, **behind)
    (output, gradient) = self._kinds(pairs, rounding_calls=calls)
    self.assertIs(output[-1], Kind.ROUNDING)
    self.assertIs(gradient[-1], Kind.DEGENERATE)
    # Within the tolerance the output is no pair, but it is not the same bit by bit.
    (gradient,) = self._kinds(_pairs(modes.FUNCTION, **behind), rounding_calls=calls)
    self.assertIs(gradient[-1], Kind.DEGENERATE)

  def test_gradients_of_a_function_behind_outputs_with_the_same_bits(self):
    behind = {modes.GRADIENT: 0.01}
    (gradient,) = self._kinds(_pairs(modes.FUNCTION, **behind))
    self.assertIs(gradient[-1], Kind.DIFFERENT)
    other_call = {(modes.FUNCTION, 2), (modes.NO_ARITHMETIC, 1)}
    (gradient,) = self._kinds(_pairs(modes.FUNCTION, **behind), rounding_calls=other_call)
    self.assertIs(gradient[-1], Kind.DIFFERENT)

  def test_gradients_of_a_function_behind_outputs_that_differ(self):
    pairs = _pairs(modes.FUNCTION, **{'output': 0.5, modes.GRADIENT: 0.01})
    (_, gradient) = self._kinds(pairs, rounding_calls={(modes.FUNCTION, 1)})
    self.assertIs(gradient[-1], Kind.DIFFERENT)

  def test_gradients_of_a_function_that_are_others_altogether(self):
    pairs = _pairs(modes.FUNCTION, **{'output': _NOISE, modes.GRADIENT: 0.5})
    (_, gradient) = self._kinds(pairs, rounding_calls={(modes.FUNCTION, 1)})
    self.assertIs(gradient[-1], Kind.DIFFERENT)

  def test_runs_that_raise_judge_nothing(self):
    self.assertEqual(self._kinds(_pairs(modes.FUNCTION, output=_NOISE), _NoPort()), [])

  def test_wanted(self):
    pairs = _pairs(modes.FUNCTION, output=_NOISE, loss=0.5)
    self.assertEqual(wanted_of(pairs), {TensorKey('output', 'x'), TensorKey('loss', 'x')})


if __name__ == '__main__':
  absltest.main()
