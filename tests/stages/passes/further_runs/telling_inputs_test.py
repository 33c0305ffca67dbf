"""Tests of tf2verify.stages.passes.further_runs.telling_inputs, by the stage that asks for them."""

from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.passes import telling_cases


def _verdict(case):
  stages = tf2verify.verify(case, stages=['zero_randomness']).stages
  return next(stage for stage in stages if stage.stage == 'zero_randomness')


class TellingInputsTest(parameterized.TestCase):
  @parameterized.parameters(
    (telling_cases.Bound, 'times 100', 'the constant of'),
    (telling_cases.Capped, 'times 100', 'the operation is Relu in tf1 at '),
    (telling_cases.Epsilon, 'times 1e-06', 'the constant of'),
  )
  def test_told_apart(self, case, factor, what):
    found = _verdict(case)
    self.assertIs(found.status, tf2verify.Status.FAILED, found.to_text())
    self.assertTrue(all(factor in one.run for one in found.differences), found.to_text())
    (note,) = (note for note in found.notes if 'they do not' in note)
    self.assertIn(f'floating inputs {factor} they do not: {what}', note)
    self.assertFalse([spot for spot in found.blind_spots if 'the graphs differ' in spot])

  @parameterized.parameters(
    telling_cases.Bounded,
    telling_cases.NotFinite,
    telling_cases.Slight,
    telling_cases.Mask,
    telling_cases.Ids,
  )
  def test_stays_a_blind_spot(self, case):
    found = _verdict(case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertLen([spot for spot in found.blind_spots if 'the graphs differ' in spot], 1)

  def test_right_port(self):
    found = _verdict(telling_cases.Right)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertFalse([spot for spot in found.blind_spots if 'the graphs' in spot])


if __name__ == '__main__':
  absltest.main()
