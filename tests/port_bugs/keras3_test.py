"""Wrong ports of Keras 3 are found where they should be, with their cause; right ones pass."""

from absl.testing import absltest, parameterized

import tf2verify
from tests.port_bugs import keras3, suite

_PAIRS = tuple((f'_{pair.identifier}', pair) for pair in keras3.PORT_BUGS)


def _climbed(case, stage):
  # Only what the stage needs.
  return tf2verify.verify(case, stages=[stage])


class Keras3Test(parameterized.TestCase):
  @parameterized.named_parameters(*_PAIRS)
  def test_wrong_port_is_found_and_named(self, pair):
    verdict = _climbed(pair.wrong, pair.stage)
    found = verdict.first_failure
    self.assertIsNotNone(found, verdict.to_text())
    self.assertEqual((found.stage, found.status), (pair.stage, pair.status), verdict.to_text())
    missing = [word for word in pair.words if word not in found.to_text()]
    if pair.identifier in keras3.UNNAMED:
      self.assertNotEmpty(missing, 'named now: take it out of UNNAMED')
    else:
      self.assertEmpty(missing, verdict.to_text())
    self.assertEqual(suite.rules_of_places(found), pair.causes, verdict.to_text())

  @parameterized.named_parameters(*_PAIRS)
  def test_right_port_passes(self, pair):
    verdict = _climbed(pair.right, pair.stage)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_most_are_named(self):
    self.assertGreaterEqual(len(keras3.PORT_BUGS), 25)
    self.assertLessEqual(len(keras3.UNNAMED), 0.1 * len(keras3.PORT_BUGS))


if __name__ == '__main__':
  absltest.main()
