import dataclasses
from xml.etree import ElementTree

from absl.testing import absltest

from tests.fleet import made_results
from tests.report.html import made_up
from tf2verify.records.status import Status
from tf2verify.report import terminal
from tf2verify.report.headline import message
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

  def test_message_is_that_of_every_runner(self):
    case = made_up.failed()
    root = ElementTree.fromstring(junit_text([case]))
    shown = {test.get('name'): test[0].get('message') for test in root[0] if len(test)}
    for stage in case.failures:
      self.assertEqual(shown[stage.stage], message(stage))
      self.assertStartsWith(terminal.exception_text(case, stage), f'{message(stage)}\n')
    [cause] = case.first_failure.diagnosis.causes
    hint = case.first_failure.differences[0].hint
    self.assertEqual(shown[case.first_failure.stage], f'{cause.text}; also: {hint}')

  def test_blind_spots_of_what_passes(self):
    case = made_results.verdict('x.py::A', Status.PASSED)
    passed, *rest = case.stages
    passed = dataclasses.replace(passed, notes=('unread <x>',), blind_spots=('unread <x>',))
    text = junit_text([dataclasses.replace(case, stages=(passed, *rest))])
    (output,) = ElementTree.fromstring(text)[0][0]
    self.assertEqual((output.tag, output.text), ('system-out', 'blind spot: unread <x>'))

  def test_no_case(self):
    self.assertEmpty(ElementTree.fromstring(junit_text([])))


if __name__ == '__main__':
  absltest.main()
