import types

import numpy as np
from absl.testing import absltest

from tf2verify.diagnosis.causes import first_cause
from tf2verify.diagnosis.evidence.modes import PythonState
from tf2verify.numerics import tolerance
from tf2verify.records import execution_mode as modes
from tf2verify.records.execution_mode import ModeCall, ModeRun, ModeTensor
from tf2verify.stages.modes.comparison import pairs_of
from tf2verify.stages.modes.evidence import mode_evidence

_CASE = types.SimpleNamespace(
  tolerance=tolerance.VALUE_TOLERANCES,
  gradient_tolerance=tolerance.GRADIENT_TOLERANCES,
  regularization_tolerance=tolerance.REGULARIZATION_TOLERANCES,
)
_NET = np.array([1.0, -2.0, 3.0], np.float32)


def _call(training=True, **values):
  tensors = (ModeTensor(quantity, 'x', np.array(value)) for quantity, value in values.items())
  return ModeCall(training, 1, tuple(tensors))


def _cause(mode, eager, other, port=None):
  """Returns the cause of what differs in the last call of a mode."""
  run = ModeRun(modes.EAGER, tuple(eager))
  pairs = list(pairs_of(_CASE, run, other, mode))
  return first_cause(mode_evidence(_CASE, port, run, pairs))


class FactorTest(absltest.TestCase):
  def test_number_of_replicas(self):
    eager = _call(output=_NET, gradient=_NET)
    for factor, text in ((0.5, '0.5 times'), (2.0, '2 times')):
      other = _call(output=_NET, gradient=np.float32(factor) * _NET)
      self.assertIn(text, _cause(modes.REPLICAS, [eager], other))

  def test_another_factor(self):
    eager, other = _call(output=_NET), _call(output=np.float32(3.0) * _NET)
    self.assertEqual(_cause(modes.REPLICAS, [eager], other), '')

  def test_one_tensor_by_another_factor(self):
    eager = _call(output=_NET, gradient=_NET)
    other = _call(output=2 * _NET, gradient=_NET + 1)
    self.assertEqual(_cause(modes.REPLICAS, [eager], other), '')

  def test_another_mode(self):
    eager, other = _call(output=_NET), _call(output=2 * _NET)
    self.assertEqual(_cause(modes.FUNCTION, [eager], other), '')


class TrainingTest(absltest.TestCase):
  def test_computes_as_in_inference(self):
    eager = [_call(False, output=_NET), _call(True, output=2 * _NET)]
    text = _cause(modes.FUNCTIONAL, eager, _call(True, output=_NET))
    self.assertIn('`training` does not reach it', text)

  def test_computes_something_else(self):
    eager = [_call(False, output=_NET), _call(True, output=2 * _NET)]
    self.assertEqual(_cause(modes.FUNCTIONAL, eager, _call(True, output=3 * _NET)), '')


class LossTest(absltest.TestCase):
  def _text(self, alone, output=_NET):
    port = types.SimpleNamespace(loss_alone=lambda training, number: np.float32(alone))
    eager = [_call(output=_NET, loss=np.float32(16.0))]
    return _cause(modes.FUNCTION, eager, _call(output=output, loss=np.float32(33.0)), port)

  def test_of_constants_as_in_eager_mode(self):
    self.assertIn('it inspects the operation that made its input', self._text(16.0))

  def test_of_constants_as_in_the_function(self):
    self.assertEqual(self._text(33.0), '')

  def test_outputs_differ_too(self):
    self.assertEqual(self._text(16.0, output=_NET + 1), '')


class PythonStateTest(absltest.TestCase):
  def test_generator(self):
    text = first_cause(PythonState('numpy.random'))
    self.assertIn('it draws from numpy.random, which', text)

  def test_something(self):
    text = first_cause(PythonState(''))
    self.assertIn('it depends on something in Python, which', text)


if __name__ == '__main__':
  absltest.main()
