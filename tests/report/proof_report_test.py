"""Tests of tf2verify.report.proof_report, and of the record that it shows."""

import contextlib
import dataclasses
import io
import json
import os
from unittest import mock

from absl.testing import absltest

from tf2verify.records.case_proof import CaseProof, ProvenRun
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import SourceLine
from tf2verify.records.proven import GraphDifference, Proven, TestedRegion
from tf2verify.records.text_line import joined
from tf2verify.records.verdict import ErrorRecord
from tf2verify.report import terminal
from tf2verify.report.proof_report import proof_json, proof_lines

_CODE = 'return tf.keras.Sequential([tf.keras.layers.Dense(6), tf.keras.layers.Dense(7)])'
_LINE = SourceLine('port.py', 7, 'call', _CODE)
_RELU = GraphDifference('operation', 'Relu6', 'Relu', 'Relu6', _LINE, _LINE)
_REGION = TestedRegion((f'Relu net, {_LINE}',), (f'Relu6 net, {_LINE}',), ('output (the output)',))
_WHOLE = Proven('inference', 4, 4, 5, 5, 1, 1)
_PART = Proven('inference', 4, 3, 5, 4, 1, 0, (_REGION,))
_NOTHING = Proven('inference', reason='TypeError: not symbolic')
_OUTPUTS = Difference('outputs', '(the whole nest)', Aspect.STRUCTURE, 'Tensor', '(Tensor)')
_COMPUTE_THE_SAME = 'the graphs compute the same for all inputs of these shapes'
_IS_THE_SAME = 'what is proven is the same for all inputs of these shapes'


def _proof(*proven, differences=(), **fields):
  runs = tuple(ProvenRun(one, differences) for one in proven)
  return CaseProof('MyCase', 'my_case.py', runs, **fields)


def _text(*proven, **fields):
  return joined(proof_lines(_proof(*proven, **fields)))


def _shown(proof):
  """Returns the rows of a terminal of 80 columns."""
  shown = io.StringIO()
  with contextlib.redirect_stdout(shown), mock.patch.dict(os.environ, COLUMNS='80'):
    terminal.say_lines(proof_lines(proof))
  return shown.getvalue().splitlines()


def _json(*proven, **fields):
  return json.loads(proof_json(_proof(*proven, **fields)))


def _in_training(proven):
  return dataclasses.replace(proven, run='training')


def _run(difference, run):
  return dataclasses.replace(difference, run=run)


class ProofReportTest(absltest.TestCase):
  def _lines(self, *proven, **fields):
    return _text(*proven, **fields).splitlines()

  def test_whole(self):
    lines = self._lines(_WHOLE, _in_training(_WHOLE))
    self.assertEqual(lines[0], 'MyCase: 10 of 10 operations of the port proven for all inputs')
    self.assertEqual(
      lines[1], '  inference: 4 of 4 operations of tf1, 5 of 5 of the port, 1 of 1 results'
    )
    self.assertStartsWith(lines[3], '  nothing was run, ')
    self.assertEqual(lines[4], f'  {_COMPUTE_THE_SAME}')
    self.assertTrue(_proof(_WHOLE, _in_training(_WHOLE)).is_whole)

  def test_part(self):
    lines = self._lines(_PART)
    self.assertEqual(
      lines[0],
      'MyCase: 4 of 5 operations of the port, 3 of 4 operations of tf1, 0 of 1 results proven for '
      'all inputs',
    )
    self.assertIn(f'  {_IS_THE_SAME}', lines)
    self.assertNotIn(f'  {_COMPUTE_THE_SAME}', lines)

  def test_nothing(self):
    lines = self._lines(_NOTHING)
    self.assertEqual(lines[0], 'MyCase: nothing is proven')
    self.assertEqual(lines[1], '  inference: nothing is proven: TypeError: not symbolic')
    self.assertNotIn('0 of 0', '\n'.join(lines))
    self.assertNotIn('the same', '\n'.join(lines))

  def test_nothing_in_one_mode(self):
    head = self._lines(_WHOLE, _in_training(_NOTHING))[0]
    self.assertEndsWith(head, '1 of 1 results proven for all inputs; nothing in training')

  def test_no_operations(self):
    lines = self._lines(Proven('inference', targets=1, targets_proven=1))
    self.assertEqual(lines[0], 'MyCase: 1 of 1 results proven for all inputs')

  def test_a_reason_is_said_once(self):
    reason = _NOTHING.reason
    lines = self._lines(_NOTHING, _in_training(_NOTHING), allocated=reason)
    self.assertEqual(lines[1], f'  inference, training: nothing is proven: {reason}')
    self.assertEqual(
      lines[2],
      "  the port's variables were allocated, and the port was called to make them, for the same "
      'reason',
    )
    self.assertNotIn('nothing was run', '\n'.join(lines))

  def test_allocated(self):
    lines = self._lines(_WHOLE, allocated='it reads values', ran_both=True)
    self.assertIn(
      "  the port's variables were allocated, and the port was called to make them: it reads "
      'values',
      lines,
    )
    self.assertIn('  both sides were run, to derive which variables are pairs', lines)
    self.assertNotIn('nothing was run', '\n'.join(lines))
    self.assertNotIn('not allocated', '\n'.join(lines))

  def test_what_all_modes_have_is_said_once(self):
    text = _text(_PART, _in_training(_PART), differences=(_RELU,))
    self.assertEqual(text.count('  differs: the operation is Relu in tf1 at port.py:7'), 1)
    self.assertEqual(text.count('not proven, to be tested by a run: output (the output)'), 1)
    self.assertEqual(text.count('    tf1: Relu net, port.py:7'), 1)
    self.assertEqual(text.count('    port: Relu6 net, port.py:7'), 1)

  def test_what_one_mode_has_names_it(self):
    other = dataclasses.replace(_REGION, targets=("output ['a']",))
    training = dataclasses.replace(_PART, run='training', regions=(other,))
    runs = ProvenRun(_PART), ProvenRun(training, (_RELU,))
    text = joined(proof_lines(CaseProof('MyCase', 'my_case.py', runs)))
    self.assertIn('  differs [training]: the operation is Relu', text)
    self.assertIn('to be tested by a run [inference]: output (the output)\n', text)
    self.assertIn("to be tested by a run [training]: output ['a']\n", text)

  def test_what_differs_is_not_whole(self):
    both = _run(_OUTPUTS, 'inference'), _run(_OUTPUTS, 'training')
    found = _proof(_WHOLE, _in_training(_WHOLE), differing=both)
    self.assertFalse(found.is_whole)
    text = joined(proof_lines(found))
    self.assertIn(
      '  outputs (the whole nest): structure differs\n    tf1: Tensor\n    tf2: (Tensor)\n', text
    )
    self.assertEqual(text.count('structure differs'), 1)
    self.assertNotIn(_COMPUTE_THE_SAME, text)
    text = _text(_WHOLE, _in_training(_WHOLE), differing=both[1:])
    self.assertIn('  outputs (the whole nest) [training]: structure differs\n', text)

  def test_unpaired_variables(self):
    left = {'only_tf1': ('one',), 'only_tf2': ('other',)}
    said = 'a proof without a run pairs variables by name only'
    self.assertIn(said, _text(_PART, **left))
    self.assertNotIn(said, _text(_PART, **left, allocated='it reads values'))

  def test_lines_are_wrapped_between_words(self):
    found = _proof(_PART, differences=(_RELU,), only_tf1=('v' * 120,))
    lines = _shown(found)
    self.assertEqual([line for line in lines if len(line) > 80], ['    ' + 'v' * 120])
    text = joined(proof_lines(found))
    self.assertEqual(' '.join(lines).split(), text.split())
    self.assertGreater(max(map(len, text.splitlines())), 200)

  def test_errors(self):
    trace = 'Traceback (most recent call last):\n  File "port.py"' + ' and much more' * 9
    error = ErrorRecord('tf2', 'make_tf2_layer raised ValueError: no', trace)
    found = _proof(error=error)
    self.assertFalse(found.is_whole)
    self.assertFalse(_proof(_WHOLE, error=error).is_whole)
    self.assertEndsWith(
      _text(error=error, allocated='it reads values'),
      "\n  the port's variables were allocated: it reads values",
    )
    lines = _shown(found)
    self.assertEqual(
      lines[0], 'MyCase: ERROR on the tf2 side: make_tf2_layer raised ValueError: no'
    )
    self.assertEqual(lines[1:], [f'  | {line}' for line in trace.splitlines()])

  def test_json(self):
    told = _json(_WHOLE)
    self.assertEqual((told['proven'], told['was_run'], told['error']), (True, False, None))
    told = _json(_WHOLE, allocated='why', differing=(_OUTPUTS,))
    self.assertEqual((told['proven'], told['was_run']), (False, True))
    self.assertEqual(
      told['differing'],
      [
        {
          'quantity': 'outputs',
          'subject': '(the whole nest)',
          'aspect': 'structure',
          'tf1': 'Tensor',
          'tf2': '(Tensor)',
          'run': '',
          'hint': '',
        }
      ],
    )
    told = _json(error=ErrorRecord('tf1', 'raised', 'trace'))
    self.assertEqual((told['proven'], told['was_run'], told['runs']), (False, None, []))
    self.assertEqual(told['error'], {'side': 'tf1', 'summary': 'raised', 'traceback_text': 'trace'})


if __name__ == '__main__':
  absltest.main()
