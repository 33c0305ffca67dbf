"""Tests of tf2verify.diagnosis.experimenting."""

from unittest import mock

from absl.testing import absltest

from tf2verify.diagnosis import experimenting
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.experimenting import with_experiments
from tf2verify.records.diagnosis import Cause, Diagnosis


class ExperimentingTest(absltest.TestCase):
  def test_why_no_experiment_was_made(self):
    why_not = 'a penalty does not differ in the graph of the port'
    bench = mock.Mock(why_not=lambda: why_not)
    for numbers, said in (('', why_not), ('all of them', '')):
      diagnosis = Diagnosis(causes=(Cause('a factor of 2', numbers=numbers),))
      found = with_experiments(diagnosis, FailedStage('zero_randomness'), mock.Mock(), bench, False)
      self.assertEqual(found.without_experiments, said)

  def test_an_operation_on_all_gradients_is_looked_for_once(self):
    diagnosis = Diagnosis(causes=(Cause('what was seen'),))
    for rule, is_once in (('clipping_in_slots', True), ('optimizer_epsilon', False)):
      bench = mock.Mock(why_not=str, causes=lambda _, rule=rule: (Cause('a norm', rule=rule),))
      vain = mock.Mock(passes=False, mistakes=())
      with (
        mock.patch.object(experimenting, 'Repairing') as repairing,
        mock.patch.object(experimenting, 'step_edits'),
        mock.patch.object(experimenting, 'edits_in_turn', return_value=None) as in_turn,
        mock.patch.object(experimenting, '_simpler', return_value=None) as simpler,
        mock.patch.object(experimenting, '_told', return_value=(diagnosis, vain)),
        mock.patch.object(experimenting, 'unread_inputs', return_value=''),
      ):
        repairing.return_value.by_one_edit.return_value = None
        repairing.return_value.found.return_value = vain
        looking = mock.Mock(arriving=list)
        with_experiments(diagnosis, FailedStage('training_steps'), looking, bench, False)
      repairing.assert_called_once_with(bench, is_once)
      self.assertEqual([in_turn.called, simpler.called], [not is_once] * 2)


if __name__ == '__main__':
  absltest.main()
