from absl.testing import absltest

from tests.report.html import made_up
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, StageVerdict
from tf2verify.report.html.unchecked import unchecked
from tf2verify.report.html.words import PROVES


def _said(case):
  return {(found.subject, found.text) for found in unchecked(case)}


class UncheckedTest(absltest.TestCase):
  def test_each_reason(self):
    said = _said(made_up.failed())
    for subject, text in (
      ('zero_randomness', 'not run'),
      ('training_steps', 'blocked: gradients FAILED'),
      ('gradients', '1 blind spots, which its notes name'),
      ('gradients', 'in the search for the first divergence: a note of the search'),
    ):
      self.assertIn((subject, text), said)
    self.assertTrue(any('1 tensor could not be distinguished' in text for _, text in said))
    said = _said(made_up.passed())
    self.assertIn(('loss', 'not applicable: the case declares no loss'), said)
    self.assertTrue(any('no more than rounding changes them' in text for _, text in said))
    self.assertIn(
      ('no_new_variables', 'not finished: the tf2 side raised an error'), _said(made_up.error())
    )

  def test_a_whole_ladder_leaves_nothing(self):
    stages = tuple(
      StageVerdict(name, number, Status.PASSED, Compared(1))
      for number, name in enumerate(PROVES, 1)
    )
    self.assertEqual(unchecked(CaseVerdict('Case', 'case.py', stages)), ())


if __name__ == '__main__':
  absltest.main()
