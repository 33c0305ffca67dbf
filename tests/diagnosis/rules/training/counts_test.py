import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.training.counts import count_of_steps, counted_state
from tf2verify.records.diagnosis import About
from tf2verify.records.observation import TensorRecord

_FORM = Form('sgd', (('learning_rate', 0.1),))


def cause(tf1, tf2, rates=None):
  runs = (
    simulated.with_steps(simulated.run(side, _FORM, len(counts), rates=rates), global_step=counts)
    for side, counts in (('tf1', tf1), ('tf2', tf2))
  )
  return count_of_steps(training_evidence(*runs, simulated.PAIRS, 1))


class CountTest(absltest.TestCase):
  def test_two_optimizers(self):
    found = cause([2, 4, 6], [1, 2, 3], rates=[0.1, 0.05, 0.02])
    self.assertIn('global_step advances by 2 a step in TF1, iterations by 1 a step', found.text)
    self.assertIn(About.LEARNING_RATE, found.explains)

  def test_explains_no_update_at_a_constant_learning_rate(self):
    self.assertEqual(cause([2, 4], [1, 2]).explains, (About.COUNT,))

  def test_a_step_that_is_not_counted(self):
    self.assertIn('only the global_step that they are given', cause([0, 0], [1, 2]).text)

  def test_the_port_does_not_count(self):
    self.assertIn('once for each train op of TF1', cause([1, 2], [0, 0]).text)

  def test_steps_that_are_counted_elsewhere(self):
    self.assertIsNone(cause([1, 2, 3], [0, 0, 0], rates=[0.1, 0.05, 0.02]))
    self.assertIsNone(cause([0, 0, 0], [1, 2, 3], rates=[0.1, 0.05, 0.02]))

  def test_the_same_is_no_cause(self):
    self.assertIsNone(cause([1, 2, 3], [1, 2, 3]))

  def test_another_start_is_no_cause(self):
    self.assertIsNone(cause([1, 2, 3], [11, 12, 13]))

  def test_no_counter_is_no_cause(self):
    self.assertIsNone(cause([1, 2, 3], [None] * 3))


class CountedStateTest(absltest.TestCase):
  def cause(self, one, other, dtype=np.int64):
    runs = []
    for side, name, pace in (('tf1', 'step', one), ('tf2', 'model/steps', other)):
      run = simulated.run(side, _FORM, 2)
      counts = [TensorRecord(name, np.asarray(n * pace, dtype)) for n in range(3)]
      variables = [(*step.variables, counts[step.number]) for step in run.steps]
      run = simulated.with_steps(run, variables=variables)
      runs.append(dataclasses.replace(run, values_before=(*run.values_before, counts[0])))
    pairs = (*simulated.PAIRS, ('step', 'model/steps'))
    return counted_state(training_evidence(*runs, pairs, 1))

  def test_what_one_side_does_not_count(self):
    found = self.cause(1, 0)
    self.assertIn('each step of TF1 adds 1 to step, and that of the port leaves model/', found.text)
    self.assertEqual(found.variables, ('step',))
    self.assertIn('each step of the port adds 2 to model/steps', self.cause(0, 2).text)
    self.assertIn('adds 1 to step in TF1, and 2 to model/steps', self.cause(1, 2).text)

  def test_silent(self):
    self.assertIsNone(self.cause(1, 1))
    self.assertIsNone(self.cause(1, 0, np.float32))


if __name__ == '__main__':
  absltest.main()
