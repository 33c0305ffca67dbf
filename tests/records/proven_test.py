"""Tests of tf2verify.records.proven."""

from absl.testing import absltest

from tf2verify.records.proven import Proven
from tf2verify.records.status import Status
from tf2verify.records.verdict import Compared, StageVerdict


class ProvenTest(absltest.TestCase):
  def test_all(self):
    proven = Proven('inference', 1831, 1831, 1829, 1829, 2, 2)
    self.assertEqual(proven.to_text(), '1,829 of 1,829 operations proven for all inputs')

  def test_a_part(self):
    proven = Proven('inference', 9, 8, 9, 7, 2, 1)
    self.assertEqual(proven.to_text(), '7 of 9 operations proven for all inputs')

  def test_what_the_port_leaves_out(self):
    proven = Proven('inference', 9, 7, 7, 7, 2, 1)
    self.assertEqual(
      proven.to_text(), "7 of 9 of tf1's operations and 1 of 2 results proven for all inputs"
    )

  def test_results_exchanged(self):
    proven = Proven('inference', 9, 9, 9, 9, 2, 0)
    self.assertEqual(proven.to_text(), '9 of 9 operations and 0 of 2 results proven for all inputs')

  def test_not_related(self):
    self.assertEqual(Proven('inference', reason='not traceable').to_text(), '')

  def test_in_the_line_of_a_stage(self):
    proven = Proven('inference', 3, 3, 3, 3, 1, 1)
    passed = StageVerdict('s', 3, Status.PASSED, Compared(2, 8), proven=proven)
    self.assertIn('2 tensors, 8 elements; 3 of 3 operations proven for all', passed.to_text())
    failed = StageVerdict('s', 3, Status.INCONCLUSIVE, Compared(2), reason='zeros', proven=proven)
    self.assertNotIn('proven', failed.to_text())


if __name__ == '__main__':
  absltest.main()
