"""Tests of tf2verify.records.graph_notes."""

import dataclasses

from absl.testing import absltest

from tf2verify.records.graph_notes import without_effect
from tf2verify.records.observation import SourceLine
from tf2verify.records.proven import GraphDifference, Proven
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, StageVerdict

_FOUND = GraphDifference(
  'constant', 'Mul', '0.0001', '0.0002', tf2_source=SourceLine('port.py', 59, 'call', 'L2(2e-4)')
)
_SAID = 'the graphs differ, with no effect in the stages before: the constant of Mul is 0.0001 in'


def _proven(*differences):
  return Proven('inference', 9, 8, 9, 8, differences=differences)


class GraphNotesTest(absltest.TestCase):
  def test_each_once(self):
    found = without_effect([_proven(_FOUND), None, _proven(_FOUND)])
    self.assertLen(found, 1)
    self.assertStartsWith(found[0], _SAID)
    self.assertIn('port.py:59', found[0])
    self.assertEqual(without_effect([None, _proven()]), [])

  def test_of_many_the_first(self):
    many = [dataclasses.replace(_FOUND, tf1=str(n)) for n in range(5)]
    found = without_effect([_proven(*many)])
    self.assertLen(found, 4)
    self.assertIn('2 more', found[-1])

  def test_a_failure_shows_those_of_the_stages_that_passed(self):
    passed = StageVerdict('zero_randomness', 3, Status.PASSED, proven=_proven(_FOUND))
    failed = StageVerdict('training_steps', 8, Status.FAILED)
    case = CaseVerdict('Case', 'case.py', (passed, failed))
    text = case.to_text()
    self.assertEqual(text.count(_SAID), 1, text)
    without = dataclasses.replace(passed, status=Status.INCONCLUSIVE)
    self.assertNotIn(_SAID, CaseVerdict('Case', 'case.py', (without, failed)).to_text())


if __name__ == '__main__':
  absltest.main()
