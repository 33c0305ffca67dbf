"""Tests of tf2verify.records.verdict_text: whole reports against tests/golden_reports/."""

import dataclasses
import os

from absl.testing import absltest, parameterized

from tf2verify.records.diagnosis import (
  Cause,
  Diagnosis,
  GraphAspect,
  GraphDifference,
  GrowthPoint,
  Source,
  Statistics,
)
from tf2verify.records.difference import ArrayDifference, Aspect, Difference
from tf2verify.records.observation import SourceLine
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, ErrorRecord, Figure, StageVerdict
from tf2verify.records.verdict_text import count_text

_GOLDEN = os.path.join(os.path.dirname(os.path.dirname(__file__)), 'golden_reports')
_ARRAY = ArrayDifference((4, 8), 'float32', 32, 32, (2, 5), 0.125, 0.0625, 0.0625, 0.5, 1e-6, 1e-5)


def _passed(name, number, **fields):
  return StageVerdict(name, number, Status.PASSED, Compared(9, 1234), seconds=0.31, **fields)


def _gradient(name):
  return Difference('gradient', name, Aspect.VALUES, run='training, distinct values', array=_ARRAY)


FAILED = CaseVerdict(
  'DenseCase',
  'dense_test.py',
  (
    StageVerdict('no_new_variables', 1, Status.PASSED, Compared(3, noun='calls'), seconds=0.2),
    _passed(
      'zero_randomness', 3, figures=(Figure('regularization loss', 'inference', 1.25, 1.25),)
    ),
    StageVerdict(
      'gradients',
      6,
      Status.FAILED,
      Compared(9, 1234, 1, 1),
      (
        Difference(
          'gradient',
          'out/bias',
          Aspect.PRESENCE,
          '(8,) float32',
          'None',
          'training, distinct values',
          hint='the path is cut',
        ),
        *(_gradient(f'dense_{n}/kernel') for n in range(8)),
      ),
      12.04,
      notes=('2 variables have no gradient on either side',),
    ),
  ),
  run_again='python dense_test.py DenseCase.test_06_gradients',
)

_LOSS = GraphDifference(GraphAspect.TYPE, 'loss/Mean', 'Mean', '', 'Mean', 'Sum', 'Mean', 'Sum')
_NORM = GraphDifference(
  GraphAspect.ATTRIBUTE, 'net/norm', 'FusedBatchNormV3', 'epsilon', '0.001', '1e-05', 1e-3, 1e-5
)
_RELU = GraphDifference(GraphAspect.MISSING, 'net/Relu', 'Relu', '', 'Relu', '', ('Relu',), ())
_STOP = GraphDifference(
  GraphAspect.GRADIENT, 'net/fc/MatMul', 'MatMul', 'a', 'unchanged', 'StopGradient', (), ()
)


def _source(op, op_type, difference, **fields):
  values = {
    'tf1_op': op,
    'tf2_op': f'port/{op}',
    'tf1_type': op_type,
    'tf2_type': op_type,
    'tf1_source': SourceLine('model.py', 12, 'net', 'net = norm(net)'),
    'tf2_source': SourceLine('port.py', 34, 'call', 'net = self.norm(net)'),
    'tf1_path': (op_type,),
    'tf2_path': (op_type,),
    'absolute': 0.0625,
    'relative': 0.5,
    'alone': False,
    'tf1_output': Statistics((4, 8), 'float32', -0.125, 2.0, 0.75, 0.0, 0),
    'tf2_output': Statistics((4, 8), 'float32', -0.0625, 1.0, 0.375, 0.0, 0),
    'differences': (difference,),
    **fields,
  }
  return Source(**values)


DIAGNOSED = CaseVerdict(
  'DenseCase',
  'dense_test.py',
  (
    _passed('zero_randomness', 3),
    StageVerdict(
      'gradients',
      6,
      Status.FAILED,
      Compared(9, 1234),
      (_gradient('dense/kernel'),),
      12.04,
      diagnosis=Diagnosis(
        'training, distinct values',
        causes=(
          Cause('the loss is averaged in tf1 and summed in the port', 'factor 4', 'loss_reduction'),
        ),
        sources=(
          _source('net/norm', 'FusedBatchNormV3', _NORM),
          _source('net/pool', 'MaxPool', _RELU, alone=True, tf1_path=('Relu', 'MaxPool')),
          _source('loss/Mean', 'Mean', _LOSS, tf2_op='loss/Sum', tf2_path=('Sum',), alone=True),
          _source('last', 'Neg', _LOSS),
        ),
        gradient_differences=(_STOP,),
        updates=(('net/norm/moving_mean', 1, 0),),
        growth=tuple(GrowthPoint(f'op_{n}', 10.0 ** (n - 6)) for n in range(7)),
        operations=1200,
        paired=1187,
        notes=('the traced port may take another path than the eager one',),
      ),
    ),
  ),
  run_again='python dense_test.py DenseCase.test_06_gradients',
)

ERROR = CaseVerdict(
  'BrokenCase',
  'broken_test.py',
  (
    StageVerdict(
      'no_new_variables',
      1,
      Status.ERROR,
      seconds=0.1,
      error=ErrorRecord(
        'tf2',
        'call_tf2_layer raised on the tf2 side: ValueError: no such scope',
        'Traceback (most recent call last):\n  File "model.py", line 3, in call\nValueError: no',
      ),
    ),
    StageVerdict('zero_randomness', 3, Status.BLOCKED, reason='blocked: no_new_variables ERROR'),
    StageVerdict('gradients', 6, Status.NOT_APPLICABLE, reason='left out by the case: no loss'),
  ),
)

INVENTORY = CaseVerdict(
  'NetCase',
  'net_test.py',
  (
    StageVerdict(
      'variable_inventory',
      2,
      Status.FAILED,
      Compared(2, 0, 0, 1, 'variables'),
      (
        Difference('variable', 'a/kernel', Aspect.SHAPE, '(3, 4) float32', '(4, 3) float32'),
        Difference('variable', 'a/bias', Aspect.PRESENCE, '(3,) float32', 'missing'),
      ),
      0.05,
    ),
  ),
)


class ReportTest(parameterized.TestCase):
  maxDiff = None

  @parameterized.parameters(
    ('failed', FAILED), ('diagnosed', DIAGNOSED), ('error', ERROR), ('inventory', INVENTORY)
  )
  def test_equals_the_golden_report(self, name, verdict):
    with open(os.path.join(_GOLDEN, f'{name}.txt'), encoding='utf-8') as file:
      self.assertEqual(verdict.to_text() + '\n', file.read())

  def test_a_stage_alone_says_the_same_without_the_case(self):
    text = FAILED.stages[-1].to_text()
    self.assertStartsWith(text, "stage 'gradients' FAILED: 9 of 10 tensors differ")
    self.assertIn('… and 3 more', text)

  def test_blind_spots_are_marked_among_the_notes(self):
    found = _passed('execution_modes', 10, notes=('no XLA here', 'a word'), blind_spots=('a word',))
    text = CaseVerdict('NetCase', 'net_test.py', (found,)).to_text()
    self.assertIn('      note: no XLA here\n      blind spot: a word\n', text)

  def test_figures_agree_where_the_stage_passed(self):
    figure = Figure('regularization loss', 'inference', 0.021486329, 0.021486327)
    for status, word in ((Status.PASSED, ', agrees:'), (Status.INCONCLUSIVE, ':')):
      found = StageVerdict('zero_randomness', 3, status, Compared(1, 1), figures=(figure,))
      text = CaseVerdict('NetCase', 'net_test.py', (found,)).to_text()
      self.assertIn(f'regularization loss, inference{word} tf1 0.021486329', text)

  def test_what_rounding_may_explain_is_marked(self):
    for within in (False, True):
      array = dataclasses.replace(_ARRAY, noise=0.05, within_noise=within)
      known = Difference('gradient', 'w', Aspect.VALUES, array=array)
      text = StageVerdict('gradients', 6, Status.FAILED, Compared(1, 32), (known,)).to_text()
      self.assertEqual('rounding noise here 0.05, which may be all of it)' in text, within)

  def test_counts(self):
    self.assertEqual(
      [count_text(n) for n in (0, 999, 1114, 9_999_999, 59_273_456)],
      ['0', '999', '1,114', '9,999,999', '59.3 M'],
    )


if __name__ == '__main__':
  absltest.main()
