"""Tests of tf2verify.report.rejudging."""

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.errors import CaseDefinitionError
from tf2verify.numerics.tolerance import Tolerance, as_table
from tf2verify.records.difference import Aspect, Deviation, Difference, Judgement
from tf2verify.records.status import Status
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.verdict import CaseVerdict, Compared, StageVerdict
from tf2verify.report.rejudging import rejudged
from tf2verify.stages.comparison.comparing import Comparison

_TABLE = as_table(Tolerance(rtol=1e-6, atol=1e-5), None)


def stage(name, *pairs, number=1, **fields):
  """Returns the verdict of a stage that compared some outputs."""
  comparison = Comparison()
  for index, (tf1, tf2) in enumerate(pairs):
    arrays = np.array(tf1, np.float64), np.array(tf2, np.float64)
    comparison.tensors(TensorKey('output', f'[{index}]', 'a run'), *arrays, _TABLE)
  found = comparison.findings()
  status = Status.PASSED
  if found.inconclusive:
    status = Status.INCONCLUSIVE
  if found.differences:
    status = Status.FAILED
  verdict = StageVerdict(
    name,
    number,
    status,
    found.compared,
    found.differences,
    reason=found.inconclusive,
    deviations=found.deviations,
  )
  return verdict if not fields else StageVerdict(**{**vars(verdict), **fields})


def judge(*stages, rtol=None, atol=None):
  return rejudged(CaseVerdict('Case', 'case.py', stages), rtol, atol)


FAILED = ([1.0, 2.0], [1.001, 2.0])
PASSED = ([1.0, 2.0], [1.000001, 2.0])


class RejudgedTest(parameterized.TestCase):
  def test_without_tolerances_nothing_changes(self):
    case = CaseVerdict('Case', 'case.py', (stage('s', FAILED, PASSED),))
    found = rejudged(case, None, None)
    self.assertEqual((found.case, found.changes), (case, ()))

  @parameterized.parameters(({'rtol': 0.0011},), ({'atol': 0.0011},), ({'rtol': 0.1, 'atol': 0.0},))
  def test_a_wider_tolerance_passes(self, tolerance):
    found = judge(stage('gradients', FAILED, PASSED), **tolerance)
    self.assertIs(found.case.status, Status.PASSED)
    self.assertEmpty(found.case.stages[0].differences)
    self.assertRegex(found.changes[0], r'^gradients: FAILED -> PASSED at (rtol|atol) ')

  def test_a_smaller_one_fails_and_says_by_how_much(self):
    found = judge(stage('s', PASSED), rtol=1e-7, atol=0.0)
    (verdict,) = found.case.stages
    self.assertIs(verdict.status, Status.FAILED)
    self.assertIn('is 1e-06 there (allowed 0 + 1e-07·|tf1|)', verdict.differences[0].tf2)
    self.assertIn('would pass with atol 9.01e-07 or rtol 1.01e-06', verdict.differences[0].tf2)
    self.assertIn('1 tensor is beyond the tolerance now', verdict.notes[0])
    self.assertEqual(found.changes, ('s: PASSED -> FAILED at rtol 1e-07, atol 0',))

  def test_what_still_fails_shows_the_new_tolerance(self):
    found = judge(stage('s', FAILED), atol=1e-4)
    (difference,) = found.case.stages[0].differences
    self.assertIn('(allowed 0.0001 + 1e-06·|tf1|)', difference.tf2)
    self.assertEmpty(found.changes)
    self.assertEmpty(found.case.stages[0].notes)

  def test_what_is_no_number_stays(self):
    lost = Difference('output', '[7]', Aspect.PRESENCE, 'here', 'missing')
    pattern = ([np.nan], [1.0])
    verdict = stage('s', FAILED, pattern)
    verdict = stage('s', FAILED, pattern, differences=(lost, *verdict.differences))
    found = judge(verdict, rtol=1e9, atol=1e9).case.stages[0]
    aspects = [difference.aspect for difference in found.differences]
    self.assertEqual(aspects, [Aspect.PRESENCE, Aspect.NON_FINITE])
    self.assertIs(found.status, Status.FAILED)

  def test_a_tolerance_as_large_as_the_tensors_tells_nothing(self):
    found = judge(stage('s', FAILED, PASSED), atol=5.0)
    self.assertIs(found.case.status, Status.INCONCLUSIVE)
    self.assertEqual(found.case.stages[0].compared.inconclusive, 2)

  def test_a_smaller_atol_tells_what_was_near_zero(self):
    near_zero = stage('s', ([1e-7, 2e-7], [1e-7, 2.0000001e-7]))
    self.assertIs(near_zero.status, Status.INCONCLUSIVE)
    found = judge(near_zero, atol=0.0).case.stages[0]
    self.assertEqual((found.status, found.reason), (Status.PASSED, ''))
    self.assertEqual(found.compared.inconclusive, 0)
    self.assertIs(judge(near_zero, atol=0.0, rtol=0.0).case.status, Status.FAILED)

  def test_another_reason_for_telling_nothing_stays(self):
    verdict = stage('s', PASSED, status=Status.INCONCLUSIVE, reason='drawn in a loop')
    found = judge(verdict, rtol=0.1).case.stages[0]
    self.assertEqual((found.status, found.reason), (Status.INCONCLUSIVE, 'drawn in a loop'))
    verdict = stage('s', FAILED, reason='drawn in a loop')
    self.assertIs(judge(verdict, rtol=0.1).case.status, Status.INCONCLUSIVE)

  def test_what_depends_on_a_stage_that_passes_now_has_not_run(self):
    blocked = StageVerdict.blocked('t', 2, 's', Status.FAILED)
    found = judge(stage('s', FAILED), blocked, rtol=0.1).case.stages[1]
    self.assertIs(found.status, Status.BLOCKED)
    self.assertStartsWith(found.reason, 'not run: s is PASSED now')
    self.assertEqual(judge(stage('s', FAILED), blocked).case.stages[1], blocked)

  def test_impossible_tolerances(self):
    for figure in (-1.0, float('nan'), float('inf')):
      with self.assertRaises(CaseDefinitionError):
        judge(stage('s', PASSED), rtol=figure)


class RoundingTest(parameterized.TestCase):
  def excused(self, judgement, **fields):
    deviation = Deviation(
      'output', 'x', 'a run', 'float32', 1e-6, 1e-5, ((1.0, 1e-3),), 2.0, judgement
    )
    compared = Compared(
      2,
      8,
      int(judgement is Judgement.DEGENERATE),
      rounding=int(judgement is Judgement.ROUNDING),
    )
    status = fields.pop('status', Status.PASSED)
    return StageVerdict('s', 1, status, compared, deviations=(deviation,), **fields)

  def test_rounding_stays_excused_where_it_still_exceeds_the_tolerance(self):
    found = judge(self.excused(Judgement.ROUNDING), rtol=1e-9).case.stages[0]
    self.assertIs(found.status, Status.PASSED)
    self.assertEqual(found.compared.rounding, 1)
    self.assertIn('1 tensor is excused by rounding noise', found.notes[0])
    changes = judge(self.excused(Judgement.ROUNDING), rtol=1e-9).changes
    self.assertEqual(changes, (f's: {found.notes[0]}',))

  def test_rounding_within_the_tolerance_needs_no_excuse(self):
    found = judge(self.excused(Judgement.ROUNDING), rtol=1e-2).case.stages[0]
    self.assertIs(found.status, Status.PASSED)
    self.assertEqual((found.compared.rounding, found.notes), (0, ()))

  def test_a_degenerate_output_keeps_the_stage_inconclusive(self):
    verdict = self.excused(Judgement.DEGENERATE, status=Status.INCONCLUSIVE, reason='noise')
    self.assertIs(judge(verdict, rtol=1e-9).case.status, Status.INCONCLUSIVE)
    found = judge(verdict, rtol=1e-2).case.stages[0]
    self.assertEqual((found.status, found.compared.inconclusive), (Status.PASSED, 0))


if __name__ == '__main__':
  absltest.main()
