"""Pairs whose reference was recorded under TensorFlow 1.15 give what the live reference gives."""

from absl.testing import absltest, parameterized

import tf2verify
from tests.port_bugs import recorded, suite

_PAIRS = tuple((f'_{pair.name}_{pair.wrong.__name__}', pair) for pair in recorded.RECORDED_PAIRS)
_WELL = (tf2verify.Status.PASSED, tf2verify.Status.NOT_APPLICABLE)


class RecordedPairTest(parameterized.TestCase):
  @parameterized.named_parameters(*_PAIRS)
  def test_wrong_port_fails_as_against_the_live_reference(self, pair):
    verdict = suite.verdict(recorded.from_recording(pair.wrong, pair), pair.bug.stage)
    found = verdict.first_failure
    self.assertIsNotNone(found, verdict.to_text())
    self.assertEqual((found.stage, found.status), (pair.bug.stage, pair.bug.status))
    text = found.to_text()
    self.assertEqual([word for word in pair.bug.words if word not in text], [], text)
    self.assertEqual(suite.rules_of_places(found), pair.bug.causes, text)

  @parameterized.named_parameters(*_PAIRS)
  def test_right_port_passes(self, pair):
    right = recorded.from_recording(pair.bug.right, pair)
    verdict = suite.verdict(right, suite.last_of_right(pair.bug))
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertContainsSubset({stage.status for stage in verdict.stages}, _WELL)

  def test_recordings_are_those_of_the_pairs(self):
    names = {path.name for path in recorded.FOLDER.iterdir()}
    self.assertEqual(names, {pair.name for pair in recorded.RECORDED_PAIRS})
    self.assertGreaterEqual(len({pair.bug.identifier for pair in recorded.RECORDED_PAIRS}), 12)


class SizeTest(absltest.TestCase):
  def test_committed_recordings_are_small(self):
    folders = (recorded.FOLDER, recorded.EXAMPLES)
    sizes = [path.stat().st_size for folder in folders for path in folder.glob('*/*')]
    self.assertGreater(len(sizes), 2 * len(recorded.RECORDED_PAIRS))
    self.assertLessEqual(sum(sizes), 2_000_000)


if __name__ == '__main__':
  absltest.main()
