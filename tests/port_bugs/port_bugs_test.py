"""Every wrong port is found where it should be, with its cause; every right one passes."""

import re

from absl.testing import absltest, parameterized

import tf2verify
from tests.port_bugs import keras3, suite, write_docs
from tests.port_bugs.classes import (
  CLASSES,
  FIRST_STAGES,
  NOT_MEASURED,
  SEEN_ELSEWHERE,
  UNNAMED,
)

_WELL = (tf2verify.Status.PASSED, tf2verify.Status.NOT_APPLICABLE)
_BUGS = tuple(
  (f'_{bug.identifier}_{number}', bug) for number, bug in enumerate(suite.PORT_BUGS, start=1)
)
_CONTROLS = tuple((f'_{number}', control) for number, control in enumerate(suite.CONTROLS, start=1))


class WrongPortTest(parameterized.TestCase):
  @parameterized.named_parameters(*_BUGS)
  def test_is_found_where_it_should_be(self, bug):
    found = suite.found(bug)
    text = suite.verdict(bug.wrong, bug.stage).to_text()
    self.assertEqual((found.stage, found.status), (bug.stage, bug.status), text)

  @parameterized.named_parameters(*_BUGS)
  def test_cause_is_named(self, bug):
    text = suite.found(bug).to_text()
    missing = [word for word in bug.words if word not in text]
    if bug.identifier in UNNAMED:
      self.assertNotEmpty(missing, 'named now: take it out of UNNAMED')
    else:
      self.assertEqual(missing, [], text)

  @parameterized.named_parameters(*_BUGS)
  def test_no_other_rule_fires(self, bug):
    self.assertEqual(suite.rules_of_places(suite.found(bug)), bug.causes)

  # Here, since the tests of a class run in one process: the page quotes what is climbed above.
  def test_page_is_what_the_suite_says(self):
    """All but the numbers: line numbers and measured values."""
    written, made = write_docs.PAGE.read_text(encoding='utf-8'), write_docs.page()
    self.assertEqual(_without_numbers(written), _without_numbers(made))

  def test_every_pair_has_a_cause(self):
    silent = [bug.identifier for bug in suite.PORT_BUGS if not write_docs.what_is_said(bug)]
    self.assertEqual(silent, list(UNNAMED))


class RightPortTest(parameterized.TestCase):
  @parameterized.named_parameters(*_BUGS)
  def test_of_a_pair_passes(self, bug):
    self._assert_passes(bug)

  @parameterized.named_parameters(*_CONTROLS)
  def test_that_looks_wrong_passes(self, control):
    self._assert_passes(control)

  def _assert_passes(self, pair):
    verdict = suite.verdict(pair.right, suite.last_of_right(pair))
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertContainsSubset({stage.status for stage in verdict.stages}, _WELL)


class CoverageTest(absltest.TestCase):
  def test_every_class_has_a_pair_and_every_pair_a_class(self):
    self.assertEqual(
      {identifier for identifier, _ in CLASSES}, {bug.identifier for bug in suite.PORT_BUGS}
    )

  def test_classes_are_listed_once(self):
    self.assertLen(CLASSES, 107)
    self.assertLen(dict(CLASSES), 107)

  def test_what_is_not_measured_is_said(self):
    numbered = {f'B{number:02}' for number in range(1, 99)}
    parts = {f'B56{letter}' for letter in 'abcdefgh'} | {f'B77{letter}' for letter in 'abcdef'}
    self.assertEqual(set(dict(CLASSES)) | set(NOT_MEASURED), numbered | parts)
    self.assertEmpty(set(dict(CLASSES)) & set(NOT_MEASURED))
    for identifier, reason in NOT_MEASURED.items():
      print(f'not measured: {identifier}, {reason}')

  def test_pairs_are_for_the_stage_of_their_class(self):
    elsewhere = {
      bug.identifier
      for bug in suite.PORT_BUGS
      if bug.stage not in FIRST_STAGES[dict(CLASSES)[bug.identifier]]
    }
    self.assertEqual(elsewhere, set(SEEN_ELSEWHERE))

  def test_every_rule_has_a_mistake(self):
    pairs = (*suite.PORT_BUGS, *keras3.PORT_BUGS)
    fired = {cause for bug in pairs for cause in bug.causes}
    self.assertEqual(fired - {'experiment'}, suite.RULES_OF_PLACES)

  def test_few_causes_stay_unnamed(self):
    self.assertContainsSubset(UNNAMED, dict(CLASSES))
    self.assertLessEqual(len(UNNAMED), 0.1 * len(CLASSES))

  def test_no_class_is_used_for_two_mistakes(self):
    wrong = [bug.wrong for bug in suite.PORT_BUGS]
    self.assertLen(set(wrong), len(wrong))


def _without_numbers(text):
  # `python -m tests.port_bugs.write_docs` writes the page anew.
  return re.sub(r'\d+(\.\d+)?(e[-+]\d+)?', 'N', text).splitlines()


if __name__ == '__main__':
  absltest.main()
