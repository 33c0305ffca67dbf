"""Tests of tf2verify.records.verdict and verdict_json."""

import json

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.records.difference import ArrayDifference, Aspect, Difference
from tf2verify.records.observation import TensorRecord
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, ErrorRecord, StageVerdict


def _case(*statuses):
  return CaseVerdict(
    'Case', 'case.py', tuple(StageVerdict(f's{n}', n, s) for n, s in enumerate(statuses, 1))
  )


class StatusTest(parameterized.TestCase):
  @parameterized.parameters(
    ((Status.PASSED, Status.PASSED), Status.PASSED),
    ((Status.PASSED, Status.NOT_APPLICABLE), Status.PASSED),
    ((Status.NOT_APPLICABLE,), Status.NOT_APPLICABLE),
    ((), Status.NOT_APPLICABLE),
    ((Status.PASSED, Status.INCONCLUSIVE), Status.INCONCLUSIVE),
    ((Status.FAILED, Status.BLOCKED), Status.FAILED),
    ((Status.FAILED, Status.ERROR, Status.BLOCKED), Status.ERROR),
  )
  def test_the_case_has_the_gravest_status(self, statuses, expected):
    self.assertIs(_case(*statuses).status, expected)

  def test_first_failure(self):
    verdict = _case(Status.PASSED, Status.FAILED, Status.ERROR)
    self.assertEqual(verdict.first_failure.stage, 's2')
    self.assertIsNone(_case(Status.PASSED, Status.NOT_APPLICABLE).first_failure)

  def test_first_failure_can_be_asked_for_as_an_optional(self):
    for status in (Status.FAILED, Status.ERROR, Status.INCONCLUSIVE):
      verdict = _case(Status.PASSED, status)
      self.assertTrue(verdict.first_failure)
      self.assertEqual(verdict.first_failure, verdict.stages[1])
      with self.assertRaises(TypeError):
        bool(verdict.stages[1])
    self.assertFalse(_case(Status.PASSED).first_failure)

  def test_a_verdict_has_no_truth_value(self):
    stages = [StageVerdict('s', 1, status) for status in (Status.PASSED, Status.FAILED)]
    for verdict in (_case(Status.PASSED), *stages):
      with self.assertRaisesRegex(TypeError, 'compare .status'):
        bool(verdict)


class ShownTest(absltest.TestCase):
  def test_passed_is_true_for_passed_alone(self):
    for status in Status:
      self.assertIs(_case(status).passed, status is Status.PASSED)
      self.assertIs(_case(status).stages[0].passed, status is Status.PASSED)
    self.assertTrue(_case(Status.PASSED, Status.NOT_APPLICABLE).passed)
    self.assertFalse(_case().passed)

  def test_a_repr_is_a_line(self):
    case = _case(Status.PASSED, Status.NOT_APPLICABLE)
    self.assertEqual(
      repr(case), '<CaseVerdict Case: PASSED, 1 of 1 stages passed, 1 not applicable, 0.0 s>'
    )
    self.assertEqual(repr(case.stages[0]), '<StageVerdict s1: PASSED, 0 tensors>')

  def test_a_notebook_shows_a_table_and_the_failure_with_nothing_of_it_as_html(self):
    evil = '<script>alert("1")</script>\u202e'
    error = ErrorRecord('tf2', evil, f'Traceback\n  File "<b>", line 1\n{evil}')
    stage = StageVerdict(evil, 3, Status.ERROR, error=error)
    case = CaseVerdict(evil, 'case.py', (_case(Status.PASSED).stages[0], stage))
    for text in (case._repr_html_(), stage._repr_html_()):
      self.assertNotIn('<script', text)
      self.assertNotIn('<b>"', text)
      self.assertNotIn('\u202e', text)
      self.assertIn('&lt;script&gt;', text)
      self.assertIn('>ERROR</span>', text)
      self.assertIn('Traceback', text)
    self.assertEqual(case._repr_html_().count('<tr>'), 2)
    self.assertNotIn('<pre', _case(Status.PASSED)._repr_html_())


class JsonTest(absltest.TestCase):
  def test_holds_every_field_and_what_json_cannot_as_text(self):
    array = ArrayDifference(
      (2,), 'float32', 1, 2, (0,), float('nan'), float('inf'), float('nan'), 0.0, 1e-6, 1e-5
    )
    stage = StageVerdict(
      'gradients',
      6,
      Status.FAILED,
      Compared(1, 2),
      (Difference('gradient', 'w', Aspect.NON_FINITE, array=array),),
    )
    report = json.loads(CaseVerdict('Case', 'case.py', (stage,), (('numpy', '2'),)).to_json())
    self.assertEqual(report['schema_version'], 2)
    self.assertEqual(report['status'], 'FAILED')
    self.assertEqual(report['environment'], {'numpy': '2'})
    (found,) = report['stages'][0]['differences']
    self.assertEqual(found['aspect'], 'non-finite pattern')
    self.assertEqual((found['array']['tf1'], found['array']['tf2']), ('nan', 'inf'))

  def test_strings_of_bytes(self):
    array = ArrayDifference((), 'str', 1, 1, (), b'a\xff', b'b', 1.0, 1.0, 0.0, 0.0)
    stage = StageVerdict(
      's', 1, Status.FAILED, differences=(Difference('output', 'x', Aspect.VALUES, array=array),)
    )
    self.assertIn('a\\\\xff', CaseVerdict('Case', 'case.py', (stage,)).to_json())


class TensorRecordTest(absltest.TestCase):
  def test_its_array_is_read_only(self):
    record = TensorRecord('w', np.zeros(2))
    with self.assertRaises(ValueError):
      record.value[0] = 1.0


if __name__ == '__main__':
  absltest.main()
