"""Tests of tf2verify.stages.comparison.proof.proving, on the stages that relate graphs."""

from absl.testing import absltest

import tf2verify
from tests.stages.comparison import proven_cases
from tf2verify.stages.comparison.proof import proving

_STAGES = ('zero_randomness', 'seeded_constant')


def _verdicts(case):
  stages = tf2verify.verify(case, stages=_STAGES).stages
  return [stage for stage in stages if stage.stage in _STAGES]


class ProvingTest(absltest.TestCase):
  def test_right_ports_are_proven(self):
    for case in (proven_cases.Dense, proven_cases.NativeDense):
      inference, training = _verdicts(case)
      for stage, run in ((inference, 'inference'), (training, 'training')):
        proven = stage.proven
        self.assertEqual((proven.run, proven.reason, proven.regions), (run, '', ()))
        self.assertEqual(proven.tf2_proven, proven.tf2_operations)
        self.assertEqual(proven.targets_proven, proven.targets)
        self.assertFalse([spot for spot in stage.blind_spots if 'the graphs' in spot])
        wanted = (
          f'{proven.tf2_operations} of {proven.tf2_operations} operations proven for all inputs'
        )
        self.assertIn(wanted, stage.to_text())

  def test_variable_that_the_port_reads_after_it_wrote_it(self):
    training = _verdicts(proven_cases.WrittenTwice)[1]
    self.assertIs(training.status, tf2verify.Status.PASSED, training.to_text())
    self.assertEqual(training.proven.targets_proven, training.proven.targets)
    self.assertEmpty(training.blind_spots)

  def test_difference_without_an_effect(self):
    inference = _verdicts(proven_cases.CappedAndBounded)[0]
    self.assertEqual(inference.status, tf2verify.Status.PASSED)
    self.assertEqual(inference.proven.targets_proven, 0)
    (region,) = inference.proven.regions
    self.assertTrue(region.tf1[0].startswith('Relu '))
    self.assertTrue(region.tf2[0].startswith('Relu6 '))
    (spot,) = (spot for spot in inference.blind_spots if 'the graphs differ' in spot)
    self.assertIn('the operation is Relu in tf1 at ', spot)
    self.assertIn('Relu6 in the port at ', spot)
    self.assertIn(f'blind spot: {spot}', inference.to_text())

  def test_large_graphs_are_related_where_the_case_asks_for_it(self):
    class Asked(proven_cases.Dense):
      relate_graphs = True

    class Never(proven_cases.Dense):
      relate_graphs = False

    class Wrong(proven_cases.Dense):
      relate_graphs = 'always'

    with absltest.mock.patch.object(proving, 'LARGEST', 3):
      by_default, asked = _verdicts(proven_cases.Dense)[0], _verdicts(Asked)[0]
    self.assertIn('relate_graphs = True relates them', by_default.proven.reason)
    self.assertIn('operations proven for all inputs', asked.to_text())
    self.assertEqual(_verdicts(Never)[0].proven.reason, 'relate_graphs is False')
    self.assertIn("relate_graphs is 'always'", _verdicts(Wrong)[0].to_text())

  def test_what_is_not_traced_is_not_related(self):
    inference = _verdicts(proven_cases.Numpy)[0]
    self.assertEqual(inference.status, tf2verify.Status.PASSED)
    self.assertNotEqual(inference.proven.reason, '')
    self.assertNotIn('proven', inference.to_text())

  def test_fault_of_our_own_is_told(self):
    fault = absltest.mock.patch.object(proving, 'compared', side_effect=LookupError('no such op'))
    with fault:
      inference = _verdicts(proven_cases.Dense)[0]
    self.assertIs(inference.status, tf2verify.Status.PASSED)
    wanted = 'inference: the graphs were not related: LookupError: no such op (please report it)'
    self.assertIn(wanted, ' '.join(inference.blind_spots))


if __name__ == '__main__':
  absltest.main()
