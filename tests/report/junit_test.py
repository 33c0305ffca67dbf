from xml.etree import ElementTree

from absl.testing import absltest

from tests.fleet import made_results
from tf2verify.records.status import Status
from tf2verify.report.junit import junit_text


class JunitTest(absltest.TestCase):
  def suite(self, status):
    (suite,) = ElementTree.fromstring(junit_text([made_results.verdict('x.py::A', status)]))
    return suite

  def test_a_case_that_passes(self):
    suite = self.suite(Status.PASSED)
    self.assertEqual(suite.get('name'), 'x.py::A')
    self.assertEqual(
      [suite.get(name) for name in ('tests', 'failures', 'errors', 'skipped', 'time')],
      ['2', '0', '0', '1', '1.500'],
    )
    passed, skipped = suite
    self.assertEmpty(passed)
    # NUL is no character of XML.
    self.assertEqual(skipped[0].get('message'), 'no loss <&> \\x00')

  def test_those_that_do_not(self):
    for status, counts, tag in (
      (Status.FAILED, '10', 'failure'),
      (Status.INCONCLUSIVE, '10', 'failure'),
      (Status.ERROR, '01', 'error'),
    ):
      with self.subTest(status.value):
        suite = self.suite(status)
        self.assertEqual(suite.get('failures') + suite.get('errors'), counts)
        (found,) = suite[0]
        self.assertEqual((found.tag, found.get('type')), (tag, status.value))
        self.assertIn("A: stage 'gradients'", found.text)
        self.assertIn('run again: python x.py', found.text)

  def test_no_case(self):
    self.assertEmpty(ElementTree.fromstring(junit_text([])))


if __name__ == '__main__':
  absltest.main()
