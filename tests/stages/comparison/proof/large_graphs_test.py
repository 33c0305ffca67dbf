"""Tests of stages.comparison.proof.large_graphs, on the stage that relates large graphs."""

from absl.testing import absltest

import tf2verify
from tests.stages.comparison import proven_cases
from tf2verify.stages.comparison.proof import proving

_LAST = 'seeded_num_random_ops'


def _verdicts(case):
  """Returns the verdicts of the three stages that relate, where more than 3 operations are many."""
  with absltest.mock.patch.object(proving, 'LARGEST', 3):
    stages = tf2verify.verify(case, stages=[_LAST]).stages
  found = {stage.stage: stage for stage in stages}
  return [found[name] for name in ('zero_randomness', 'seeded_constant', _LAST)]


class LargeGraphsTest(absltest.TestCase):
  def test_right_ports_are_proven_once(self):
    for case in (proven_cases.Dense, proven_cases.NativeDense):
      *before, last = _verdicts(case)
      for stage in before:
        self.assertIn('related once, in seeded_num_random_ops', stage.proven.reason)
        self.assertNotIn('proven', stage.to_text())
      self.assertEqual((last.proven.run, last.proven.reason), ('training', ''))
      self.assertTrue(last.proven.is_whole)
      self.assertEqual(last.proven.tf2_proven, last.proven.tf2_operations)
      self.assertIn('operations proven for all inputs', last.to_text())
      self.assertFalse([spot for spot in last.blind_spots if 'the graphs' in spot])

  def test_a_difference_without_an_effect_is_a_blind_spot(self):
    last = _verdicts(proven_cases.CappedAndBounded)[-1]
    self.assertEqual(last.status, tf2verify.Status.PASSED)
    (spot,) = (spot for spot in last.blind_spots if 'the graphs differ' in spot)
    self.assertIn('the operation is Relu in tf1 at ', spot)
    self.assertIn('Relu6 in the port at ', spot)

  def test_inference_where_there_is_no_training(self):
    class Inference(proven_cases.Dense):
      training_modes = (False,)

    self.assertEqual(_verdicts(Inference)[-1].proven.run, 'inference')

  def test_what_is_not_traced_is_not_related(self):
    last = _verdicts(proven_cases.Numpy)[-1]
    self.assertEqual(last.status, tf2verify.Status.PASSED)
    self.assertNotEqual(last.proven.reason, '')

  def test_small_graphs_are_not_related_twice(self):
    stages = tf2verify.verify(proven_cases.Dense, stages=[_LAST]).stages
    self.assertIsNone(stages[-1].proven)


if __name__ == '__main__':
  absltest.main()
