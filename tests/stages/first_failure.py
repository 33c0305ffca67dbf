"""Assertions on where on the ladder a case fails first."""

from typing import Any

from absl.testing import absltest

import tf2verify
from tf2verify.case import new_ladder
from tf2verify.stages import STAGES

_NAMES = [stage.name for stage in STAGES]
# The last two run a side against itself: for what may matter to them.
WHOLE_LADDER = _NAMES[-1]
_LAST_OF_BOTH = 'checkpoint'
_WELL = (tf2verify.Status.PASSED, tf2verify.Status.NOT_APPLICABLE)


def climbed_to_failure(case: type[tf2verify.EquivalenceCase]) -> tf2verify.CaseVerdict:
  """Returns the verdict of a case that is left at its first failure.

  Stages that do not need the failed one, `determinism` among them, would still run, for longer
  than all before them, and say nothing of it.
  """
  ladder = new_ladder(case, lambda _: None)
  try:
    for stage in STAGES:
      if ladder.stage(stage).status.is_failure:
        break
    return ladder.verdict()
  finally:
    ladder.close()


def causes_of(
  test: absltest.TestCase,
  parent: type[tf2verify.EquivalenceCase],
  stage: str = 'zero_randomness',
  **settings: Any,
) -> tuple[list[str], str]:
  """Returns the causes of a stage, none where it passes, and the text of the verdict.

  Args:
    test: the test.
    parent: the case.
    stage: the last stage, and the one that may fail.
    settings: attributes of a case that inherits it.
  """
  last = _NAMES.index(stage) + 1
  verdict = tf2verify.verify(type('Case', (parent,), settings), _NAMES[:last])
  failed, text = verdict.first_failure, verdict.to_text()
  if failed is None:
    return [], text
  test.assertEqual(failed.stage, stage, text)
  assert failed.diagnosis is not None
  return [cause.text for cause in failed.diagnosis.causes], text


class LadderTestCase(absltest.TestCase):
  """Climbs the ladder up to a stage and judges the verdict."""

  def assert_first_failure(
    self, case: type[tf2verify.EquivalenceCase], stage: str, *words: str
  ) -> str:
    """Asserts that `stage` is the first to fail, and that its text contains the words.

    Returns:
      The text of the verdict.
    """
    verdict = tf2verify.verify(case, stages=_NAMES[: _NAMES.index(stage) + 1])
    text = verdict.to_text()
    before, failed = verdict.stages[:-1], verdict.stages[-1]
    self.assertTrue(all(earlier.status in _WELL for earlier in before), text)
    self.assertEqual(failed.stage, stage)
    self.assertIs(failed.status, tf2verify.Status.FAILED, text)
    for word in words:
      self.assertIn(word, text)
    return text

  def assert_passes(
    self, case: type[tf2verify.EquivalenceCase], last: str = _LAST_OF_BOTH
  ) -> tf2verify.CaseVerdict:
    """Asserts that every stage passes, or has nothing to look at, up to `last`."""
    verdict = tf2verify.verify(case, stages=_NAMES[: _NAMES.index(last) + 1])
    self.assertTrue(all(stage.status in _WELL for stage in verdict.stages), verdict.to_text())
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    return verdict
